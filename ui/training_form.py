"""The settings of the next run: widgets, and what they add up to."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from engine import corpus as texts
from engine.config import ModelConfig, Objective, TrainConfig
from engine.corpus import Corpus, Statistics
from engine.plan import SIZES, Plan, Timing, make_plan, make_tokenizer, parameter_count, step_seconds
from engine.tokenizers import Tokenizer
from ui import resources
from ui.lesson import literal
from ui.words import duration
from viz import format_count, visible

if TYPE_CHECKING:
    from engine.runs import RunSpec

TEXTS = {
    "stories": "Made-up stories",
    "python-docs": "Python’s help texts",
    "pasted": "Paste a text",
    "uploaded": "Upload a .txt file",
}
TOKENIZERS = {"bpe": "Own BPE", "characters": "Characters", "bytes": "Bytes"}
OBJECTIVES = {"clm": "next token", "mlm": "hidden tokens"}
RATES = {"adamw": 4e-3, "muon": 2e-2}
STORY_PROMPT = "Once upon a time, there was a"
CUSTOM = "custom"
SHAPE = ("n_layer", "n_head", "d_model", "context_length", "batch_size")
LARGEST_STEPS, LARGEST_VOCABULARY, MOST_HEADS = 100_000, 8192, 16
_UPLOAD = "_training_upload"

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
    "optimizer": "adamw",
    "learning_rate": RATES["adamw"],
    "warmup_steps": 50,
    "schedule": "linear",
    "dropout": 0.0,
    "weight_decay": 0.1,
    "mask_prob": 0.15,
    "val_share": 0.1,
}


def key(name: str) -> str:
    """Session key of a setting's widget."""
    return f"training_{name}"


def value(name: str) -> Any:
    """A setting as it stands."""
    return st.session_state.get(key(name), DEFAULTS[name])


def prepare() -> None:
    """Give every setting a value before its widget is drawn."""
    for name, default in DEFAULTS.items():
        st.session_state.setdefault(key(name), default)


def fill(**settings: Any) -> None:
    """Change settings. For callbacks."""
    for name, new in settings.items():
        st.session_state[key(name)] = new


# ---- what the settings add up to


def corpus() -> Corpus:
    """The chosen text.

    Raises:
        ValueError: if there is none yet, or it can't be read; UnknownEncoding if an encoding must be chosen.
    """
    kind = value("text")
    if kind == "stories":
        return texts.stories()
    if kind == "python-docs":
        return texts.python_docs()
    if kind == "uploaded":
        name, data = st.session_state.get(_UPLOAD) or ("", b"")
        if not name:
            raise ValueError("There is no file yet. Choose one above, or another text.")
        return texts.own_text(texts.decode_upload(data, value("encoding")), name=name, kind="uploaded")
    return texts.own_text(value("paste"))


@st.cache_resource(max_entries=8, show_spinner=False)
def _tokenizer(kind: str, vocab_size: int, fingerprint: str, _corpus: Corpus) -> Tokenizer:
    return make_tokenizer(kind, _corpus, vocab_size)


@st.cache_resource(max_entries=16, show_spinner=False)
def _plan(vocabulary: str, fingerprint: str, length: int, share: float, _t: Tokenizer, _c: Corpus) -> Plan:
    return make_plan(_c, _t, length, share)


@st.cache_resource(max_entries=8, show_spinner=False)
def _statistics(fingerprint: str, _corpus: Corpus) -> Statistics:
    return texts.statistics(_corpus.text + (_corpus.val_text or ""))


def usable(text: Corpus) -> None:
    """Refuse a text without anything to learn from.

    Raises:
        ValueError: if it is blank or too long.
    """
    size = len(text.text.encode())
    if not text.text.strip():
        raise ValueError("This text is blank: there is nothing to learn from. Paste some words, or choose another text.")
    if size > texts.MAX_UPLOAD_BYTES and text.kind in ("pasted", "uploaded"):
        raise ValueError(f"The text has {size:,} bytes; at most {texts.MAX_UPLOAD_BYTES:,} are taken. Use a part of it.")


