"""What Loupe says, by language: text files, and `words`, which looks a sentence up in them.

Every room may import this one; it knows none of them. A module that says something begins with

    say = words("ui.tokens_pieces")

and its sentences stand under `[ui.tokens_pieces]` in a file of each language's folder, `wording/en/*.toml`
and so on. A new language is a new folder with the same files, and a line in `LANGUAGES`;
`tests/test_wording.py` says what is missing.
"""

import os
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = {"en": "English", "es": "Español"}  # folder: the language's own name
SOURCE = "en"
_FOLDER = Path(__file__).parent


def _of_process() -> str:
    chosen = os.environ.get("LOUPE_LANGUAGE", SOURCE)
    return chosen if chosen in LANGUAGES else SOURCE


_current: Callable[[], str] = _of_process


def follow(current: Callable[[], str]) -> None:
    """Let `current` say which language is spoken, at each look-up; the screen does this once."""
    global _current
    _current = current


def language() -> str:
    """The language spoken now: a key of `LANGUAGES`. In a process without a screen, $LOUPE_LANGUAGE."""
    return _current()


@cache
def texts(of: str) -> dict[str, Any]:
    """All sentences of one language: area, then key, then a string, its plural forms, or a table of more.

    Raises:
        ValueError: if two files hold the same area.
    """
    areas: dict[str, Any] = {}
    for path in sorted((_FOLDER / of).glob("*.toml")):
        for room, tables in tomllib.loads(path.read_text("utf-8")).items():
            for name, table in tables.items():
                if f"{room}.{name}" in areas:
                    raise ValueError(f"[{room}.{name}] stands in {path} and in another file: keep one.")
                areas[f"{room}.{name}"] = table
    return areas


def find(area: str, key: str, of: str) -> Any:
    """What stands under a key, dots leading into tables.

    Raises:
        KeyError: if there is no such key.
    """
    found: Any = texts(of).get(area, {})
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            raise KeyError(f"wording/{of} has no {key!r} under [{area}]: add it to each language.")
        found = found[part]
    return found


class Words:
    """The sentences of one area.

    >>> words("ui.words")("noun.token", n=1), words("ui.words")("noun.token", n=1200)
    ('1 token', '1,200 tokens')
    """

    def __init__(self, area: str) -> None:
        self.area = area

    def __call__(self, key: str, /, **values: object) -> str:
        """The sentence under `key`, in the language spoken now, with the values put into its `{places}`.

        A sentence with plural forms, a table of `one` and `other`, takes the form for the value `n`. Without
        values the text is given as it stands, braces and all; with values a brace is written twice.

        Raises:
            KeyError: if the key or a value for one of its places is missing.
        """
        return self.written(key, language(), **values)

    def written(self, key: str, of: str, /, **values: object) -> str:
        """The same in a language that somebody else speaks than the one who causes it to be said."""
        found = find(self.area, key, of)
        if isinstance(found, dict):
            found = found["one" if values["n"] == 1 else "other"]
        return str(found.format(**values)) if values else str(found)

    def table(self, key: str) -> dict[str, str]:
        """The sentences of a table, by their keys, in the order of the source language's file."""
        return {name: self(f"{key}.{name}") for name in find(self.area, key, SOURCE)}

    def later(self, key: str) -> str:
        """A sentence that is looked up when it is drawn; for `show_spinner`, which is given at import."""
        return _Later(self, key)


class _Later(str):
    _say: Words

    def __new__(cls, say: Words, key: str) -> "_Later":
        made = super().__new__(cls, key)
        made._say = say
        return made

    def __str__(self) -> str:
        return self._say(super().__str__())


@cache
def words(area: str) -> Words:
    """The sentences of the module of this name; see `Words`."""
    return Words(area)
