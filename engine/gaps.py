"""A text with gaps: what a masked model expects there, what a causal one, and which of them is right."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.metrics import MostLikely, kl_divergence, log_softmax, most_likely, rank
from engine.model import Transformer
from engine.tokenizer import MASK_TEXT
from engine.tokenizers import Token, Tokenizer
from engine.tokens import repair_text
from wording import words

say = words("engine.gaps")

Frame = tuple[Sequence[int], Sequence[int]]
"""Ids that a model wants before and after a text, see `Tokenizer.frame`: never hidden, never scored."""
NO_FRAME: Frame = ((), ())


def gap_tokens(tokenizer: Tokenizer, text: str) -> list[Token]:
    """The tokens of a text in which ``[MASK]`` is one mask token; every other spelling is plain text.

    Where words carry the space before them, as in "·cat", one space before ``[MASK]`` belongs to the gap:
    else "a [MASK] sat" would ask for a piece of a word after a lone space, which no text has.
    Only for a text in which gaps are to be filled: everywhere else ``[MASK]`` is six characters.
    """
    text, found = tokenizer.normal(text), list[Token]()
    at = bytes_at = 0
    joins, parts = _joins_spaces(tokenizer), text.split(MASK_TEXT)
    gap = MASK_TEXT
    for i, part in enumerate(parts):
        if i:
            end = bytes_at + len(gap)
            found.append(Token(tokenizer.mask_id, gap.encode(), gap, at, bytes_at, end))
            at, bytes_at = at + len(gap), end
        gap = MASK_TEXT
        if joins and i < len(parts) - 1 and part.endswith(" "):
            part, gap = part[:-1], " " + MASK_TEXT
        for t in tokenizer.tokens(part):
            place = (t.start + at, t.byte_start + bytes_at, t.byte_end + bytes_at)
            found.append(Token(t.id, t.data, t.text, *place))
        at, bytes_at = at + len(part), bytes_at + len(part.encode())
    return found


def _joins_spaces(tokenizer: Tokenizer) -> bool:
    """Whether some token is a space and what follows it."""
    return any(
        len(data) > 1 and data.startswith(b" ") and not data.isspace()
        for data in map(tokenizer.token_bytes, range(tokenizer.vocab_size))
    )


def positions_of(tokens: Sequence[Token], text: str, word: str, *, first: bool = False) -> list[int]:
    """Positions of the tokens that hold a part of a word, wherever it stands or only the first time."""
    text, word = repair_text(text)[0], repair_text(word)[0]
    data, spans = text.encode(), []
    at = data.find(word.encode()) if word else -1
    while at >= 0:
        spans.append((at, at + len(word.encode())))
        at = -1 if first else data.find(word.encode(), at + 1)
    return [
        i
        for i, t in enumerate(tokens)
        if any(t.byte_start < end and t.byte_end > start for start, end in spans)
    ]


@torch.no_grad()
def fill_gaps(
    model: Transformer, ids: Sequence[int], hidden: Collection[int], mask_id: int, frame: Frame = NO_FRAME
) -> NDArray[np.float32]:
    """Logits (T,V) of a masked model that sees the mask at the hidden positions; the frame has no rows.

    Raises:
        ValueError: for a causal model, a position that does not exist, or more ids than the context holds.
    """
    if model.config.objective != "mlm":
        raise ValueError(say("only_masked_model_knows"))
    if any(not 0 <= i < len(ids) for i in hidden):
        raise ValueError(say("positions_hide_must_lie", last=len(ids) - 1, places=sorted(hidden)))
    text = [mask_id if i in hidden else token_id for i, token_id in enumerate(ids)]
    seen, first = torch.tensor([[*frame[0], *text, *frame[1]]]), len(frame[0])
    logits: NDArray[np.float32] = (
        model(seen.to(model.device))[0, first : first + len(ids)].float().cpu().numpy()
    )
    return logits


@dataclass(frozen=True, eq=False)
class Guess:
    """What a model expects in a gap, beside what is true.

    Attributes:
        top: the likeliest tokens, and the one that stands there.
        rank, surprisal: of the one that stands there, nats; None if nobody knows it.
        true_probs: (K,) true probabilities of the tokens in `top`; None if not known.
        cost: KL(true ‖ model) in nats; None if not known.
    """

    top: MostLikely
    rank: int | None
    surprisal: float | None
    true_probs: NDArray[np.float64] | None
    cost: float | None


def guess(
    logits: NDArray[np.float32],
    n: int,
    *,
    true_id: int | None = None,
    true: NDArray[np.float64] | None = None,
) -> Guess:
    """Read one row of logits (V,) as a guess.

    Args:
        logits: of a masked or of a causal model.
        n: how many of the likeliest tokens.
        true_id: what stands in the gap.
        true: (V,) the true distribution; ids beyond it, as the mask, never truly come.

    Raises:
        ValueError: if the logits are not finite.
    """
    if not np.isfinite(logits).all():
        raise ValueError(say("model_output_not_finite"))
    log_probs = log_softmax(logits)
    probs = np.exp(log_probs)
    top = most_likely(probs, n, also=true_id)
    cost = true_probs = None
    if true is not None:
        cost = float(kl_divergence(true, probs[: len(true)]))
        true_probs = np.append(true, np.zeros(len(probs) - len(true)))[top.ids]
    if true_id is None:
        return Guess(top, None, None, true_probs, cost)
    return Guess(top, rank(probs, true_id), -float(log_probs[true_id]), true_probs, cost)


def mean_surprisal(logits: NDArray[np.float32], ids: Sequence[int], positions: Collection[int]) -> float:
    """Mean of -log p of the tokens at some positions, in nats: of the hidden ones the masked-token loss.

    Args:
        logits: (T,V), row t is about position t.
        ids: (T,) the tokens of the text.
        positions: those that count.

    Raises:
        ValueError: if there are no positions.
    """
    if not positions:
        raise ValueError(say("no_position_scored_there"))
    log_probs = log_softmax(logits)
    return -float(np.mean([log_probs[t, ids[t]] for t in positions]))


@dataclass(frozen=True)
class Lead:
    """Why one of two models gave the hidden token more, in nats: lead = tells + learned.

    Attributes:
        lead: ln of the masked model's probability over the causal model's; above 0 the masked model wins.
        tells: ln of the same ratio of the exact probabilities: what the masked model is shown and the causal
            one is not; None where the truth is not known.
        learned: the rest: how far each of the two is from its own exact answer.
    """

    lead: float
    tells: float | None
    learned: float | None


def lead_of(masked: float, causal: float, true_masked: float | None, true_causal: float | None) -> Lead:
    """Split the masked model's lead into what its context tells and what the two models learned.

    Args:
        masked: the probability that the masked model gives the hidden token.
        causal: that of the causal model.
        true_masked: the exact probability given what the masked model sees; None or 0 if unknown.
        true_causal: given what the causal one sees.

    >>> found = lead_of(0.8, 0.1, 1.0, 0.125)
    >>> round(found.lead, 4), round(found.tells, 4), round(found.learned, 4)
    (2.0794, 2.0794, 0.0)
    """
    lead = float(np.log(masked) - np.log(causal))
    if not true_masked or not true_causal:
        return Lead(lead, None, None)
    tells = float(np.log(true_masked) - np.log(true_causal))
    return Lead(lead, tells, lead - tells)


@torch.no_grad()
def spelled(model: Transformer, tokenizer: Tokenizer, before: str, word: str) -> tuple[float, int]:
    """The natural log probability that a text goes on with `word`, spelled in the model's own tokens.

    It is that of the one spelling that the tokenizer gives, and the number of tokens in it. Where the word
    joins with the end of the text before, the change of both spellings counts.

    Args:
        model: a causal one.
        tokenizer: its own.
        before: the text; only its last tokens that the model can read count.
        word: what comes next.

    Raises:
        ValueError: if there is nothing before the word, or the word is empty.
    """
    old, new = tokenizer.encode(before), tokenizer.encode(before + word)
    same = next(
        (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    if not same or len(new) == same:
        raise ValueError(say("causal_model_needs_least"))
    longest = model.config.context_length

    def log_of(ids: Sequence[int]) -> float:
        if len(ids) == same:
            return 0.0
        first = max(0, len(ids) - 1 - longest)
        row = torch.tensor([ids[first:-1]], device=model.device)
        asked = range(max(same, first + 1), len(ids))
        stream = model.stream(row)[0, asked.start - 1 - first :]
        log_probs = log_softmax(model.read_out(stream).float().cpu().numpy())
        return float(sum(row[ids[t]] for row, t in zip(log_probs, asked, strict=True)))

    return log_of(new) - log_of(old), len(new) - same
