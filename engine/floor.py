"""The floor under a loss: what the true source of the stories scores on the tokens of a validation."""

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from engine.batches import Batch
from engine.grammar import default_grammar
from engine.metrics import IGNORED
from engine.oracle import Oracle
from engine.tokenizers import Tokenizer
from wording import words

say = words("engine.floor")


def validation_floor(
    tokenizer: Tokenizer,
    val_ids: Sequence[int],
    val_at: Tensor,
    val_batch: Batch,
    objective: str,
    still_wanted: Callable[[], bool] = lambda: True,
) -> float | None:
    """Mean -log p of the scored targets under the story source, nats a token.

    The source sees all that the model sees; of a row that begins inside a story it also sees the story's
    beginning, so that no model can be below it except by luck with these tokens.

    Args:
        tokenizer: of the model.
        val_ids: (N,) the validation text.
        objective: of the model, "clm" or "mlm".
        val_batch: the scored rows.
        val_at: (B,) where the rows begin in `val_ids`.
        still_wanted: asked before each row; False ends the computation, and None is returned.

    Raises:
        ValueError: if the tokenizer doesn't keep to the grammar's words, or a row allows too many stories.
    """
    oracle = Oracle(default_grammar(), tokenizer)
    line_ends = np.flatnonzero(np.isin(np.asarray(val_ids), tokenizer.line_end_ids))
    total, scored = 0.0, 0
    for at, targets in zip(val_at.tolist(), val_batch.targets, strict=True):
        if not still_wanted():
            return None
        before = line_ends[line_ends <= at]
        begin = int(before[-1]) if len(before) else 0
        row = list(val_ids[begin : at + len(targets) + (objective == "clm")])
        if objective == "clm":
            log_probs = oracle.log_probs(row)[-len(targets) :]
        else:
            hidden = [at - begin + int(t) for t in (targets != IGNORED).nonzero().flatten()]
            posterior = oracle.masked(row, hidden, separator=bool(len(before)))
            log_probs = np.log(posterior[np.arange(len(hidden)), [row[t] for t in hidden]])
        total -= float(log_probs.sum())
        scored += len(log_probs)
    if not np.isfinite(total):
        raise ValueError(say("validation_text_not_one"))
    return total / scored
