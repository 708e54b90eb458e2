"""What is measured on a run's texts beside its own loss: counting models, the floor, further texts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from engine.baselines import NGrams, baseline_losses
from engine.batches import Batch, clm_rows, mask_tokens
from engine.config import TrainConfig
from engine.corpus import NAMES
from engine.evaluation import EVAL_SEED, fixed_batch, line_starts, scored_targets, total_loss
from engine.metrics import bits_per_byte
from engine.model import Transformer
from engine.tokenizers import Tokenizer

ALSO_ROWS = 32  # of a further text, at most; a shorter text is scored whole


def token_lengths(tokenizer: Tokenizer, vocab_size: int) -> list[int]:
    """Bytes of each id; 0 for the mask and for gaps in a published vocabulary."""
    lengths = []
    for token_id in range(vocab_size):
        try:
            lengths.append(0 if token_id == tokenizer.mask_id else len(tokenizer.token_bytes(token_id)))
        except ValueError:
            lengths.append(0)
    return lengths


def per_byte(losses: Mapping[str, float], batch: Batch, tokenizer: Tokenizer) -> dict[str, float]:
    """Losses in nats per scored token as bits per byte of those tokens' text."""
    targets = scored_targets(batch).tolist()
    n_bytes = sum(len(tokenizer.token_bytes(t)) for t in targets)
    return {name: bits_per_byte(loss * len(targets), n_bytes) for name, loss in losses.items()}


def baseline_record(
    train_ids: Tensor, val_batch: Batch, model: Transformer, tokenizer: Tokenizer
) -> dict[str, Any]:
    """What counting alone scores on the validation rows: the values of a "baseline" record."""
    objective = model.config.objective
    counts = NGrams(train_ids, model.config.vocab_size)
    losses = baseline_losses(counts, val_batch, objective)
    bits = per_byte(losses, val_batch, tokenizer) if objective == "clm" else None
    return {**losses, "bits_per_byte": bits}


def floor_record(
    val_ids: Tensor,
    val_at: Tensor,
    val_batch: Batch,
    objective: str,
    tokenizer: Tokenizer,
    still_wanted: Callable[[], bool],
) -> dict[str, Any] | None:
    """What the true source of the stories scores on the validation rows; None if it was interrupted.

    Raises:
        ValueError: if it can't be known for this vocabulary or text.
    """
    from engine.floor import validation_floor  # reads the grammar: only the stories need it

    floor = validation_floor(tokenizer, val_ids.tolist(), val_at, val_batch, objective, still_wanted)
    if floor is None:
        return None
    bits = per_byte({"floor": floor}, val_batch, tokenizer)["floor"] if objective == "clm" else None
    return {"value": floor, "bits_per_byte": bits}


class FurtherTexts:
    """Texts that are scored at each evaluation and never learned from.

    Args:
        texts: by name.
        tokenizer: of the run.
        model: of the run.
        config: of the run; how many tokens are hidden from a masked model, and whether rows begin with lines.
            Those of the stories always do: what a story is about stands at its beginning.
    """

    def __init__(
        self, texts: Mapping[str, str], tokenizer: Tokenizer, model: Transformer, config: TrainConfig
    ) -> None:
        self._model, self._rows = model, config.batch_size
        self._batches = {
            name: rows_of(
                torch.tensor(tokenizer.encode(text), dtype=torch.int64),
                tokenizer,
                model,
                replace(config, aligned_share=1.0) if name == NAMES["stories"] else config,
            )
            for name, text in texts.items()
        }

    def losses(self) -> dict[str, float]:
        """Nats per scored token of each text."""
        found = {}
        for name, batches in self._batches.items():
            n_scored = sum(len(scored_targets(batch)) for batch in batches)
            total = sum(total_loss(self._model, batch, rows_at_once=self._rows) for batch in batches)
            found[name] = total / n_scored
        return found


def floor_of_stories(
    text: str, tokenizer: Tokenizer, model: Transformer, config: TrainConfig
) -> float | None:
    """What the true source scores on the rows of the stories as a further text, nats per scored token.

    Args:
        text: the stories, more than `ALSO_ROWS` rows of them.
        tokenizer: of the run.
        model: whose objective and context length count.
        config: of the run.

    Returns:
        None if it can't be known for this vocabulary.
    """
    from engine.floor import validation_floor

    ids = torch.tensor(tokenizer.encode(text), dtype=torch.int64)
    chosen = replace(config, eval_rows=ALSO_ROWS)
    starts = line_starts(ids, tokenizer.line_end_ids)
    at, batch = fixed_batch(model, ids, starts, tokenizer.mask_id, chosen)
    if at is None or batch is None:
        return None
    try:
        return validation_floor(tokenizer, ids.tolist(), at, batch, model.config.objective)
    except ValueError:  # a vocabulary that doesn't keep to the words of the grammar
        return None


def rows_of(ids: Tensor, tokenizer: Tokenizer, model: Transformer, config: TrainConfig) -> list[Batch]:
    """The rows of a further text: of a short one all, its shorter end included; else fixed ones.

    Args:
        ids: (N,) the text, at least 2 tokens.
        tokenizer: of the run.
        model: whose objective and context length count.
        config: as for `FurtherTexts`.
    """
    causal, stride = model.config.objective == "clm", config.longest_row(model.config.context_length)
    if len(ids) - causal > ALSO_ROWS * stride:
        aligned = config.aligned_share > 0
        starts = line_starts(ids, tokenizer.line_end_ids) if aligned else None
        chosen = replace(config, eval_rows=ALSO_ROWS)
        batch = fixed_batch(model, ids, starts, tokenizer.mask_id, chosen)[1]
        assert batch is not None  # it is not empty
        return [batch]
    rows = [ids[at : at + stride + causal] for at in range(0, len(ids) - causal, stride)]
    whole = [row for row in rows if len(row) == stride + causal]
    parts = ([torch.stack(whole)] if whole else []) + [row[None] for row in rows[len(whole) :]]
    if causal:
        return [clm_rows(part) for part in parts]
    masks = torch.Generator().manual_seed(EVAL_SEED)
    return [
        mask_tokens(
            part,
            mask_prob=config.mask_prob,
            mask_id=tokenizer.mask_id,
            vocab_size=model.config.vocab_size,
            generator=masks,
            split=(1.0, 0.0, 0.0),
        )
        for part in parts
    ]
