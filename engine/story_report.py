"""How close a model has come to the stories' true distribution: loss, floor, exact divergence, legality."""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.batches import clm_rows, mask_tokens, windows
from engine.grammar import default_grammar, story_text
from engine.metrics import IGNORED, kl_divergence, log_softmax
from engine.model import Transformer
from engine.oracle import Oracle
from engine.sampling import generate
from engine.tokenizers import Tokenizer
from engine.training import fixed_rows, line_starts


@dataclass(frozen=True)
class StoryReport:
    """Numbers over held-out stories; nats per scored token unless said otherwise.

    Attributes:
        tokens: scored tokens.
        loss: mean surprisal of the model.
        floor: mean surprisal of the true source on the very same tokens; no model can beat it on average.
        gap, gap_error: mean of (loss - floor), and its standard error over the rows.
        kl: mean exact Kullback–Leibler divergence of the model from the true distribution, over the full
            vocabulary at every scored position.
        entropy: mean entropy of the true distribution at those positions.
        legal_share: of the text of its own samples, how much comes before the first slip (0 to 1); None for
            masked models.
        legal_stories: how many of `samples` samples are possible all the way.
        samples: samples written.
    """

    tokens: int
    loss: float
    floor: float
    gap: float
    gap_error: float
    kl: float
    entropy: float
    legal_share: float | None = None
    legal_stories: int | None = None
    samples: int = 0

    def to_json(self) -> dict[str, float | int | None]:
        """As plain values."""
        return asdict(self)


def story_rows(tokenizer: Tokenizer, n_rows: int, length: int, seed: int) -> torch.Tensor:
    """(n_rows, length) ids of fresh stories; each row begins with the end of the story before it."""
    ids = torch.tensor(tokenizer.encode(story_text(seed, max(60, n_rows * 4))))
    at = fixed_rows(len(ids), n_rows=n_rows, length=length, starts=line_starts(ids, tokenizer.line_end_ids))
    return windows(ids, at, length)


def _true_rows(oracle: Oracle, inputs: NDArray, targets: NDArray, causal: bool) -> NDArray:
    """(scored, V) true distributions of one row's scored positions."""
    if causal:
        return oracle.distributions(inputs.tolist())
    hidden = np.flatnonzero(targets != IGNORED)
    row = np.where(targets != IGNORED, targets, inputs)
    return oracle.masked(row.tolist(), hidden.tolist())


@torch.no_grad()
def story_report(
    model: Transformer, tokenizer: Tokenizer, *, n_rows: int = 64, seed: int = 777, n_samples: int = 0
) -> StoryReport:
    """Compare a model with the true source on stories that it has never seen.

    Args:
        model: causal or masked.
        tokenizer: that it was trained with.
        n_rows: rows of `context_length` tokens.
        seed: of the stories; training uses others.
        n_samples: stories that a causal model writes, to see how long they stay possible.
    """
    config, oracle = model.config, Oracle(default_grammar(), tokenizer)
    causal = config.objective == "clm"
    rows = story_rows(tokenizer, n_rows, config.context_length + causal, seed)
    if causal:
        batch = clm_rows(rows)
    else:
        masks = torch.Generator().manual_seed(seed)
        batch = mask_tokens(
            rows,
            mask_prob=0.15,
            mask_id=tokenizer.mask_id,
            vocab_size=tokenizer.vocab_size,
            generator=masks,
            split=(1, 0, 0),
        )
    losses, floors, kls, entropies = [], [], [], []
    for inputs, targets in zip(batch.inputs, batch.targets, strict=True):
        scored = (targets != IGNORED).numpy()
        model_log = log_softmax(model(inputs[None].to(model.device))[0].cpu().numpy())[scored]
        wanted = targets.numpy()[scored]
        true = _true_rows(oracle, inputs.numpy(), targets.numpy(), causal)
        true = np.pad(true, ((0, 0), (0, config.vocab_size - true.shape[1])))  # the mask is never the truth
        at = np.arange(len(wanted))
        losses.append(-model_log[at, wanted])
        floors.append(-np.log(true[at, wanted]))
        kls.append(kl_divergence(true, np.exp(model_log)))
        entropies.append(kl_divergence(true, np.ones_like(true)) * -1)
    gaps = np.array([(a - b).mean() for a, b in zip(losses, floors, strict=True)])
    loss, floor, kl, entropy = (float(np.concatenate(x).mean()) for x in (losses, floors, kls, entropies))
    share, whole = _legality(model, tokenizer, n_samples, seed) if causal and n_samples else (None, None)
    error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else float("nan")
    n = int(sum(len(x) for x in losses))
    return StoryReport(n, loss, floor, loss - floor, error, kl, entropy, share, whole, n_samples)


def _legality(model: Transformer, tokenizer: Tokenizer, n_samples: int, seed: int) -> tuple[float, int]:
    """Mean legal share of the text of sampled stories, and how many are possible as a whole."""
    oracle = Oracle(default_grammar(), tokenizer)
    start = tokenizer.encode(".\n")
    shares = []
    for k in range(n_samples):
        ids = [
            step.id
            for step in generate(
                model, start, n_tokens=model.config.context_length - len(start), seed=seed + k
            )
        ]
        text = tokenizer.decode(ids)
        text = text[: text.find("\n") + 1] or text
        shares.append(oracle.legal_prefix(text).n_chars / len(text))
    return float(np.mean(shares)), sum(s == 1 for s in shares)
