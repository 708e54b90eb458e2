"""Who a person is: a random word that their browser keeps. Nothing is drawn."""

import re
import secrets
from pathlib import Path

import streamlit as st

_KEY = "_owner"
_PROPOSAL = "_owner_proposal"
_FORM = re.compile(r"[0-9a-f]{32}")
_component = st.components.v2.component(
    "loupe_owner", html="<span hidden></span>", js=(Path(__file__).parent / "owner.js").read_text("utf-8")
)


def mount_owner(*, asks: bool = False) -> None:
    """Ask the browser for its word, once in each script run. app.py's frame does this.

    Args:
        asks: also of a browser that has none yet, which else says nothing: the script runs again then.
    """
    _component(
        key=_KEY,
        data={"proposal": _proposal(), "current": owner_token(), "asks": asks},
        on_token_change=lambda: None,
        height="content",
    )


def owner_token() -> str:
    """The word of this browser, 32 hexadecimal digits.

    In the first run of a session the browser has not answered yet: then it is the word that this browser will
    keep if it has none. A browser that has one answers with it, and the script runs again.
    """
    return answered() or _proposal()


def answered() -> str | None:
    """The word that the browser has answered with; None before that."""
    state = st.session_state.get(_KEY)
    token = state.get("token") if state else None
    return token if isinstance(token, str) and _FORM.fullmatch(token) else None


def _proposal() -> str:
    if _PROPOSAL not in st.session_state:
        st.session_state[_PROPOSAL] = secrets.token_hex(16)
    return str(st.session_state[_PROPOSAL])
