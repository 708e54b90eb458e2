"""The widgets of the next run's settings, and what they add up to."""

from typing import Any

import streamlit as st

from engine import corpus as texts
from engine.config import ModelConfig
from engine.corpus import Corpus
from engine.parameter_parts import parameter_count
from engine.plan import SIZES, Plan
from engine.tokenizers import Tokenizer
from ui import own_tokenizers
from ui import training_settings as settings
from ui.lesson import literal
from ui.text_choice import usable
from ui.training_settings import (
    CUSTOM,
    LARGEST_VOCABULARY,
    RATES,
    SHAPE,
    SMALLEST_VOCABULARY,
    fill,
    key,
    value,
)
from ui.words import OBJECTIVES, duration, objective_name
from viz import format_count, visible
from wording import words

say = words("ui.training_form")

LARGEST_STEPS = 100_000


def draw() -> None:
    """Draw all settings, and what they add up to."""
    settings.TEXT.draw()
    _vocabulary()
    st.selectbox(
        say("label.size"), _size_names(), format_func=settings.size_name, key=key("size"),
        persist_state="session", on_change=_take_size,
    )  # fmt: skip
    st.segmented_control(
        say("label.objective"),
        list(OBJECTIVES),
        format_func=objective_name,
        key=key("objective"),
        persist_state="session",
        required=True,
        help=say("help.objective"),
    )
    steps, seed = st.columns(2)
    steps.number_input(
        say("label.steps"), 1, LARGEST_STEPS, step=100, key=key("steps"), persist_state="session"
    )
    seed.number_input(
        say("label.seed"), 0, 999_999, key=key("seed"), persist_state="session", help=say("help.seed")
    )
    summary = st.container()
    with st.expander(say("more_settings")):
        _more()
    with summary:
        _add_up()


