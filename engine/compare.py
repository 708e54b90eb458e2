"""Two causal models on one text: where each is the more surprised, also when their tokens differ.

Two tokenizers cut a text at different places. Between two places where both cut, each model's surprisals add
up to the surprisal of exactly these bytes given what came before: such a span can be compared, and nothing
has to be shared out inside a token.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.metrics import kl_divergence
from engine.tokenizers import Token
from wording import words

say = words("engine.compare")


class Scored(NamedTuple):
    """What one model says of the tokens that it read.

    Attributes:
        tokens: (T,) in order; their bytes follow each other without a gap.
        log_probs: (T-1,) natural logs of the probabilities of all but the first, which is given.
    """

    tokens: Sequence[Token]
    log_probs: NDArray[np.float64]


class Span(NamedTuple):
    """A piece of the text between two places where both tokenizers cut.

    Attributes:
        byte_start, byte_end: in the UTF-8 bytes of the text.
        first: (a, b) index of each model's first token in it.
        stop: (a, b) index after each model's last token in it.
    """

    byte_start: int
    byte_end: int
    first: tuple[int, int]
    stop: tuple[int, int]


def _cuts(tokens: Sequence[Token], first: int) -> dict[int, int]:
    """Byte offset of every cut from token `first` on -> index of the token that begins there."""
    found = {token.byte_start: i for i, token in enumerate(tokens) if i >= first}
    found[tokens[-1].byte_end] = len(tokens)
    return found


def common_spans(a: Sequence[Token], b: Sequence[Token]) -> list[Span]:
    """The smallest spans that both tokenizations cut out, over all bytes that both models predict.

    The first token of each is given, not predicted, so the spans begin at the first common cut after both.

    Args:
        a: (T,) tokens of one text.
        b: (S,) other tokens of the same text; both end where it ends.

    Raises:
        ValueError: if they end at different places.
    """
    if not a or not b or a[-1].byte_end != b[-1].byte_end:
        raise ValueError(say("both_tokenizations_must_end"))
    cuts_a, cuts_b = _cuts(a, 1), _cuts(b, 1)
    shared = sorted(cuts_a.keys() & cuts_b.keys())
    return [
        Span(begin, end, (cuts_a[begin], cuts_b[begin]), (cuts_a[end], cuts_b[end]))
        for begin, end in zip(shared, shared[1:], strict=False)
    ]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two models on the bytes that both predict.

    Attributes:
        spans: (S,) pieces of the text, in order.
        nats: (2,S) surprisal of each span under each model: sums of its tokens' surprisals.
        n_tokens: (a, b) how many tokens these are of each model.
    """

    spans: list[Span]
    nats: NDArray[np.float64]
    n_tokens: tuple[int, int]

    @property
    def n_bytes(self) -> int:
        """How many bytes both models predict."""
        return self.spans[-1].byte_end - self.spans[0].byte_start if self.spans else 0

    @property
    def difference(self) -> NDArray[np.float64]:
        """(S,) nats: surprisal of the first model minus that of the second; below 0 the first is better."""
        gap: NDArray[np.float64] = self.nats[0] - self.nats[1]
        return gap

    @property
    def totals(self) -> tuple[float, float]:
        """Nats of all spans together."""
        return float(self.nats[0].sum()), float(self.nats[1].sum())

    @property
    def bits_per_byte(self) -> tuple[float, float]:
        """Comparable whatever the tokens are."""
        a, b = (total / math.log(2) / self.n_bytes for total in self.totals)
        return a, b

    @property
    def losses(self) -> tuple[float, float]:
        """Nats per token of each model's own tokens: comparable only when these are the same."""
        a, b = (total / n for total, n in zip(self.totals, self.n_tokens, strict=True))
        return a, b


def compare(a: Scored, b: Scored) -> Comparison:
    """Add up both models' surprisals over the spans that both tokenizations cut out."""
    spans = common_spans(a.tokens, b.tokens)
    rows, counts = [], []
    for side, scored in enumerate((a, b)):
        sums = np.concatenate([[0.0], np.cumsum(-scored.log_probs)])  # nats of tokens 1 … i at index i
        begins = [span.first[side] - 1 for span in spans]
        ends = [span.stop[side] - 1 for span in spans]
        rows.append(sums[ends] - sums[begins])
        counts.append(ends[-1] - begins[0] if spans else 0)
    return Comparison(spans, np.array(rows).reshape(2, len(spans)), (counts[0], counts[1]))


def js_divergence(p: ArrayLike, q: ArrayLike) -> float:
    """Jensen-Shannon divergence in nats: mean distance of two distributions from their mean (Lin 1991).

    Between 0 (the same) and ln 2 (nothing in common), and the same from both sides.

    >>> round(js_divergence([1.0, 0.0], [0.0, 1.0]), 6)
    0.693147
    """
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    mean = (p + q) / 2
    return float((kl_divergence(p, mean) + kl_divergence(q, mean)) / 2)
