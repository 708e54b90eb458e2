"""What the components share: their files, code that comes once, a selection that outlives page changes."""

import hashlib
import json
from pathlib import Path
from typing import Any

import streamlit as st

_FOLDER = Path(__file__).parent


def asset(name: str) -> str:
    """The text of a file beside this module; Streamlit would take a single line for a path."""
    return (_FOLDER / name).read_text(encoding="utf-8")


class Lasting:
    """The code of a component whose data changes all the time.

    Streamlit sends a component's JavaScript again with each of its messages, and a browser that watches a run
    gets one each second. So the code stands on the page once, in an element of its own that never changes and
    that a browser keeps; the component itself carries a few lines that wait for it.

    Attributes:
        js: of the component, in place of its code.
    """

    def __init__(self, name: str, run: str, *files: str) -> None:
        """Registers the element that brings the code.

        Args:
            name: of that element.
            run: name of the function in the code that takes what Streamlit gives a component, and gives back
                what is to be done when the component goes.
            files: of the code, beside this module; they export nothing.
        """
        code = "\n".join(asset(file) for file in files)
        digest = hashlib.sha256(code.encode()).hexdigest()[:12]
        mark = json.dumps(f"{name} {digest}")
        meeting = asset("meeting.js")
        self.js = f"{meeting}\n{asset('waiting.js').replace('NAME', mark)}"
        self._name = name
        self._element = st.components.v2.component(
            f"loupe_{name}",
            html="<span hidden></span>",
            js=f"{code}\n{meeting}\nexport default () => {{ meeting({mark}).bring({run}) }}\n",
        )

    def bring(self, key: str) -> None:
        """Put the code on the page; nothing is seen of it.

        Args:
            key: of the component that waits for it.
        """
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]  # nobody looks for a key and finds this one
        self._element(key=f"lasting_{self._name}_{digest}", height="content")


def _store(key: str) -> dict[str, Any]:
    """What is remembered for a component: its value, what its page part was told, what it last said."""
    store: dict[str, Any] = st.session_state.setdefault(
        f"_{key}_selection", {"value": None, "told": None, "rev": 0, "heard": None}
    )
    return store


def _hear(key: str) -> dict[str, Any]:
    """Takes over what the component says, if it says something new."""
    store = _store(key)
    said = st.session_state.get(key)
    if said is None:  # not on the page until now: it must be told where we were
        if store["value"] is not None:
            _tell(store, store["value"])
        store["heard"] = None
        return store
    heard = said.get("selected")
    if heard is not None and heard != store["heard"]:
        store["heard"] = store["value"] = heard
    return store


def _tell(store: dict[str, Any], value: Any) -> None:
    store["value"] = store["told"] = value
    store["rev"] += 1


def select(key: str, value: Any) -> None:
    """Sets a component's selection; call it in a button's callback, before the component is drawn.

    Args:
        key: the component's key.
        value: token index for `token_strip`, (layer, head) for `head_grid`.
    """
    store = _hear(key)
    _tell(store, {"layer": value[0], "head": value[1]} if isinstance(value, tuple) else value)


def current(key: str, default: Any) -> Any:
    """A component's selection before it is drawn in this run; `default` when there is none yet."""
    value = _hear(key)["value"]
    if isinstance(value, dict):
        return (value["layer"], value["head"])
    return default if value is None else value


def told(key: str, value: Any, valid: bool) -> dict[str, Any]:
    """The part of a component's data that sets its selection.

    The browser obeys it only when `rev` has changed: its own clicks are never undone by a slower echo, and a
    click doesn't send the rest of the data again.

    Args:
        key: the component's key.
        value: selected when nothing is, or when what is selected no longer exists.
        valid: whether the present selection exists.
    """
    store = _hear(key)
    if not valid or store["value"] is None:
        _tell(store, value)
    elif store["rev"] == 0:
        _tell(store, store["value"])
    return {"selected": store["told"], "rev": store["rev"]}