def _vocabulary() -> None:
    names = {**say.table("tokenizer"), **own_tokenizers.names()}
    if value("tokenizer") not in names:
        fill(tokenizer="bpe")
        st.info(say("tokenizer_gone"))
    own = own_tokenizers.is_own(value("tokenizer"))  # its size is given, and its name is long
    kind, size = (st.container(), None) if own else st.columns(2)
    kind.selectbox(
        say("label.tokenizer"),
        list(names),
        format_func=lambda name: names.get(name, name),
        key=key("tokenizer"),
        persist_state="session",
    )
    if size is None:
        return
    size.number_input(
        say("label.vocab_size"),
        SMALLEST_VOCABULARY,
        LARGEST_VOCABULARY,
        step=128,
        key=key("vocab_size"),
        persist_state="session",
        disabled=value("tokenizer") != "bpe",
        help=say("help.vocab_size"),
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


def _number(place: Any, name: str, low: float, high: float, **options: Any) -> None:
    label = say(f"label.{name}")
    place.number_input(label, low, high, key=key(name), persist_state="session", **options)


def _choice(place: Any, name: str, options: list[Any], **more: Any) -> None:
    place.selectbox(say(f"label.{name}"), options, key=key(name), persist_state="session", **more)


def _named(place: Any, name: str, names: dict[str, str], **more: Any) -> None:
    _choice(place, name, list(names), format_func=lambda option: names.get(option, option), **more)


def _more() -> None:
    heads = settings.fit_heads()
    st.text_input(
        say("label.name"), key=key("name"), persist_state="session", max_chars=80,
        placeholder=say("made_from_text_and_size"),
    )  # fmt: skip
    a, b = st.columns(2)
    _number(a, "n_layer", 1, 12, on_change=_shape_changed)
    _choice(b, "n_head", heads, on_change=_shape_changed, help=say("help.n_head"))
    _number(a, "d_model", 8, 768, step=8, on_change=_shape_changed)
    _number(b, "context_length", 8, 512, step=8, on_change=_shape_changed, help=say("help.context_length"))
    _number(a, "batch_size", 1, 256, on_change=_shape_changed)
    _number(b, "dropout", 0.0, 0.9, step=0.05)
    _named(a, "positions", say.table("positions"))
    _named(b, "norm", say.table("norm"))
    _choice(a, "activation", ["gelu", "relu2", "swiglu"])
    _choice(b, "optimizer", list(RATES), on_change=_take_rate)
    _number(a, "learning_rate", 1e-7, 1e5, format="%g", step=1e-3)
    _named(b, "schedule", say.table("schedule"), help=say("help.schedule"))
    _number(a, "warmup_steps", 0, LARGEST_STEPS, step=10)
    _number(b, "weight_decay", 0.0, 10.0, step=0.05)
    own_share = value("text") == "stories"
    _number(a, "val_share", 0.0, 0.5, step=0.05, disabled=own_share, help=say("help.val_share"))
    causal = value("objective") != "mlm"
    _number(b, "mask_prob", 0.01, 1.0, step=0.05, disabled=causal, help=say("help.mask_prob"))
    st.toggle(
        say("label.mix_previous"), key=key("mix_previous"), persist_state="session",
        help=say("help.mix_previous"),
    )  # fmt: skip
    if settings.rounding_pays():
        st.toggle(
            say("label.bfloat16"), key=key("bfloat16"), persist_state="session", help=say("help.bfloat16")
        )
    _device()


def _device() -> None:
    """Where the run computes; a GPU that isn't here is not offered."""
    from engine.devices import devices

    names = say.table("devices")
    gpus = [device for device in devices() if device.id.startswith("cuda")]
    if not gpus:
        del names["cuda"]
    if value("device") not in names:
        fill(device="auto")
    label = f"{names['cuda']} · {gpus[0].name}" if gpus else ""
    shown = names | ({"cuda": label} if gpus else {})
    _named(st.container(), "device", shown, help=say("help.device") if gpus else say("help.device_cpu"))


def _take_rate() -> None:
    fill(learning_rate=RATES[value("optimizer")])


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
        _offer_shorter_context(error)
        return
    if split.notice:
        st.info(literal(split.notice))
    with st.popover(say("look_at_text")):
        _show_split(text, split)


def _describe_text(text: Corpus) -> None:
    counts = settings.statistics(text)
    st.caption(
        say(
            "text_size",
            characters=format_count(counts.characters),
            kinds=format_count(counts.kinds),
            words=format_count(counts.words),
        )
    )


def _describe_vocabulary(vocabulary: Tokenizer) -> None:
    asked = int(value("vocab_size"))
    if value("tokenizer") == "bpe" and asked != vocabulary.vocab_size:
        st.caption(say("vocabulary_asked_and_got", asked=asked, vocab_size=vocabulary.vocab_size))
    else:
        st.caption(say("vocabulary_size", n=vocabulary.vocab_size))
        own = own_tokenizers.names().get(value("tokenizer"))
        if own:
            st.caption(literal(own))


def _describe_run(split: Plan, config: ModelConfig) -> None:
    training = settings.train_config()
    tokens: dict[str, Any] = {
        "train": format_count(split.train_tokens),
        "rows": format_count(split.train_rows),
        "length": config.context_length,
    }
    if split.val_tokens:
        st.caption(say("tokens_to_learn_and_check", **tokens, val=format_count(split.val_tokens)))
    else:
        st.caption(say("tokens_to_learn", **tokens))
    time = duration(settings.seconds(config, training))
    st.caption(say("model_and_time", parameters=format_count(parameter_count(config)), time=time))


def _offer_shorter_context(error: ValueError) -> None:
    """The way out of a text that is too short, as a button."""
    context = getattr(error, "fitting", None)
    if context is not None:
        st.button(
            say("use_context", context=context), key=key("shorter"), on_click=_use_context, args=(context,)
        )


def _use_context(context: int) -> None:
    fill(context_length=context)
    _shape_changed()


def _show_split(text: Corpus, split: Plan, n: int = 400) -> None:
    train, val = texts.split(text, split.val_share)
    st.caption(say("it_learns_from"))
    st.text(train[:n])
    if val:
        st.caption(say("it_is_checked_with"))
        st.text(val[:n])
    if text.kind == "uploaded":
        points = " ".join(f"U+{ord(character):04X}" for character in train[:20])
        st.caption(say("code_points", points=points))
    if "\r\n" in text.text:
        st.caption(say("lines_end", sign=visible(chr(13) + chr(10))))
