"""How settings are checked when they are made, and how they go to JSON and back."""

import math
import sys
from dataclasses import MISSING, asdict, fields
from typing import Any, Self

from wording import words

say = words("engine.setting_checks")


def is_number(value: Any) -> bool:
    """Whether a value out of JSON is a finite number that a float can hold; true and false are none.

    >>> is_number(3), is_number(1.5), is_number(10**400), is_number(float("nan")), is_number(True)
    (True, True, False, False, False)
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # 10**400 is too large for math.isfinite


def _shown(value: Any) -> Any:
    """A value as a sentence can hold it."""
    return value if len(repr(value)) <= 80 else f"{repr(value)[:80]}…"


def check_whole(config: Any, *names: str, least: int = 1) -> None:
    """Refuse a setting that is not a whole number of at least `least`."""
    for name in names:
        value = getattr(config, name)
        if type(value) is not int or value < least:
            raise ValueError(say("must_whole_number_least", name=name, least=least, value=_shown(value)))


def check_most(config: Any, **most: int) -> None:
    """Refuse a setting that is larger than given."""
    for name, limit in most.items():
        if getattr(config, name) > limit:
            raise ValueError(say("must_most", name=name, most=limit, value=getattr(config, name)))


def check_between(config: Any, name: str, low: float, high: float = math.inf) -> None:
    """Refuse a setting that is not a finite number from `low` to `high`."""
    value = getattr(config, name)
    if is_number(value) and low <= value <= high:
        return
    if high < math.inf:
        raise ValueError(say("must_number_between", name=name, low=low, high=high, value=_shown(value)))
    raise ValueError(say("must_number_least", name=name, low=low, value=_shown(value)))


def check_choice(config: Any, name: str, *allowed: str) -> None:
    """Refuse a setting that is none of those allowed."""
    value = getattr(config, name)
    if value not in allowed:
        raise ValueError(say("must_one_not", name=name, allowed=", ".join(allowed), value=_shown(value)))


def check_switch(config: Any, *names: str, unset: bool = False) -> None:
    """Refuse a setting that is neither true nor false; with `unset` it may be None."""
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, bool) and not (unset and value is None):
            raise ValueError(say("must_true_false_not", name=name, value=_shown(value)))


class JsonSettings:
    """Frozen settings, to and from a plain dictionary; an unknown name is an error, not a silent default."""

    def to_json(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The settings again, checked.

        Raises:
            ValueError: for a name that is unknown or missing, or a value out of range.
        """
        if not isinstance(values, dict):
            raise ValueError(say("needs_table", name=cls.__name__, value=repr(values)[:80]))
        known = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        needed = {f.name for f in fields(cls) if f.default is MISSING}  # type: ignore[arg-type]
        unknown, missing = sorted(set(values) - known), sorted(needed - set(values))
        if missing:
            raise ValueError(say("needs_value", name=cls.__name__, missing=", ".join(missing)))
        if unknown:
            names = {"unknown": ", ".join(unknown), "known": ", ".join(sorted(known))}
            raise ValueError(say("has_no_setting_knows", name=cls.__name__, **names))
        return cls(**values)
