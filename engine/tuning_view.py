"""What a fine-tuning changed: token by token in one pair, in answers written before and after, in rewards."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.aims import log_probs_of
from engine.config import TrainConfig
from engine.framing import Framing
from engine.instructions import encode_pairs
from engine.metrics import IGNORED, log_softmax
from engine.model import Transformer
from engine.pair_files import Pair, Preference
from engine.preferences import encode_preferences
from engine.run_measures import FurtherTexts
from engine.samples import ANSWER_TOKENS, write_answer
from engine.tokenizers import Tokenizer

ROWS = 8  # preferences scored at once


@dataclass(frozen=True)
class PairToken:
    r"""One token of a pair as a model reads it.

    Attributes:
        text: of the token; bytes that are no whole character as ``\xf0``.
        counted: whether the loss counts it: it belongs to the answer, or ends it.
        before, after: -log p that the two models give it after all tokens before it, nats; None for the
            first, which nothing predicts.
    """

    text: str
    counted: bool
    before: float | None
    after: float | None


def pair_tokens(pair: Pair, framing: Framing, before: Transformer, after: Transformer) -> list[PairToken]:
    """The tokens of a pair with what both models make of them.

    Raises:
        ValueError: if the answer doesn't fit the context.
    """
    rows = encode_pairs([pair], framing, before.config.context_length)
    ids, start = rows.rows[0], rows.starts[0]
    losses = [_surprisals(model, ids) for model in (before, after)]
    pieces = [framing.tokenizer.token_bytes(i).decode("utf-8", "backslashreplace") for i in ids.tolist()]
    return [PairToken(pieces[0], False, None, None)] + [
        PairToken(pieces[k], k >= start, float(losses[0][k - 1]), float(losses[1][k - 1]))
        for k in range(1, len(ids))
    ]


def answer_loss(tokens: Sequence[PairToken], which: str) -> float:
    """Mean of the counted numbers, which is the loss of this pair; `which` is "before" or "after"."""
    counted = [getattr(token, which) for token in tokens if token.counted]
    return math.fsum(counted) / len(counted)


@torch.no_grad()
def _surprisals(model: Transformer, ids: torch.Tensor) -> NDArray[np.float64]:
    """(n-1,) of each id but the first, nats."""
    logits = model(ids[None, :-1].to(model.device))[0].float().cpu().numpy()
    targets = ids[1:].numpy()
    found: NDArray[np.float64] = -log_softmax(logits)[np.arange(len(targets)), targets]
    return found


@dataclass(frozen=True)
class Share:
    """How many of some answers have a property.

    Attributes:
        n: answers.
        yes: those that have it.
    """

    n: int
    yes: int

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return self.yes / self.n

    @property
    def error(self) -> float:
        """Standard error of the share, √(p (1 - p) / n); see `interval` where it is 0."""
        return math.sqrt(self.share * (1 - self.share) / self.n)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share lies in 95 of 100 cases (Wilson 1927): also right if all or none have it.

        >>> [round(end, 3) for end in Share(20, 20).interval]
        [0.839, 1.0]
        """
        z, p, n = 1.959964, self.share, self.n
        middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, (middle - half) / (1 + z * z / n)), min(1.0, (middle + half) / (1 + z * z / n))


@dataclass(frozen=True)
class Answer:
    """What a model wrote for a prompt, and whether it is what was asked for; None if nobody can tell."""

    prompt: str
    text: str
    good: bool | None = None


def write_answers(
    model: Transformer,
    framing: Framing,
    pairs: Sequence[Pair | Preference],
    judge: Callable[[Pair | Preference, str], bool] | None = None,
    *,
    seed: int = 0,
    n_tokens: int = ANSWER_TOKENS,
    temperature: float = 1.0,
) -> Iterator[Answer]:
    """An answer to the prompt of each pair, one after the other; pair k has the dice of seed + k.

    Two models with the same seed draw with the same numbers.

    Args:
        model: causal.
        framing: as it was trained with.
        pairs: whose prompts are used.
        judge: `follows`, or what a text is asked; None where nobody can tell.
        seed: of the dice.
        n_tokens: at most.
        temperature: of the draws.
    """
    for k, pair in enumerate(pairs):
        text = write_answer(
            model, framing, pair.prompt, n_tokens=n_tokens, seed=seed + k, temperature=temperature
        )
        yield Answer(pair.prompt, text, None if judge is None else judge(pair, text))


def share_of(answers: Sequence[Answer]) -> Share:
    """How many of some answers are good."""
    return Share(len(answers), sum(answer.good is True for answer in answers))


@dataclass(frozen=True, eq=False)
class Rewards:
    """What a preference run gives the answers of some preferences.

    Attributes:
        chosen, rejected: (N,) implicit reward of the wanted and of the other answer, β · log(π / π_ref).
        log_ratios: (N,2) log π - log π_ref of both.
        n_tokens: (N,2) tokens of both answers.
    """

    chosen: NDArray[np.float64]
    rejected: NDArray[np.float64]
    log_ratios: NDArray[np.float64]
    n_tokens: NDArray[np.int64]

    @property
    def margins(self) -> NDArray[np.float64]:
        """(N,) reward of the wanted answer minus that of the other."""
        return self.chosen - self.rejected

    @property
    def accuracy(self) -> Share:
        """How many margins are above 0."""
        return Share(len(self.chosen), int((self.margins > 0).sum()))


def rewards(
    preferences: Sequence[Preference], framing: Framing, before: Transformer, after: Transformer, beta: float
) -> Rewards:
    """The rewards that training gave: `before` is the reference. With both the same model all are 0.

    Raises:
        ValueError: if an answer doesn't fit the context.
    """
    rows = encode_preferences(preferences, framing, before.config.context_length)
    batch = rows.batch(range(len(rows)), torch.zeros(len(rows), 2))
    policy, reference = (log_probs_of(m, batch.inputs, batch.targets, ROWS).numpy() for m in (after, before))
    ratios = policy - reference
    n_tokens = (batch.targets != IGNORED).sum(-1).numpy()
    return Rewards(beta * ratios[:, 0], beta * ratios[:, 1], ratios, n_tokens)


def text_loss(
    model: Transformer, tokenizer: Tokenizer, text: str, config: TrainConfig | None = None
) -> float:
    """Mean surprisal of a text, nats a token: what it costs a model to have learned something else.

    The same number as "also" in the records of a run with these settings.
    """
    return FurtherTexts({"text": text}, tokenizer, model, config or TrainConfig()).losses()["text"]
