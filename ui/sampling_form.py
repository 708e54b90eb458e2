"""How a token is drawn: the settings that a person turns, and their seed. They stand in the address."""

import json
import secrets
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlencode

import streamlit as st

from ui import prompt, resources, session, writing_weights
from ui.model_refs import ModelRef
from ui.words import literal
from viz import visible
from wording import words

say = words("ui.sampling_form")

DEFAULTS: dict[str, Any] = {
    "temperature": 1.0, "top_k": 0, "top_p": 0.9, "min_p": 0.0, "penalty": 1.0, "seed": 1, "tokens": 60,
}  # fmt: skip
STOP = "generation_stop_at_end"
_STORY_A_LINE = ("stories", "tiny-stories")  # texts in which every line is a whole story


class Settings(NamedTuple):
    """What the widgets say.

    Attributes:
        draw: keywords of `engine.stages.sampling_stages`.
        seed: of the random numbers.
        n: tokens to write.
        stop_ids: the tokens that end the writing.
    """

    draw: dict[str, Any]
    seed: int
    n: int
    stop_ids: frozenset[int]


def begin() -> None:
    """Give every setting its first value, unless a link has said it. Before any widget is drawn."""
    for key, value in DEFAULTS.items():
        if key not in st.query_params:
            st.session_state.setdefault(key, value)
    st.session_state.setdefault(STOP, True)


def reset() -> None:
    """All settings as at first; only the seed stays. For `on_click`."""
    st.session_state.update({key: value for key, value in DEFAULTS.items() if key != "seed"})


def settings(ref: ModelRef) -> Settings:
    """What the widgets say, also before they are drawn in this run: for `on_click`, and for other views."""
    said = {key: st.session_state.get(key, value) for key, value in DEFAULTS.items()}
    draw = {
        "temperature": float(said["temperature"]),
        "top_k": int(said["top_k"]) or None,
        "top_p": float(said["top_p"]),
        "min_p": float(said["min_p"]) or None,
        "repetition_penalty": float(said["penalty"]),
    }
    stop = text_ends(ref) if st.session_state.get(STOP, True) else frozenset()
    return Settings(draw, int(said["seed"]), int(said["tokens"]), stop)


def text_ends(ref: ModelRef) -> frozenset[int]:
    """The tokens that end a text: those the model itself names, else those that end a line."""
    if ref.corpus == "stories" or not (own := prompt.ends(ref)):
        return line_ends(ref)
    form = prompt.form_of(ref) if prompt.chat_is_on(ref) else None
    return own | {form.end} if form else own


@lru_cache(maxsize=16)
def line_ends(ref: ModelRef) -> frozenset[int]:
    """Tokens that end a line: in the stories, a story."""
    return frozenset(resources.tokenizer(ref).line_end_ids)


def new_seed() -> None:
    """Another seed. For `on_click`."""
    st.session_state["seed"] = secrets.randbelow(1_000_000)


def _slider(key: str, label: str, least: float, most: float) -> None:
    # Its default is the first value, so a browser that missed the first run shows no other one.
    st.slider(label, least, most, DEFAULTS[key], step=0.01, key=key, bind="query-params",
              help=say(f"help.{key}"))  # fmt: skip


def temperature() -> None:
    """The slider of the temperature."""
    _slider("temperature", say("temperature"), 0.0, 3.0)


def top_k(vocab_size: int) -> None:
    """The box of top-k."""
    k = st.number_input(say("top_k"), 0, None, DEFAULTS["top_k"], key="top_k", bind="query-params",
                        help=say("help.top_k"))  # fmt: skip
    if k > vocab_size:
        st.caption(say("all_kept", n=vocab_size))


def top_p() -> None:
    """The slider of top-p."""
    _slider("top_p", say("top_p"), 0.0, 1.0)


def min_p() -> None:
    """The slider of min-p."""
    _slider("min_p", say("min_p"), 0.0, 1.0)


def penalty() -> None:
    """The slider of the repetition penalty."""
    _slider("penalty", say("penalty"), 1.0, 2.0)


def seed_box() -> None:
    """The box of the seed, and a button for another one."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(say("seed"), 0, 2**31, DEFAULTS["seed"], key="seed", bind="query-params",
                        help=say("help.seed"), width=150)  # fmt: skip
        st.button(say("new_seed"), key="generation_new_seed", on_click=new_seed)


def length() -> None:
    """How many tokens to write at most."""
    st.number_input(say("tokens"), 1, 1000, DEFAULTS["tokens"], key="tokens", bind="query-params", width=150)


def stop_at_end(ref: ModelRef) -> None:
    """Whether the end of a story, or what the model itself ends a text with, ends the writing."""
    own = () if ref.corpus == "stories" else sorted(prompt.ends(ref))
    if own:
        names = ", ".join(f"“{literal(visible(resources.tokenizer(ref).token_bytes(i)))}”" for i in own)
        label, about = say("stop.end"), say("help.stop_at_end", tokens=names)
    else:
        label = say("stop.story") if ref.corpus in _STORY_A_LINE else say("stop.line")
        about = say("help.stop")
    st.toggle(label, key=STOP, persist_state="session", help=about)


def in_a_row(vocab_size: int) -> None:
    """The settings of a draw side by side, in the order in which they act."""
    first, second, third, fourth, fifth = st.columns(5, gap="small")
    with first:
        penalty()
    with second:
        temperature()
    with third:
        top_k(vocab_size)
    with fourth:
        top_p()
    with fifth:
        min_p()


def usual(vocab_size: int) -> None:
    """The settings that are turned most, in a column."""
    temperature()
    top_k(vocab_size)
    top_p()


def rarer(ref: ModelRef) -> None:
    """All others, folded away."""
    with st.expander(say("more")):
        min_p()
        penalty()
        length()
        stop_at_end(ref)
        seed_box()


def link() -> str:
    """The address of this page with model, text and all settings in it."""
    ref = session.model()
    said = {key: st.session_state.get(key, value) for key, value in DEFAULTS.items()}
    more: dict[str, Any] = {prompt.CHAT: True} if ref and prompt.chat_is_on(ref) else {}
    if ref and writing_weights.chosen(ref).bits == 8:
        more[writing_weights.KEY] = writing_weights.EIGHT
    more = {"set": json.dumps(more)} if more else {}
    where = str(st.context.url or "").partition("?")[0]
    return f"{where}?{urlencode({'model': ref.id if ref else '', 'text': session.text(), **said, **more})}"
