"""What a person has chosen in a component: in the address, for links, and fresh when the text changes."""

import streamlit as st

from ui.components import select


def begin(
    key: str, default: int | tuple[int, int], *, about: object, names: tuple[str, ...] = (), first: int = 0
) -> None:
    """Set a component's selection before it is drawn: at first from the address, later when `about` changes.

    Args:
        key: the component's key.
        default: selected if the address says nothing, and when `about` has changed.
        about: what the selection is about (text, model); compared with the last run.
        names: the address's names for the selection, one for each number; see `share`.
        first: the number that stands for 0 in the address.
    """
    mark = f"_{key}_about"
    before = st.session_state.get(mark)
    st.session_state[mark] = about
    if before is None:
        linked = [st.query_params.get(name, "") for name in names]
        if linked and all(value.isdecimal() and len(value) < 6 for value in linked):
            numbers = [max(int(value) - first, 0) for value in linked]
            select(key, numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1]))
    elif before != about:
        select(key, default)


def hold(key: str, value: int | tuple[int, int], about: object) -> None:
    """For a button: select `value` in a component, also where what it is about changes in the same run."""
    st.session_state[f"_{key}_about"] = about
    select(key, value)


def share(values: dict[str, int]) -> None:
    """Write a selection into the address, under the names that `begin` reads."""
    for name, value in values.items():
        if st.query_params.get(name) != str(value):
            st.query_params[name] = str(value)
