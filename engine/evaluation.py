"""How good a model is while it learns: the same rows of the text at every evaluation, whatever the seed."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.batches import Batch, clm_rows, mask_tokens, windows
from engine.config import TrainConfig
from engine.metrics import IGNORED, cross_entropy
from engine.model import Transformer
from engine.parallel import ALONE, Processes

EVAL_SEED = 20171  # the validation rows and masks are the same for every run, whatever its seed


def line_starts(ids: Tensor, line_end_ids: Sequence[int]) -> Tensor:
    """Positions of the tokens that end a line; a row from there predicts a line from its first word."""
    return torch.isin(ids, torch.tensor(list(line_end_ids), dtype=torch.int64)).nonzero().flatten()


def fixed_rows(n: int, *, n_rows: int, length: int, starts: Tensor | None = None) -> Tensor:
    """Where the rows of an evaluation begin, (B,): always the same; without `starts` no token twice.

    Args:
        n: tokens in the text, at least `length`.
        n_rows: at most so many rows.
        length: tokens in a row.
        starts: if given, rows begin at some of these positions.
    """
    generator = torch.Generator().manual_seed(EVAL_SEED)
    tiles = torch.arange(
        0, n - length + 1, max(1, length - 1)
    )  # the last token of a row is the first of the next
    if starts is not None and len(fitting := starts[starts + length <= n]):
        tiles = fitting
    return tiles[torch.randperm(len(tiles), generator=generator)[:n_rows]].sort().values


def fixed_batch(
    model: Transformer, ids: Tensor, starts: Tensor | None, mask_id: int, config: TrainConfig
) -> tuple[Tensor | None, Batch | None]:
    """The evaluation rows of a text and where they begin, or None twice for an empty text.

    A masked model sees a mask for every chosen token.
    """
    if not len(ids):
        return None, None
    causal = model.config.objective == "clm"
    length = config.longest_row(model.config.context_length) + causal
    at = fixed_rows(len(ids), n_rows=config.eval_rows, length=length, starts=starts)
    rows = windows(ids, at, length)
    if causal:
        return at, clm_rows(rows)
    masks = torch.Generator().manual_seed(EVAL_SEED)
    return at, mask_tokens(
        rows,
        mask_prob=config.mask_prob,
        mask_id=mask_id,
        vocab_size=model.config.vocab_size,
        generator=masks,
        split=(1.0, 0.0, 0.0),
    )


def scored_targets(batch: Batch) -> Tensor:
    """(N,) the targets that the loss counts."""
    return batch.targets[batch.targets != IGNORED]


@torch.no_grad()
def total_loss(model: Transformer, batch: Batch, *, rows_at_once: int, processes: Processes = ALONE) -> float:
    """Sum of the surprisals of all scored targets of a batch, nats; each process scores its share.

    Always in float32, also where training computes in 16 bits, so that runs can be compared.
    """
    total, mine = 0.0, Batch(*(rows[processes.share(len(rows))] for rows in batch))
    for at in range(0, len(mine.inputs), rows_at_once):
        inputs, targets = (rows[at : at + rows_at_once] for rows in mine)
        scored = int((targets != IGNORED).sum())
        if scored:
            loss = cross_entropy(model(inputs.to(model.device)), targets.to(model.device))
            total += float(loss) * scored
    return processes.total(total)
