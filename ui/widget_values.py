"""Values that no browser sends: of another kind than the widget's, or none that the widget can read.

Somebody who speaks the protocol by hand may send a slider a word. Streamlit reads a value before the page
runs, fails there with a box that names a Python type, and keeps the value: that session shows nothing else
until it is opened again. With `guard`, such a value counts as none at all: the widget is where it is at
first, the page goes on, and the log has a line.

Numbers out of range and options that are not there need nothing here: Streamlit's widgets see to those.
"""

from typing import Any

from streamlit.errors import StreamlitAPIException
from streamlit.runtime.state.session_state import Serialized, Value, WStates

from engine import plain_log

_NUMBERS = {"int_value", "double_value"}  # a box of whole numbers is registered with one and sends the other
_CHOSEN = "string_array_value"  # also of a control of which one segment is always chosen
# What a widget may make of what it never sends.
_UNREADABLE = (
    TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError,
    StreamlitAPIException,
)  # fmt: skip
_read = WStates.__getitem__  # no public place is asked before a value is read; tests hold that this one is


def guard() -> None:
    """Read what browsers send with care, in all sessions of this process. The frame does this first."""
    WStates.__getitem__ = _careful  # type: ignore[method-assign]


def _careful(states: WStates, widget: str) -> Any:
    """The value of a widget.

    Raises:
        KeyError: if it has none, or the page has not said yet what this widget takes.
    """
    held, about = states.states.get(widget), states.widget_metadata.get(widget)
    if not isinstance(held, Serialized) or about is None:
        return _read(states, widget)
    kind = held.value.WhichOneof("value")
    if kind in (None, about.value_type) or {kind, about.value_type} == _NUMBERS:
        try:
            value = _read(states, widget)
        except _UNREADABLE as error:
            plain_log.refusal("widget value refused", error, value=kind)
        else:
            if value is not None or kind != _CHOSEN or about.deserializer(None) is None:
                return value
            plain_log.warning("widget value refused", value="nothing", takes=about.value_type)
    else:
        plain_log.warning("widget value refused", value=kind, takes=about.value_type)
    first = about.deserializer(None)
    states.states[widget] = Value(first)
    return first
