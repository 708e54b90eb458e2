"""Which controls are on the page now, as the browser sees them: their keys and their labels."""

import re
from typing import Any, NamedTuple

import streamlit as st

from ui.components._shared import asset

_COMPONENT = st.components.v2.component(
    "loupe_controls", html="<span hidden></span>", js=asset("controls.js")
)
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")


class Control(NamedTuple):
    """A control: its key in the page's classes, and its label; the label may hold any characters."""

    key: str
    label: str


def controls(*, key: str) -> list[Control]:
    """The controls of the page behind a dialog, in their order; none until the browser has answered."""
    state = _COMPONENT(key=key, data={}, on_controls_change=lambda: None, height="content")
    return read(state.get("controls"))


def read(said: Any) -> list[Control]:
    """What of a browser's answer is a list of controls.

    >>> read([{"key": "view", "label": "View"}, {"key": "<b>"}, 7])
    [Control(key='view', label='View')]
    """
    made = [
        Control(one["key"], one["label"][:80])
        for one in (said if isinstance(said, list) else [])
        if isinstance(one, dict)
        and isinstance(one.get("key"), str)
        and isinstance(one.get("label"), str)
        and _KEY.fullmatch(one["key"])
    ]
    return made[:60]