def tokenizer(text: Corpus) -> Tokenizer:
    """The chosen vocabulary for a text; learned once."""
    usable(text)
    return _tokenizer(value("tokenizer"), int(value("vocab_size")), text.sha256, text)


def plan(text: Corpus, vocabulary: Tokenizer) -> Plan:
    """How the text is split; counted once.

    Raises:
        ValueError: if it is too short, with the numbers.
    """
    return _plan(
        vocabulary.hash, text.sha256, int(value("context_length")), float(value("val_share")), vocabulary, text
    )


def model_config(vocab_size: int) -> ModelConfig:
    """The chosen shape.

    Raises:
        ValueError: if its numbers don't go together.
    """
    objective: Objective = value("objective")
    return ModelConfig(
        vocab_size=vocab_size,
        objective=objective,
        **{name: int(value(name)) for name in SHAPE if name != "batch_size"},
        **{name: value(name) for name in ("positions", "norm", "activation", "dropout")},
    )


def train_config() -> TrainConfig:
    """The chosen way to learn, with about 24 evaluations and 5 checkpoints on the way."""
    steps = int(value("steps"))
    return TrainConfig(
        steps=steps,
        eval_every=max(5, steps // 24),
        checkpoint_every=max(50, steps // 5),
        aligned_share=0.5 if value("text") == "stories" else 0.0,
        **{name: int(value(name)) for name in ("batch_size", "warmup_steps", "seed")},
        **{name: value(name) for name in ("optimizer", "learning_rate", "schedule", "weight_decay", "mask_prob")},
    )


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
        name=value("name").strip() or f"{text.name}, {value('size')}",
        corpus=text,
        tokenizer=vocabulary,
        model=model_config(vocabulary.model_vocab_size(value("objective"))),
        train=train_config(),
        val_share=split.val_share,
        sample_prompt=STORY_PROMPT if stories else None,
    )


# ---- the widgets


def draw() -> None:
    """Draw all settings, and what they add up to."""
    _text()
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
    seed.number_input("Seed", 0, 999_999, key=key("seed"), persist_state="session", help="The same seed, the same run.")
    summary = st.container()
    with st.expander("More settings"):
        _more()
    with summary:
        _add_up()


def _text() -> None:
    st.selectbox("Text", list(TEXTS), format_func=TEXTS.__getitem__, key=key("text"), persist_state="session")
    if value("text") == "pasted":
        st.text_area(
            "Your text",
            key=key("paste"),
            height=140,
            persist_state="session",
            placeholder="Paste at least a few sentences here.",
        )
    elif value("text") == "uploaded":
        _upload()


def _upload() -> None:
    st.file_uploader(
        "A plain text file", type="txt", key=key("file"), max_upload_size=5, on_change=_keep_upload,
        help="UTF-8, or another encoding that you choose. At most 5 MB.",
    )  # fmt: skip
    kept = st.session_state.get(_UPLOAD)
    if not kept:
        return
    name, data = kept
    st.caption(f"{literal(name)}, {format_count(len(data))} bytes")
    try:
        texts.decode_upload(data)
        fill(encoding=None)
    except texts.UnknownEncoding as error:
        st.warning(literal(str(error)))
        st.selectbox(
            "Encoding",
            list(texts.ENCODINGS),
            index=None,
            format_func=texts.ENCODINGS.__getitem__,
            key=key("encoding"),
            persist_state="session",
            placeholder="Choose one",
        )
    except ValueError:
        pass  # `_add_up` says what is wrong


def _keep_upload() -> None:
    file = st.session_state.get(key("file"))
    st.session_state[_UPLOAD] = (file.name, file.getvalue()) if file else None
    fill(encoding=None)


def _vocabulary() -> None:
    kind, size = st.columns(2)
    kind.selectbox(
        "Tokenizer", list(TOKENIZERS), format_func=TOKENIZERS.__getitem__, key=key("tokenizer"), persist_state="session"
    )
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
    if value("n_head") not in heads:
        fill(n_head=min(heads, key=lambda n: abs(n - value("n_head"))))
    st.text_input("Name of the run", key=key("name"), persist_state="session", max_chars=80, placeholder="made from the text and size")
    a, b = st.columns(2)
    _number(a, "n_layer", "Layers", 1, 12, on_change=_shape_changed)
    _choice(b, "n_head", "Heads", heads, on_change=_shape_changed, help="Only numbers that divide the width.")
    _number(a, "d_model", "Width", 8, 768, step=8, on_change=_shape_changed)
    _number(b, "context_length", "Context", 8, 512, step=8, on_change=_shape_changed, help="Tokens that it sees at once.")
    _number(a, "batch_size", "Rows in a step", 1, 256, on_change=_shape_changed)
    _number(b, "dropout", "Dropout", 0.0, 0.9, step=0.05)
    _choice(a, "positions", "Positions", ["learned", "sinusoidal", "rotary"])
    _choice(b, "norm", "Norm", ["layernorm", "rmsnorm"])
    _choice(a, "activation", "Activation", ["gelu", "relu2", "swiglu"])
    _choice(b, "optimizer", "Optimizer", list(RATES), on_change=lambda: fill(learning_rate=RATES[value("optimizer")]))
    _number(a, "learning_rate", "Learning rate", 1e-7, 1e5, format="%g", step=1e-3)
    _choice(b, "schedule", "Schedule", ["linear", "cosine", "constant"], help="How the rate falls towards the end.")
    _number(a, "warmup_steps", "Warm-up steps", 0, LARGEST_STEPS, step=10)
    _number(b, "weight_decay", "Weight decay", 0.0, 10.0, step=0.05)
    _number(a, "val_share", "Validation share", 0.0, 0.5, step=0.05, help="End of the text that is only for checking. The stories have their own.")
    _number(b, "mask_prob", "Share hidden", 0.01, 1.0, step=0.05, disabled=value("objective") != "mlm", help="Of the tokens, when it learns hidden ones.")


def _add_up() -> None:
    """What the settings mean, as far as they go, and why they can't be, if they can't."""
    try:
        text = corpus()
        usable(text)
        _describe_text(text)
        vocabulary = tokenizer(text)
        _describe_vocabulary(vocabulary)
        split = plan(text, vocabulary)
        _describe_run(split, model_config(vocabulary.model_vocab_size(value("objective"))))
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
    counts = _statistics(text.sha256, text)
    st.caption(
        f"**Text** {format_count(counts.characters)} characters ({format_count(counts.kinds)} different), "
        f"{format_count(counts.words)} words"
    )


def _describe_vocabulary(vocabulary: Tokenizer) -> None:
    asked = int(value("vocab_size"))
    if value("tokenizer") == "bpe" and asked != vocabulary.vocab_size:
        st.caption(f"**Vocabulary** asked {asked:,}, got {vocabulary.vocab_size:,}: this text has no more pairs to merge")
    else:
        st.caption(f"**Vocabulary** {format_count(vocabulary.vocab_size)} ids")


def _describe_run(split: Plan, config: ModelConfig) -> None:
    training = train_config()
    checks = f"{format_count(split.val_tokens)} to check with" if split.val_tokens else "none to check with"
    seconds = step_seconds(config, training, _timings()) * training.steps
    st.caption(
        f"**Tokens** {format_count(split.train_tokens)} to learn from "
        f"({format_count(split.train_rows)} rows of {config.context_length}), {checks}"
    )
    st.caption(f"**Model** {format_count(parameter_count(config))} parameters  \n**Time** about {duration(seconds)}")


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


def _timings() -> list[Timing]:
    runs = [info for info in resources.run_store().list() if info.tokens_per_second]
    return [Timing(info.model, info.train, info.tokens_per_second or 1.0) for info in runs[:5]]
