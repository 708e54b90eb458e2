"""Damage to files: changes of a JSON document, and changes of bytes; made up, applied, readable as text."""

import copy
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as some

from engine.setting_checks import is_number

_SHOWN = 8  # entries of a long list or table that are changed: thousands of tokens are all alike
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    7,
    255,
    256,
    10**6,
    10**9,
    10**12,
    10**30,
    10**400,
    -(10**400),
    2**31,
    2**63,
    2**64,
    -(2**63),
    0.0,
    -0.0,
    0.5,
    1.5,
    1e-300,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
    "",
    " ",
    "x",
    "0",
    "1e9",
    "../x",
    "/etc/passwd",
    "a" * 5000,
    "<script>alert(1)</script>",
    "\x00",
    "\ud800",
    "\u202e",
    "NaN",
    "mlm",
    "bpe",
    "hub",
    "characters",
    "published",
    "rotary",
    "int8",
    [],
    {},
    [[]],
    [None],
    ["a"],
    [1, 2],
    [-1],
    {"a": {}},
    {"": 0},
    [[[[[[]]]]]],
    ["a"] * 2000,
    list(range(300)),
)


class Change(NamedTuple):
    """One change of a JSON document: at which of its places, what, and with which value."""

    at: int
    do: str
    value: Any = None


changes = some.lists(
    some.builds(
        Change,
        some.integers(0, 10_000),
        some.sampled_from(("set", "set", "set", "drop", "add", "rename", "twice", "scale", "swap")),
        some.one_of(some.sampled_from(ODD), some.integers(), some.floats(), some.text(max_size=8)),
    ),
    min_size=1,
    max_size=3,
)


def changed(document: Any, made: Sequence[Change]) -> Any:
    """A document with changes."""
    document = copy.deepcopy(document)
    for change in made:
        places = list(_places(document))
        change = change._replace(value=copy.deepcopy(change.value))  # later changes may lie within it
        if not places:
            return change.value
        holder, key = places[change.at % len(places)]
        _change(holder, key, change)
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    keys: list[Any] = []
    if isinstance(document, dict):
        keys = list(document)
    elif isinstance(document, list):
        keys = list(range(len(document)))
    for key in keys if len(keys) <= 3 * _SHOWN else [*keys[:_SHOWN], *keys[-_SHOWN:]]:
        yield document, key
        yield from _places(document[key])


def _change(holder: Any, key: Any, change: Change) -> None:
    old = holder[key]
    if change.do == "drop":
        del holder[key]
    elif change.do == "add" and isinstance(holder, dict):
        holder[str(change.value)[:50]] = old
    elif change.do == "rename" and isinstance(holder, dict):
        holder[str(change.value)[:50]] = holder.pop(key)
    elif change.do == "twice" and isinstance(holder, list):
        holder.insert(key, old)
    elif change.do == "scale" and isinstance(old, int | float) and not isinstance(old, bool):
        holder[key] = type(old)(old * 10 ** (change.at % 7 + 1)) if is_number(old) else old
    elif change.do == "swap" and isinstance(holder, list):
        holder[key], holder[0] = holder[0], holder[key]
    else:
        holder[key] = change.value


def as_json(document: Any) -> bytes:
    """A document as the bytes of a file, with what JSON of Python's takes beyond the standard."""
    return json.dumps(document).encode()


class Cut(NamedTuple):
    """One change of bytes: what, where, and with which bytes."""

    do: str
    at: int
    data: bytes = b"\x00"


cuts = some.lists(
    some.builds(
        Cut,
        some.sampled_from(("flip", "flip", "flip", "cut", "put", "drop", "end", "start", "zeros")),
        some.integers(0, 2**31),
        some.binary(min_size=1, max_size=16),
    ),
    min_size=1,
    max_size=4,
)


def cut_up(data: bytes, made: Sequence[Cut]) -> bytes:
    """Bytes with changes."""
    found = bytearray(data)
    for cut in made:
        at = cut.at % max(1, len(found))
        if cut.do == "flip" and found:
            found[at] ^= (cut.data[0] % 255) + 1
        elif cut.do == "cut":
            del found[at:]
        elif cut.do == "put":
            found[at:at] = cut.data
        elif cut.do == "drop":
            del found[at : at + len(cut.data)]
        elif cut.do == "end":
            found += cut.data
        elif cut.do == "start":
            found[:0] = cut.data
        elif cut.do == "zeros":
            found[at : at + 64] = bytes(len(found[at : at + 64]))
    return bytes(found)
