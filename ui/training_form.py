"""The widgets of the next run's settings, and what they add up to."""

from typing import Any

import streamlit as st

from engine import corpus as texts
from engine.config import ModelConfig
from engine.corpus import Corpus
from engine.plan import SIZES, Plan, parameter_count
from engine.tokenizers import Tokenizer
from ui import own_tokenizers
from ui import training_settings as settings
from ui.lesson import literal
from ui.text_choice import usable
from ui.training_settings import CUSTOM, RATES, SHAPE, TOKENIZERS, fill, key, value
from ui.words import OBJECTIVES, duration
from viz import format_count, visible

_SHORT = {  # names that fit a narrow box
    "learned": "learned",
    "sinusoidal": "sines",
    "rotary": "rotary",
    "layernorm": "Layer",
    "rmsnorm": "RMS",
}
LARGEST_STEPS, LARGEST_VOCABULARY, MOST_HEADS = 100_000, 8192, 16


def draw() -> None:
    """Draw all settings, and what they add up to."""
    settings.TEXT.draw()
    _vocabulary()
    st.selectbox("Model size", _size_names(), key=key("size"), persist_state="session", on_change=_take_size)
    st.segmented_control(
        "It learns to guess the",
        list(OBJECTIVES),
        format_func=OBJECTIVES.__getitem__,
        key=key("objective"),
        persist_state="session",
        required=True,
        help="next token: from those before it (causal, CLM). hidden tokens: from both sides (masked, MLM).",
    )
    steps, seed = st.columns(2)
    steps.number_input("Steps", 1, LARGEST_STEPS, step=100, key=key("steps"), persist_state="session")
    seed.number_input(
        "Seed", 0, 999_999, key=key("seed"), persist_state="session", help="The same seed, the same run."
    )
    summary = st.container()
    with st.expander("More settings"):
        _more()
    with summary:
        _add_up()


def _vocabulary() -> None:
    names = {**TOKENIZERS, **own_tokenizers.names()}
    if value("tokenizer") not in names:
        fill(tokenizer="bpe")
        st.info("Your kept tokenizer is not here any more: a BPE of the text takes its place.")
    own = own_tokenizers.is_own(value("tokenizer"))  # its size is given, and its name is long
    kind, size = (st.container(), None) if own else st.columns(2)
    kind.selectbox(
        "Tokenizer",
        list(names),
        format_func=names.__getitem__,
        key=key("tokenizer"),
        persist_state="session",
    )
    if size is None:
        return
    size.number_input(
        "Vocabulary",
        256,
        LARGEST_VOCABULARY,
        step=128,
        key=key("vocab_size"),
        persist_state="session",
        disabled=value("tokenizer") != "bpe",
        help="Ids that an own BPE may have: the 256 bytes, and a merge for each further one.",
    )


def _size_names() -> list[str]:
    return [*(size.name for size in SIZES), CUSTOM]


def _take_size() -> None:
    for size in SIZES:
        if size.name == value("size"):
            fill(**{name: getattr(size, name) for name in SHAPE})


def _shape_changed() -> None:
    shape = tuple(value(name) for name in SHAPE)
    same = [size.name for size in SIZES if tuple(getattr(size, name) for name in SHAPE) == shape]
    fill(size=same[0] if same else CUSTOM)


