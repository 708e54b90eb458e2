"""Ways to choose tokens, run from one prompt and measured with one yardstick."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from engine.model import Transformer
from engine.row_reading import Tell, quiet
from engine.sampling import generate
from engine.search import beam_search
from wording import words

say = words("engine.strategies")


@dataclass(frozen=True)
class Strategy:
    """A way to choose: keywords of `generate`, or a beam.

    Attributes:
        name: in English, as `data-strategy` has it.
        settings: keywords of `engine.sampling.generate`.
        beam: width of a beam search; 0 draws with `settings`.
    """

    name: str
    settings: dict[str, Any]
    beam: int = 0

    @property
    def label(self) -> str:
        """As the screen shows it."""
        if self.beam:
            return say("beam", n=self.beam)
        ((name, value),) = self.settings.items()
        return say(f"drawn.{name}", value=value) if value else say("greedy")


STRATEGIES = (
    Strategy("greedy", {"temperature": 0.0}),
    Strategy("beam of 4", {}, beam=4),
    Strategy("temperature 0.7", {"temperature": 0.7}),
    Strategy("temperature 1", {"temperature": 1.0}),
    Strategy("temperature 1.5", {"temperature": 1.5}),
    Strategy("top-k 5", {"top_k": 5}),
    Strategy("top-p 0.9", {"top_p": 0.9}),
)


@dataclass(frozen=True)
class Written:
    """What a strategy wrote.

    Attributes:
        ids: of the continuation.
        log_prob: natural log of its probability under the model's own distribution.
    """

    ids: tuple[int, ...]
    log_prob: float

    @property
    def per_token(self) -> float:
        """Mean log-probability of a token; NaN for nothing."""
        return self.log_prob / len(self.ids) if self.ids else float("nan")


def write(
    model: Transformer,
    ids: Sequence[int],
    strategy: Strategy,
    *,
    n_tokens: int,
    seed: int,
    stop_ids: Collection[int] = (),
    jump: int = 1,
    tell: Tell = quiet,
) -> Written:
    """Continue a prompt by a strategy; only the drawing ones use the seed.

    `tell` is told how many tokens are written, and of how many at most; `jump` is as in `generate`.
    """
    how: dict[str, Any] = {"n_tokens": n_tokens, "stop_ids": stop_ids, "jump": jump}
    tell(0, n_tokens)
    if strategy.beam:
        best = beam_search(model, ids, width=strategy.beam, tell=tell, **how)[0]
        return Written(best.ids, best.log_prob)
    written, log_prob = list[int](), 0.0
    for step in generate(model, ids, seed=seed, **how, **strategy.settings):
        written.append(step.id)
        log_prob += step.log_prob
        tell(len(written), n_tokens)
    return Written(tuple(written), log_prob)


def distinct(ids: Sequence[int], n: int) -> float:
    """Share of the runs of n tokens that are different ones (Li et al. 2015, arXiv:1510.03055).

    NaN if the text has fewer than n tokens. 1 - distinct(ids, 4) is the repetition of Welleck et al. 2019,
    arXiv:1908.04319.

    >>> distinct([1, 2, 1, 2, 1], 2)
    0.5
    """
    runs = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return len(set(runs)) / len(runs) if runs else float("nan")
