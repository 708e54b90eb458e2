"""Which language a person reads: the address says it, or their choice, or their browser."""

import os

import streamlit as st
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
    address.choose(st.selectbox, say("label"), LANGUAGES, key=KEY, default=_first())
    if current() != spoken:
        st.rerun()


wording.follow(current)
