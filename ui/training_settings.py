"""The settings of the next run as they stand, and the run that they describe."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from engine import corpus as texts
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, Statistics
from engine.plan import (
    LEARNING_RATES,
    OPTIMIZER,
    SIZES,
    STORY_PROMPT,
    Plan,
    Timing,
    make_plan,
    make_tokenizer,
    rhythm,
    step_seconds,
)
from engine.tokenizers import Tokenizer
from ui import own_tokenizers, resources
from ui.text_choice import TEXTS, TextChoice, usable
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunSpec

say = words("ui.training_settings")

RATES = LEARNING_RATES
CUSTOM = "custom"
MOST_HEADS = 16
SMALLEST_VOCABULARY, LARGEST_VOCABULARY = 256, 8192
SHAPE = ("n_layer", "n_head", "d_model", "context_length", "batch_size")
TEXT = TextChoice("training", TEXTS)

_SMALL = next(size for size in SIZES if size.name == "small")
DEFAULTS: dict[str, Any] = {
    "text": "stories",
    "paste": "",
    "encoding": None,
    "tokenizer": "bpe",
    "vocab_size": 512,
    "size": "small",
    "objective": "clm",
    "steps": 600,
    "seed": 0,
    "name": "",
    **{name: getattr(_SMALL, name) for name in SHAPE},
    "positions": "rotary",
    "norm": "layernorm",
    "activation": "gelu",
    "mix_previous": False,
    "optimizer": OPTIMIZER,
    "learning_rate": RATES[OPTIMIZER],
    "warmup_steps": 50,
    "schedule": "linear",
    "dropout": 0.0,
    "weight_decay": 0.1,
    "mask_prob": 0.15,
    "val_share": 0.1,
    "bfloat16": False,
    "device": "auto",
}


def key(name: str) -> str:
    """Session key of a setting's widget."""
    return f"training_{name}"


def value(name: str) -> Any:
    """A setting as it stands."""
    return st.session_state.get(key(name), DEFAULTS[name])


def size_name(size: str) -> str:
    """What the screen calls a size of models."""
    return say(f"size.{size}")


def prepare() -> None:
    """Give every setting a value before its widget is drawn."""
    for name, default in DEFAULTS.items():
        st.session_state.setdefault(key(name), default)


def fill(**settings: Any) -> None:
    """Change settings. For callbacks."""
    for name, new in settings.items():
        st.session_state[key(name)] = new


def head_choices(d_model: int, positions: str) -> list[int]:
    """Numbers of heads that divide the width; with rotary positions each head's width must be even."""
    fitting = [
        n for n in range(1, min(d_model, MOST_HEADS) + 1)
        if d_model % n == 0 and (positions != "rotary" or d_model // n % 2 == 0)
    ]  # fmt: skip
    return fitting or [1]


def fit_heads() -> list[int]:
    """The numbers of heads that fit the width; the chosen one becomes the nearest of them.

    A browser that still shows the choices of another size may send one that does not fit, together with a
    press on Start.
    """
    heads, chosen = head_choices(int(value("d_model")), value("positions")), value("n_head")
    if chosen not in heads:  # and it may send it as a string
        fill(n_head=min(heads, key=lambda n: abs(n - int(chosen))))
    return heads


def corpus() -> Corpus:
    """The chosen text.

    Raises:
        ValueError: if there is none yet, or it can't be read; UnknownEncoding if an encoding must be chosen.
    """
    return TEXT.corpus()


@st.cache_resource(max_entries=8, show_spinner=False)
def _tokenizer(kind: str, vocab_size: int, fingerprint: str, _corpus: Corpus) -> Tokenizer:
    return make_tokenizer(kind, _corpus, vocab_size)


@st.cache_resource(max_entries=16, show_spinner=False)
def _plan(vocabulary: str, fingerprint: str, length: int, share: float, _t: Tokenizer, _c: Corpus) -> Plan:
    return make_plan(_c, _t, length, share)


def statistics(text: Corpus) -> Statistics:
    """Size of a text; counted once."""
    return _counted(text.sha256, text)


@st.cache_resource(max_entries=8, show_spinner=False)
def _counted(fingerprint: str, _corpus: Corpus) -> Statistics:
    return texts.statistics(_corpus.text + (_corpus.val_text or ""))


def tokenizer(text: Corpus) -> Tokenizer:
    """The chosen vocabulary for a text; learned once, or one that was kept on the Tokens page.

    Raises:
        ValueError: one sentence, if there can't be such a vocabulary.
    """
    usable(text)
    if own_tokenizers.is_own(value("tokenizer")):
        return own_tokenizers.load(value("tokenizer"))
    size = min(max(int(value("vocab_size")), SMALLEST_VOCABULARY), LARGEST_VOCABULARY)  # it may be forged
    return _tokenizer(value("tokenizer"), size, text.sha256, text)


def plan(text: Corpus, vocabulary: Tokenizer) -> Plan:
    """How the text is split; counted once.

    Raises:
        ValueError: if it is too short, with the numbers.
    """
    return _plan(
        vocabulary.hash,
        text.sha256,
        int(value("context_length")),
        float(value("val_share")),
        vocabulary,
        text,
    )


def model_config(vocab_size: int) -> ModelConfig:
    """The chosen shape.

    Raises:
        ValueError: if its numbers don't go together.
    """
    names = ("objective", "positions", "norm", "activation", "dropout", "mix_previous")
    chosen: dict[str, Any] = {name: value(name) for name in names}
    chosen |= {name: int(value(name)) for name in SHAPE if name != "batch_size"}
    return ModelConfig(vocab_size=vocab_size, **chosen)


def train_config() -> TrainConfig:
    """The chosen way to learn, with about 24 evaluations on the way and 24 moments to go back to."""
    steps = int(value("steps"))
    names = ("optimizer", "learning_rate", "schedule", "weight_decay", "mask_prob")
    chosen: dict[str, Any] = {name: value(name) for name in names}
    chosen |= {name: int(value(name)) for name in ("batch_size", "warmup_steps", "seed")} | rhythm(steps)
    return TrainConfig(
        steps=steps,
        aligned_share=0.5 if value("text") == "stories" else 0.0,
        precision="bfloat16" if value("bfloat16") and rounding_pays() else "auto",
        **chosen,
    )


def rounding_pays() -> bool:
    """Whether this processor multiplies faster in 16 bits. A GPU that does is used that way anyway."""
    from torch import device

    from engine.precision import has_units

    return has_units(device("cpu"))


def spec() -> "RunSpec":
    """The run that Start starts.

    Raises:
        ValueError: one sentence, if there can't be such a run.
    """
    from engine.runs import RunSpec

    text = corpus()
    vocabulary = tokenizer(text)
    split = plan(text, vocabulary)
    stories = text.kind == "stories" and value("objective") == "clm"
    return RunSpec(
        name=value("name").strip() or f"{text.title}, {size_name(value('size'))}",
        corpus=text,
        tokenizer=vocabulary,
        model=model_config(vocabulary.model_vocab_size(value("objective"))),
        train=train_config(),
        val_share=split.val_share,
        device=str(value("device")),
        sample_prompt=STORY_PROMPT if stories else None,
    )


def seconds(config: ModelConfig, training: TrainConfig) -> float:
    """How long the run will take, judged by the runs on this machine."""
    timed = [info for info in resources.run_store().list() if info.tokens_per_second]
    timings = [Timing(info.model, info.train, info.tokens_per_second or 1.0) for info in timed[:5]]
    return step_seconds(config, training, timings) * training.steps
