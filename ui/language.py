"""Which language a person reads: the address says it, or their choice, or their browser."""

import os
from contextlib import suppress

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

import wording
from ui import address
from wording import LANGUAGES, words

KEY = "lang"  # in the address and in the session
say = words("ui.language")


def current() -> str:
    """A key of `wording.LANGUAGES`; outside a page's run the process's language."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return _of(os.environ.get("LOUPE_LANGUAGE")) or wording.SOURCE
    return _of(st.session_state.get(KEY)) or _of(st.query_params.get(KEY)) or _first()


def _of(name: object) -> str | None:
    return name if isinstance(name, str) and name in LANGUAGES else None


def _first() -> str:
    """Before anything was chosen: the browser's own, if it is there."""
    return _of((st.context.locale or "").split("-")[0].lower()) or wording.SOURCE


def choose() -> None:
    """The choice, drawn in the sidebar. What was drawn before it is drawn again if a link changed it."""
    spoken = current()
    label = say("label")
    address.choose(st.selectbox, label, LANGUAGES, key=KEY, default=_first(), on_change=keep_choices)
    if current() != spoken:
        keep_choices()
        st.rerun()


def keep_choices() -> None:
    """Carry what is chosen in all widgets over to the language that comes. For `on_change`.

    A browser sends a choice as the words on its screen. In the next language they would be no option any
    more, and Streamlit would go back to the first one; a value that is set here is sent to the browser anew.
    """
    for key, value in st.session_state.items():
        parts = value if isinstance(value, list | tuple) else [value]
        words_or_numbers = all(isinstance(part, str | int | float) for part in parts)
        if words_or_numbers and not isinstance(value, bool) and key != KEY:  # True may be a pressed button
            with suppress(StreamlitAPIException):  # drawn before the language was
                st.session_state[key] = value


wording.follow(current)
