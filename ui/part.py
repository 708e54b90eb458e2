"""A part of a page that is drawn alone when one of its own controls moves."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from ui.words import literal

P = ParamSpec("P")


def part(draw: Callable[P, None]) -> Callable[P, None]:
    """A fragment in which a ValueError is the sentence that it says, as on the page around it.

    Nothing outside may say what its controls say: it would go stale. What does is drawn by it, into a
    container outside if need be, or `draw` calls `st.rerun`. If one of its buttons chooses another model or
    text, the whole page is drawn.
    """
    about = _about()

    @st.fragment
    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
        if _about() != about:
            st.rerun()
        try:
            draw(*args, **kwargs)
        except ValueError as error:
            st.error(literal(str(error)))

    return drawn


def _about() -> tuple[object, object]:
    return st.session_state.get("model"), st.session_state.get("text")
