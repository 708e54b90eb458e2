"""Figures that were drawn before: every press of a control asks for all pictures of a page once more.

Most of them have not changed, and thirty people look at the same ones. A figure of Plotly takes 5 to 30 ms of
processor time to make, its key a tenth of one.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
import plotly.graph_objects as go

from wording import language

MOST = 160  # figures of all people together; a large one takes about half a megabyte
P = ParamSpec("P")
_figures: OrderedDict[bytes, go.Figure] = OrderedDict()
_lock = threading.Lock()


def kept(draw: Callable[P, go.Figure]) -> Callable[P, go.Figure]:
    """A function that draws, which answers the same arguments in the same language with the same figure.

    Whoever gets the figure must not change it: others have it too.
    """

    @wraps(draw)
    def answer(*args: P.args, **kwargs: P.kwargs) -> go.Figure:
        whole = (draw.__module__, draw.__qualname__, language(), key_of(args), key_of(kwargs))
        # Of a large vocabulary the names alone are half a megabyte: only what stands for them is kept.
        asked = hashlib.blake2b(repr(whole).encode(), digest_size=16).digest()
        with _lock:
            if asked in _figures:
                _figures.move_to_end(asked)
                return _figures[asked]
        made = draw(*args, **kwargs)
        with _lock:
            _figures[asked] = made
            while len(_figures) > MOST:
                _figures.popitem(last=False)
        return made

    return answer


def forget() -> None:
    """Draw everything anew from now on, such as after a change of what a figure's arguments don't say."""
    with _lock:
        _figures.clear()


def key_of(value: Any) -> Any:
    """What can be looked up and is equal for equal values only: 1, 1.0 and True look different in a picture.

    >>> key_of([1, 2]) == key_of([1, 2]), key_of(1) == key_of(True), key_of("1") == key_of(1)
    (True, False, False)

    Raises:
        TypeError: of a value that can't be told apart by what it holds.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float | bytes | np.generic):
        return type(value), value
    if isinstance(value, np.ndarray) and value.dtype != object:
        held = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).digest()
        return value.dtype.str, value.shape, held
    if isinstance(value, Mapping):
        return "mapping", tuple((key_of(name), key_of(part)) for name, part in value.items())
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__qualname__, tuple(key_of(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, np.ndarray | Collection):  # also of objects, such as words
        return "parts", tuple(map(key_of, value))
    raise TypeError(f"{type(value).__name__} has no key: leave this figure without `kept`, or give it data.")
