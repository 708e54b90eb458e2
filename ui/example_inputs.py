"""What a person can change in a worked example: numbers, rows of numbers and words, typed as text."""

import math
import re
from collections.abc import Callable

import streamlit as st

from ui import link_kinds
from wording import words

say = words("ui.example_inputs")
_MOST = 64  # numbers in a list: more can't be read
_BREAKS = re.compile(r"[,;\s]+")


def numbers(key: str, label: str, default: str, *, most: int = _MOST) -> list[float]:
    """A list of numbers, separated by commas or spaces.

    Raises:
        ValueError: one sentence that names what is no number.
    """
    return parse(_text(key, label, default, help=say("list_help")), most)


def whole_numbers(key: str, label: str, default: str, *, most: int = _MOST) -> list[int]:
    """A list of ids, whole numbers from 0 on.

    Raises:
        ValueError: one sentence that names what is none.
    """
    return whole(_text(key, label, default, help=say("list_help")), most)


def table(key: str, label: str, default: str, *, most: int = 8) -> list[list[float]]:
    """Rows of numbers, one row on a line.

    Raises:
        ValueError: one sentence that names what is no number.
    """
    return [parse(line, _MOST) for line in _lines(key, label, default, most)]


def whole_table(key: str, label: str, default: str, *, most: int = 8) -> list[list[int]]:
    """Rows of ids, one row on a line.

    Raises:
        ValueError: one sentence that names what is no id.
    """
    return [whole(line) for line in _lines(key, label, default, most)]


def positive(key: str, label: str, default: str) -> float:
    """One number above 0 of any size, such as 70e9.

    Raises:
        ValueError: one sentence, if it is none.
    """
    found = parse(_text(key, label, default), 1)[0]
    if not found > 0:
        raise ValueError(say("not_above_zero", value=found))
    return found


def names(key: str, label: str, default: str, *, most: int = 12) -> list[str]:
    """Words, separated by commas.

    Raises:
        ValueError: for none, or too many.
    """
    found = [word.strip() for word in _text(key, label, default).split(",") if word.strip()]
    _check_count(len(found), most)
    return found


def text(key: str, label: str, default: str, *, most: int = 200) -> str:
    """A short text; what is too long is refused.

    Raises:
        ValueError: for an empty or a long text.
    """
    written = _text(key, label, default)
    if not written.strip():
        raise ValueError(say("no_text"))
    if len(written) > most:
        raise ValueError(say("long_text", n=len(written), most=most))
    return written


def number(key: str, label: str, default: float, low: float, high: float, step: float = 0.1) -> float:
    """One number within its range."""
    name = f"example_{key}"
    link_kinds.take_field(name, float, lambda value: low <= value <= high)
    return float(
        st.number_input(
            label, float(low), float(high), float(default), float(step), key=name,
            persist_state="session", format="%g",
        )
    )  # fmt: skip


def count(key: str, label: str, default: int, low: int, high: int, *, step: int = 1) -> int:
    """One whole number within its range; a value kept from a wider range comes back inside."""
    name = f"example_{key}"
    link_kinds.take_field(name, int)
    kept = st.session_state.get(name)
    if isinstance(kept, int) and not low <= kept <= high:
        st.session_state[name] = min(max(kept, low), high)
    return int(
        st.number_input(
            label, low, high, min(max(default, low), high), step, key=name, persist_state="session"
        )
    )


def parse(written: str, most: int = _MOST) -> list[float]:
    """Numbers of a text.

    Raises:
        ValueError: for none, too many, or what is no finite number.
    """
    found = []
    for word in filter(None, _BREAKS.split(written.replace("−", "-"))):
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(say("no_number", word=word[:20]))
        found.append(value)
    _check_count(len(found), most)
    return found


def whole(written: str, most: int = _MOST) -> list[int]:
    """Whole numbers from 0 on of a text.

    Raises:
        ValueError: for none, too many, or what is no such number.
    """
    found = parse(written, most)
    for value in found:
        if value != int(value) or not 0 <= value < 10_000_000:
            raise ValueError(say("no_id", value=value))
    return [int(value) for value in found]


def _check_count(n: int, most: int) -> None:
    if not n:
        raise ValueError(say("nothing"))
    if n > most:
        raise ValueError(say("too_many", n=n, most=most))


def _text(key: str, label: str, default: str, **how: str) -> str:
    widget: Callable[..., str | None] = st.text_input
    link_kinds.take_field(f"example_{key}", str)
    return widget(label, default, key=f"example_{key}", persist_state="session", **how) or ""


def _lines(key: str, label: str, default: str, most: int) -> list[str]:
    link_kinds.take_field(f"example_{key}", str)
    written = st.text_area(
        label, default, key=f"example_{key}", persist_state="session", height="content", help=say("rows_help")
    )
    lines = [line for line in written.splitlines() if line.strip()]
    _check_count(len(lines), most)
    return lines
