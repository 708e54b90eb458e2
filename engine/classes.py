"""Classes: a code that students join, and who may see their board. Files on this server only.

One file for a class, $LOUPE_HOME/classes/<code>.json. Of its maker only the hash of their browser's word is
kept: the word itself gives rights. Who is in a class stands in each person's own record, see progress.py.
"""

import re
import secrets
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from engine.folders import JsonReader, data_folder, told, write_json
from engine.owners import owner_hash
from engine.setting_checks import is_number
from wording import words

LONGEST_TITLE = 60  # characters
MOST = 20  # classes of one person
MOST_ON_SERVER = 2000
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look alike when written on a board
_LENGTH = 8  # 31**8 is nearly 10**12: nobody comes upon a class by trying
_CODE = re.compile(f"[{_LETTERS}]{{{_LENGTH}}}")
_PERSON = re.compile(r"[0-9a-f]{64}")
_FORMAT = 1
say = words("engine.classes")


@dataclass(frozen=True)
class Class:
    """A class.

    Attributes:
        code: what students join by, 8 letters and digits.
        title: what its maker calls it; may be empty, may hold any printable characters.
        owner_hash: SHA-256 of its maker's word, in hexadecimal.
        created: seconds since 1970.
    """

    code: str
    title: str
    owner_hash: str
    created: float

    def owned_by(self, owner: str) -> bool:
        """Whether this word may see its board, and delete it."""
        return secrets.compare_digest(self.owner_hash, owner_hash(owner))


def checked_code(code: str | None) -> str | None:
    """The code as it is kept, whatever hyphens, spaces and capitals somebody typed; None if it can't be one.

    >>> checked_code(" KX7M-2qpa "), checked_code("../kx7m2q"), checked_code(None)
    ('kx7m2qpa', None, None)
    """
    if not isinstance(code, str) or len(code) > 40:
        return None
    kept = re.sub(r"[\s-]", "", code).lower()
    return kept if _CODE.fullmatch(kept) else None


class ClassStore:
    """The classes of this server; safe for several servers on one folder.

    Args:
        home: the data folder; None for $LOUPE_HOME.
    """

    def __init__(self, home: Path | None = None) -> None:
        self.folder = data_folder(home) / "classes"
        self._reader = JsonReader()

    @told()
    def create(self, owner: str, title: str = "") -> str:
        """Make a class; gives its code.

        Raises:
            ValueError: one sentence, if the title can't be one, or there are too many classes.
        """
        kept = _checked_title(title)
        with self._lock():
            everything = list(self._all())
            if sum(one.owned_by(owner) for one in everything) >= MOST:
                raise ValueError(say("most", n=MOST))
            if len(everything) >= MOST_ON_SERVER:
                raise ValueError(say("most_here", n=MOST_ON_SERVER))
            taken = {one.code for one in everything}
            code = _new_code()
            while code in taken:
                code = _new_code()
            made = {"title": kept, "owner_hash": owner_hash(owner), "created": time.time(), "people": []}
            write_json(self._path(code), {"format": _FORMAT, "code": code, **made})
        return code

    def get(self, code: str | None) -> Class | None:
        """The class with this code; None if there is none, or its file is damaged."""
        kept = checked_code(code)
        return None if kept is None else _from_json(self._reader.read(self._path(kept)), kept)

    def of(self, owner: str) -> list[Class]:
        """The classes that this browser made, the newest first."""
        return sorted((one for one in self._all() if one.owned_by(owner)), key=lambda one: -one.created)

    @told()
    def delete(self, owner: str, code: str) -> None:
        """Delete a class. The records of its people are not touched.

        Raises:
            ValueError: if it is another browser's class. One that is gone already is no error.
        """
        with self._lock():
            if (found := self.get(code)) is None:
                return
            if not found.owned_by(owner):
                raise ValueError(say("not_yours"))
            self._path(found.code).unlink(missing_ok=True)

    def numbers(self, code: str, people: Iterable[str]) -> dict[str, int]:
        """A number for each person of a class, from 1 in the order in which they were first seen.

        The number stays theirs, so that "Student 3" is the same one tomorrow.

        Args:
            code: of a class that is there.
            people: hashes of their words, as in `Progress.person`.
        """
        wanted = [person for person in people if _PERSON.fullmatch(person)]
        known = self._people(code)
        if set(wanted) - set(known) and self.get(code) is not None:
            with self._lock():
                known = self._people(code)
                known += [person for person in wanted if person not in set(known)]
                content = self._reader.read(self._path(code))
                if content:
                    write_json(self._path(code), {**content, "people": known})
        return {person: i for i, person in enumerate(known, start=1)}

    @told()
    def forget(self, code: str, person: str) -> None:
        """Leave nothing of a person in the class's file but the gap in the numbers."""
        with self._lock():
            content = self._reader.read(self._path(code))
            if _from_json(content, code) is not None:
                gone = ["" if one == person else one for one in self._people(code)]
                write_json(self._path(code), {**content, "people": gone})

    def _people(self, code: str) -> list[str]:
        kept = self._reader.read(self._path(code)).get("people")
        return [str(one) for one in kept] if isinstance(kept, list) else []

    def _all(self) -> Iterable[Class]:
        for path in self.folder.glob("*.json") if self.folder.is_dir() else ():
            if _CODE.fullmatch(path.stem) and (found := self.get(path.stem)):
                yield found

    def _path(self, code: str) -> Path:
        return self.folder / f"{code}.json"

    def _lock(self) -> FileLock:
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / "classes.lock")


def _new_code() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))


def _checked_title(title: str) -> str:
    kept = " ".join(unicodedata.normalize("NFC", title).split())
    if len(kept) > LONGEST_TITLE:
        raise ValueError(say("long_title", n=len(kept), most=LONGEST_TITLE))
    if any(unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn") for character in kept):
        raise ValueError(say("odd_title"))
    return kept


def _from_json(content: dict[str, Any], code: str) -> Class | None:
    title, owner, created = (content.get(name) for name in ("title", "owner_hash", "created"))
    whole = content.get("format") == _FORMAT and content.get("code") == code and isinstance(title, str)
    if not whole or not isinstance(owner, str) or not owner.isascii():
        return None
    if not isinstance(created, int | float) or not is_number(created):
        return None
    return Class(code, str(title), owner, float(created))
