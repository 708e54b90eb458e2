"""What the address of a page holds: read when a link is opened or Back pressed, written when it changes.

Streamlit's own `bind="query-params"` does this for numbers; for a choice it writes what is on the screen,
which is another word in each language, and it would write a text of any length.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import streamlit as st

_LATE = 2.0  # seconds in which a browser may still send the address from before our last change
_PAGE = "_page"
_ARRIVED = "_page_arrived"  # whether this is the first run of a page after another one
_MOVED = "_page_moved"  # whether this session has seen another page
_HIDDEN, _CHOICES = "_options_hidden", "_choices"


class _Written(NamedTuple):
    """What was last written under a name, what stood there before, when, and on which page."""

    value: str | None = None
    before: str | None = None
    changed: float = 0.0
    page: str = ""


def begin(page: str) -> None:
    """Say which page is open, by the name of its script. The frame does this first."""
    st.session_state[_ARRIVED] = st.session_state.get(_PAGE) != page
    if _PAGE in st.session_state and st.session_state[_ARRIVED]:
        st.session_state[_MOVED] = True
    st.session_state[_PAGE] = page
    st.session_state[_CHOICES] = {}


def hide(options: Collection[str]) -> None:
    """Offer these options of choices no more, by their `option_name`; a teacher's link may say so."""
    st.session_state[_HIDDEN] = frozenset(options)


def option_name(key: str, option: str) -> str:
    """How an option of a choice is called in a link."""
    return f"{key}--{option}"


def choices() -> dict[str, tuple[str, dict[str, str]]]:
    """The choices that were drawn in this run: key, then label and options, hidden ones among them."""
    found: dict[str, tuple[str, dict[str, str]]] = st.session_state.get(_CHOICES, {})
    return found


def _left(key: str, options: Mapping[str, str]) -> dict[str, str]:
    hidden = st.session_state.get(_HIDDEN, ())
    left = {name: shown for name, shown in options.items() if option_name(key, name) not in hidden}
    return left or dict(options)


def page() -> str:
    """The open page, by the name of its script."""
    return str(st.session_state.get(_PAGE, ""))


def news(name: str) -> tuple[bool, str | None]:
    """Whether somebody else than `write` has put a value there, and the value; None if it was taken away.

    Another page's address comes without the value: that is no news.
    """
    linked, last = st.query_params.get(name), _last(name)
    late = linked == last.before and time.monotonic() - last.changed < _LATE
    gone = page() == last.page and not st.session_state.get(_ARRIVED)
    return linked != last.value and not late and (linked is not None or gone), linked


def write(name: str, wanted: str | None) -> None:
    """Put a value into the address; None takes it away."""
    linked, last = st.query_params.get(name), _last(name)
    if wanted is None and linked is not None:
        del st.query_params[name]
    elif wanted is not None and wanted != linked:
        st.query_params[name] = wanted
    if wanted != linked:
        last = last._replace(value=wanted, before=linked, changed=time.monotonic())
    elif wanted != last.value:
        older = last.page or st.session_state.get(_MOVED)  # an opened or reloaded page has no older address
        changed = time.monotonic() if older else 0.0
        last = last._replace(value=wanted, before=last.value, changed=changed)
    st.session_state[_mark(name)] = tuple(last._replace(page=page()))


def _mark(name: str) -> str:
    return f"_{name}_in_address"


def _last(name: str) -> _Written:
    return _Written(*st.session_state.get(_mark(name), ()))


def choose(
    widget: Callable[..., Any],
    label: str,
    options: Mapping[str, str],
    *,
    key: str,
    default: str = "",
    **how: Any,
) -> str:
    """A choice that stands in the address by its name, whatever language its options are written in.

    Args:
        widget: `st.segmented_control`, `st.radio`, `st.selectbox` or `st.pills`.
        label: the widget's label.
        options: names, as in the address, to what is shown.
        key: the widget's key, and the name in the address.
        default: the name chosen at first, which the address leaves out; the first one if not given.
        how: passed to the widget.

    Returns:
        The chosen name.
    """
    st.session_state.setdefault(_CHOICES, {})[key] = (label, dict(options))
    options = _left(key, options)
    first = default if default in options else next(iter(options))
    is_news, linked = news(key)
    if is_news:
        st.session_state[key] = linked
    if st.session_state.get(key) not in options:
        st.session_state[key] = first
    chosen = widget(
        label, list(options), format_func=lambda name: options.get(name, str(name)), key=key,
        persist_state="session", **how,
    )  # fmt: skip
    chosen = str(chosen) if chosen in options else first
    write(key, chosen if chosen != first else None)
    return chosen
