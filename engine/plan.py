"""What a run would be before it starts: its vocabulary, its size, its share of the text, its time."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, split
from engine.muon import IN_A_STEP
from engine.parameter_parts import parameter_count
from engine.parts import n_parts, wanted_threads
from engine.tokenizers import Tokenizer, byte_tokenizer, char_tokenizer, train_bpe
from engine.trained_part import trained_parameters
from wording import words

say = words("engine.plan")

# One thread of a laptop core, before any run has been timed on this machine.
FLOPS_PER_SECOND = 80e9
SPLIT_GAIN = 1.6  # of two threads with half of the rows each
SECONDS_PER_STEP, SECONDS_PER_LAYER = 0.004, 0.004  # what a step costs however small the model is
SHORTEST_CONTEXT = 8

# What a run gets unless somebody chooses; docs/speed.md says how it was found.
OPTIMIZER: Literal["adamw", "muon"] = "muon"
LEARNING_RATES = {"adamw": 4e-3, "muon": 1e-2}
STORY_PROMPT = "Once upon a time, there was a"
MOMENTS = 24


def rhythm(steps: int) -> dict[str, int]:
    """How often a run of so many steps is looked at: settings of `TrainConfig`.

    >>> rhythm(600)
    {'eval_every': 25, 'checkpoint_every': 120, 'moments': 24}
    """
    return {"eval_every": max(5, steps // 24), "checkpoint_every": max(50, steps // 5), "moments": MOMENTS}


@dataclass(frozen=True)
class Size:
    """A named shape, with the rows in a step that suit it."""

    name: str
    n_layer: int
    n_head: int
    d_model: int
    context_length: int
    batch_size: int


SIZES = (
    Size("nano", 2, 2, 64, 64, 16),
    Size("small", 3, 3, 96, 64, 16),
    Size("medium", 4, 4, 128, 128, 16),
    Size("large", 6, 6, 192, 128, 16),
)


def make_tokenizer(kind: str, corpus: Corpus, vocab_size: int = 512) -> Tokenizer:
    """The vocabulary for a run.

    Args:
        kind: "bpe" learns one from the training text, "characters" takes every character of the text, "bytes"
            needs no text.
        corpus: the text of the run.
        vocab_size: asked of "bpe"; a short text may give fewer ids.

    Raises:
        ValueError: if the text is blank, the size too small, or the kind unknown.
    """
    if kind == "bytes":
        return byte_tokenizer()
    if kind == "characters":
        return char_tokenizer(corpus.text + (corpus.val_text or ""))
    if kind == "bpe":
        return train_bpe(corpus.text, vocab_size)
    raise ValueError(say("unknown_kind", kind=kind))


@dataclass(frozen=True)
class Plan:
    """How a text is used.

    Attributes:
        train_tokens, val_tokens: of the two parts.
        train_rows, val_rows: rows of the context length that fit side by side.
        val_share: end of the text kept for validation; 0 if it would be too short for one row.
        lost_tokens, lost_share: tokens of that too short end, and what share of the text it was to be.
        need: tokens of one row and of its targets.
    """

    train_tokens: int
    val_tokens: int
    train_rows: int
    val_rows: int
    val_share: float
    lost_tokens: int = 0
    lost_share: float = 0.0
    need: int = 0

    @property
    def notice(self) -> str:
        """One sentence if there is no validation for lack of text, else ""."""
        if not self.lost_tokens:
            return ""
        return say("no_validation", val_share=self.lost_share, n_val=self.lost_tokens, need=self.need)


class TooShortError(ValueError):
    """A text that does not fill one row; `fitting` is the longest context length that it fills, or None."""

    def __init__(self, n_tokens: int, context_length: int) -> None:
        self.fitting = n_tokens - 1 if n_tokens - 1 >= SHORTEST_CONTEXT else None
        super().__init__(too_short(n_tokens, context_length))


def make_plan(corpus: Corpus, tokenizer: Tokenizer, context_length: int, val_share: float = 0.1) -> Plan:
    """Split a text as a run would, and say whether it is enough.

    A validation part of less than one row is given to training: then there is no validation.

    Raises:
        ValueError: if the training part is shorter than one row, with the numbers.
    """
    need = context_length + 1
    n_train, n_val = (len(tokenizer.encode(text)) for text in split(corpus, val_share))
    lost_tokens, lost_share = 0, 0.0
    if n_val < need and corpus.val_text is None:
        if n_val:
            lost_tokens, lost_share = n_val, val_share
        n_train, n_val, val_share = len(tokenizer.encode(corpus.text)), 0, 0.0
    if n_train < need:
        raise TooShortError(n_train, context_length)
    return Plan(
        n_train,
        n_val,
        (n_train - 1) // context_length,
        max(0, n_val - 1) // context_length,
        val_share,
        lost_tokens,
        lost_share,
        need,
    )


def too_short(n_tokens: int, context_length: int) -> str:
    """The sentence about a text that does not fill one row."""
    given = {"n": n_tokens, "need": context_length + 1, "length": context_length}
    if n_tokens - 1 >= SHORTEST_CONTEXT:
        return say("too_short_or_shorter_context", **given, fitting=n_tokens - 1)
    return say("too_short", **given)


@dataclass(frozen=True)
class Timing:
    """How fast a run was on this machine."""

    model: ModelConfig
    train: TrainConfig
    tokens_per_second: float


def step_seconds(model: ModelConfig, train: TrainConfig, timings: Sequence[Timing] = ()) -> float:
    """Estimated seconds of one training step: for each token 2 operations a weight, and the attention.

    Twice as many again follow for what learns: with `last_blocks` only these are gone back through.

    Args:
        model: of the run.
        train: of the run.
        timings: runs on this machine; the estimate is scaled by how much slower or faster they were.
    """
    ratios = [
        _tokens(t.model, t.train) / t.tokens_per_second / _step_seconds(t.model, t.train) for t in timings
    ]
    return _step_seconds(model, train) * (median(ratios) if ratios else 1.0)


def _tokens(model: ModelConfig, train: TrainConfig) -> int:
    return model.context_length * train.batch_size


def _step_seconds(model: ModelConfig, train: TrainConfig) -> float:
    weights, tokens = parameter_count(model), _tokens(model, train)
    learning = trained_parameters(model, train.last_blocks)
    attention = model.context_length * model.n_head * model.d_head  # of a block
    forward = 2 * weights + 4 * model.n_layer * attention
    backward = 4 * learning + 8 * _learning_blocks(model, train) * attention
    work = (forward + backward) * tokens + _muon_work(model, train)
    at_once = min(n_parts(train.batch_size, tokens, learning), _threads()) > 1
    fixed = SECONDS_PER_STEP + SECONDS_PER_LAYER * model.n_layer
    return fixed + work / (FLOPS_PER_SECOND * (SPLIT_GAIN if at_once else 1))


def _learning_blocks(model: ModelConfig, train: TrainConfig) -> int:
    return model.n_layer if train.last_blocks is None else train.last_blocks


def _threads() -> int:
    """Of a run; one if the setting is no number, of which the run itself will tell."""
    try:
        return wanted_threads()
    except ValueError:
        return 1


def _muon_work(model: ModelConfig, train: TrainConfig) -> float:
    """Operations of Muon's update: each polynomial of a matrix (M,N), M ≤ N, takes three products."""
    if train.optimizer != "muon":
        return 0.0
    sides = [(model.d_model, model.d_model)] * 4 + [(model.d_model, model.ff_width)] * 2
    return (
        _learning_blocks(model, train)
        * IN_A_STEP
        * sum(4 * m * m * n + 2 * m**3 for m, n in map(sorted, sides))
    )
