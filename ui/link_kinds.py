"""Kinds of settings that a link can hold: what a value must be, where it stands, how it is put there."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from engine.setting_checks import is_number
from ui import components

LONGEST_TEXT = 2000
_FIELDS = "_link_fields"
_SPACES = "\n\t"

Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Setting:
    """A kind of setting.

    Attributes:
        fits: whether a value out of a link is one.
        read: gives the value that stands now, None for none, by session key.
        put: puts one there, before the page is drawn.
    """

    fits: Check
    read: Callable[[str], Any]
    put: Callable[[str, Any], None]


def _of_widget(key: str) -> Any:
    return st.session_state.get(key)


def _to_widget(key: str, value: Any) -> None:
    st.session_state[key] = value


def _select(key: str, value: Any) -> None:
    components.select(key, tuple(value) if isinstance(value, list) else value)


def _printable(text: str) -> bool:
    return all(unicodedata.category(c) not in ("Cc", "Cs") or c in _SPACES for c in text)


def _is_text(value: Any, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and _printable(value)


def _widget(fits: Check) -> Setting:
    return Setting(fits, _of_widget, _to_widget)


def whole(low: int, high: int) -> Setting:
    """A whole number from `low` to `high`."""
    return _widget(lambda value: type(value) is int and low <= value <= high)


def number(low: float, high: float) -> Setting:
    """A number from `low` to `high`."""
    return _widget(lambda value: is_number(value) and low <= value <= high)


def one_of(*options: str | int) -> Setting:
    """One of these words or numbers: for a choice that answers no other one with a default."""
    return _widget(lambda value: value in options)


def text(most: int) -> Setting:
    """A text of at most so many characters, none of which controls anything."""
    return _widget(lambda value: _is_text(value, most))


def _is_places(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 500 and all(_is_place(one) for one in value)


def _is_place(value: Any) -> bool:
    return type(value) is int and 0 <= value < 100_000


def _is_head(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_place, value))


def _gaps(_: str) -> list[int] | None:
    from ui import hiding  # late: it knows torch, and the frame does not wait for that

    return hiding.chosen()


def _hide(_: str, places: list[int]) -> None:
    from ui import hiding

    hiding.from_link(places)


def _keep_field(key: str, value: Any) -> None:
    st.session_state.setdefault(_FIELDS, {})[key] = value


def take_field(key: str, kind: type[float] | type[int] | type[str], fits: Check = lambda _: True) -> None:
    """Give an input of a worked example what a link holds for it. Called before the input is drawn."""
    fields = st.session_state.get(_FIELDS, {})
    value = fields.pop(key, None)
    right = type(value) is kind or (kind is float and is_number(value))
    if right and fits(value):
        st.session_state[key] = kind(value)


FLAG = _widget(lambda value: isinstance(value, bool))
WORD = _widget(lambda value: _is_text(value, 80))
OPTION = _widget(lambda value: _is_text(value, 80) or (type(value) is int and abs(value) < 2**31))
SOME = _widget(
    lambda value: isinstance(value, list) and len(value) <= 30 and all(_is_text(one, 80) for one in value)
)
SEED = whole(0, 2**31)
PLACE = Setting(_is_place, lambda key: components.current(key, None), _select)
HEAD = Setting(_is_head, lambda key: components.current(key, None), _select)
GAPS = Setting(_is_places, _gaps, _hide)

# An input of a worked example: a number or a text; which of them it is, its page knows.
FIELD = Setting(
    lambda value: _is_text(value, 500) or (is_number(value) and abs(value) < 1e9), _of_widget, _keep_field
)