def head_choices(d_model: int, positions: str) -> list[int]:
    """Numbers of heads that divide the width; with rotary positions each head's width must be even."""
    fitting = [
        n for n in range(1, min(d_model, MOST_HEADS) + 1)
        if d_model % n == 0 and (positions != "rotary" or d_model // n % 2 == 0)
    ]  # fmt: skip
    return fitting or [1]


def _number(place: Any, name: str, label: str, low: float, high: float, **options: Any) -> None:
    place.number_input(label, low, high, key=key(name), persist_state="session", **options)


def _choice(place: Any, name: str, label: str, options: list[Any], **more: Any) -> None:
    place.selectbox(label, options, key=key(name), persist_state="session", **more)


def _more() -> None:
    heads = head_choices(int(value("d_model")), value("positions"))
    n_head = value("n_head")
    if n_head not in heads:  # a browser that still shows the former choices answers with a string
        fill(n_head=min(heads, key=lambda n: abs(n - int(n_head))))
    st.text_input(
        "Name of the run",
        key=key("name"),
        persist_state="session",
        max_chars=80,
        placeholder="made from the text and size",
    )
    a, b = st.columns(2)
    _number(a, "n_layer", "Layers", 1, 12, on_change=_shape_changed)
    _choice(b, "n_head", "Heads", heads, on_change=_shape_changed, help="Only numbers that divide the width.")
    _number(a, "d_model", "Width", 8, 768, step=8, on_change=_shape_changed)
    _number(
        b,
        "context_length",
        "Context",
        8,
        512,
        step=8,
        on_change=_shape_changed,
        help="Tokens that it sees at once.",
    )
    _number(a, "batch_size", "Rows in a step", 1, 256, on_change=_shape_changed)
    _number(b, "dropout", "Dropout", 0.0, 0.9, step=0.05)
    _choice(a, "positions", "Positions", list(_SHORT)[:3], format_func=_SHORT.__getitem__)
    _choice(b, "norm", "Norm", list(_SHORT)[3:], format_func=_SHORT.__getitem__)
    _choice(a, "activation", "Activation", ["gelu", "relu2", "swiglu"])
    _choice(
        b,
        "optimizer",
        "Optimizer",
        list(RATES),
        on_change=lambda: fill(learning_rate=RATES[value("optimizer")]),
    )
    _number(a, "learning_rate", "Learning rate", 1e-7, 1e5, format="%g", step=1e-3)
    _choice(
        b,
        "schedule",
        "Schedule",
        ["linear", "cosine", "constant"],
        help="How the rate falls towards the end.",
    )
    _number(a, "warmup_steps", "Warm-up steps", 0, LARGEST_STEPS, step=10)
    _number(b, "weight_decay", "Weight decay", 0.0, 10.0, step=0.05)
    _number(
        a,
        "val_share",
        "Validation share",
        0.0,
        0.5,
        step=0.05,
        disabled=value("text") == "stories",
        help="End of the text that is only for checking. The stories have their own.",
    )
    _number(
        b,
        "mask_prob",
        "Share hidden",
        0.01,
        1.0,
        step=0.05,
        disabled=value("objective") != "mlm",
        help="Of the tokens, when it learns hidden ones.",
    )


def _add_up() -> None:
    """What the settings mean, as far as they go, and why they can't be, if they can't."""
    try:
        text = settings.corpus()
        usable(text)
        _describe_text(text)
        vocabulary = settings.tokenizer(text)
        _describe_vocabulary(vocabulary)
        split = settings.plan(text, vocabulary)
        _describe_run(split, settings.model_config(vocabulary.model_vocab_size(value("objective"))))
    except texts.UnknownEncoding:
        return  # asked beside the file
    except ValueError as error:
        st.warning(literal(str(error)))
        _offer_shorter_context(str(error))
        return
    if split.notice:
        st.info(literal(split.notice))
    with st.popover("Look at the text"):
        _show_split(text, split)


def _describe_text(text: Corpus) -> None:
    counts = settings.statistics(text)
    st.caption(
        f"**Text** {format_count(counts.characters)} characters ({format_count(counts.kinds)} different), "
        f"{format_count(counts.words)} words"
    )


def _describe_vocabulary(vocabulary: Tokenizer) -> None:
    asked = int(value("vocab_size"))
    if value("tokenizer") == "bpe" and asked != vocabulary.vocab_size:
        st.caption(
            f"**Vocabulary** asked {asked:,}, got {vocabulary.vocab_size:,}: "
            "this text has no more pairs to merge"
        )
    else:
        st.caption(f"**Vocabulary** {format_count(vocabulary.vocab_size)} ids")
        own = own_tokenizers.names().get(value("tokenizer"))
        if own:
            st.caption(literal(own))


def _describe_run(split: Plan, config: ModelConfig) -> None:
    training = settings.train_config()
    checks = f"{format_count(split.val_tokens)} to check with" if split.val_tokens else "none to check with"
    time = duration(settings.seconds(config, training))
    st.caption(
        f"**Tokens** {format_count(split.train_tokens)} to learn from "
        f"({format_count(split.train_rows)} rows of {config.context_length}), {checks}"
    )
    st.caption(f"**Model** {format_count(parameter_count(config))} parameters  \n**Time** about {time}")


def _offer_shorter_context(message: str) -> None:
    """The way out of a text that is too short, as a button."""
    fitting = message.rpartition("at most ")[2].rstrip(".").replace(",", "")
    if "one training row needs" in message and fitting.isdigit():
        context = int(fitting)
        st.button(f"Use a context of {context}", key=key("shorter"), on_click=_use_context, args=(context,))


def _use_context(context: int) -> None:
    fill(context_length=context)
    _shape_changed()


def _show_split(text: Corpus, split: Plan, n: int = 400) -> None:
    train, val = texts.split(text, split.val_share)
    st.caption("It learns from this:")
    st.text(train[:n])
    if val:
        st.caption("It is checked with this, which it never learns from:")
        st.text(val[:n])
    if text.kind == "uploaded":
        points = " ".join(f"U+{ord(character):04X}" for character in train[:20])
        st.caption(f"The first characters as code points: {points}")
    if "\r\n" in text.text:
        st.caption(f"Lines end in {visible(chr(13) + chr(10))} (CR LF), which is kept.")
