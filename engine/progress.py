"""How far each person is: lessons passed, exercises answered, and, if they want, a name and a class.

One file for a person, $LOUPE_HOME/people/<sha256 of the owner's word>.json. The word itself gives rights, so
it is never written down. Nothing leaves this machine, and `delete` leaves nothing of a person.
"""

import re
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from engine.folders import JsonReader, checked_name, data_folder, read_json, told, write_json
from engine.owners import owner_hash
from wording import words

LONGEST_NAME = 40  # characters
MOST_KINDS = 1000  # lessons, or exercises, in one file; there are far fewer
KEPT_BROKEN = 3  # damaged files of one person that are set aside
_FORMAT = 1
_PERSON = re.compile(r"[0-9a-f]{64}")
_JOINERS = "\u200c\u200d"  # invisible, but names in Persian and Hindi are spelled with them
say = words("engine.progress")


@dataclass(frozen=True)
class Done:
    """What a person did with one exercise.

    Attributes:
        tries: answers that were marked, right or wrong.
        right: whether one of them was right.
        hints: most hints opened before an answer, until the first right one.
        seed: of the numbers in the last answered one.
        time: of the last answer, in seconds since 1970.
    """

    tries: int
    right: bool
    hints: int
    seed: int
    time: float


@dataclass(frozen=True)
class Progress:
    """How far one person is. Don't change its dictionaries: others may hold the same ones.

    Attributes:
        person: SHA-256 of the owner's word, in hexadecimal; names the person without giving their rights.
        name: what they want to be called; may hold any printable characters; None if they did not say.
        room: code of the class that they joined, or None.
        lessons: passed ones, to the time of the first pass in seconds since 1970.
        exercises: answered ones.
    """

    person: str
    name: str | None = None
    room: str | None = None
    lessons: dict[str, float] = field(default_factory=dict)
    exercises: dict[str, Done] = field(default_factory=dict)


class ProgressStore:
    """The files of all people on this server; safe for several servers on one folder.

    Args:
        home: the data folder; None for $LOUPE_HOME.
    """

    def __init__(self, home: Path | None = None) -> None:
        self.folder = data_folder(home) / "people"
        self._reader = JsonReader()

    def read(self, owner: str) -> Progress:
        """How far a person is; nothing done if they are not known. A damaged file is set aside first."""
        return self._read(owner_hash(owner))

    def known(self, person: str) -> Progress:
        """How far somebody is, by the hash of their word, as in `Progress.person`; nothing if unknown."""
        return self._read(person) if _PERSON.fullmatch(person) else Progress(person)

    @told()
    def pass_lesson(self, owner: str, lesson: str) -> Progress:
        """Note that a lesson's check was passed. Passed again, it keeps the time of the first pass.

        Raises:
            ValueError: if that can't be the name of a lesson.
        """
        checked_name(lesson)
        return self._change(
            owner, lambda p: replace(p, lessons=_with(p.lessons, lesson, p.lessons.get(lesson, time.time())))
        )

    @told()
    def answer(self, owner: str, exercise: str, *, seed: int, right: bool, hints: int = 0) -> Progress:
        """Count an answer to an exercise.

        Raises:
            ValueError: if that can't be the name of an exercise.
        """
        checked_name(exercise)

        def count(progress: Progress) -> Progress:
            before = progress.exercises.get(exercise, Done(0, False, 0, seed, 0.0))
            most = before.hints if before.right else max(before.hints, int(hints))
            done = Done(before.tries + 1, before.right or bool(right), most, int(seed), time.time())
            return replace(progress, exercises=_with(progress.exercises, exercise, done))

        return self._change(owner, count)

    @told()
    def rename(self, owner: str, name: str | None) -> Progress:
        """Take a name, or give it up; see `checked_person`.

        Raises:
            ValueError: one sentence, if the name is too long or holds characters that can't be seen.
        """
        wanted = checked_person(name)
        return self._change(owner, lambda p: replace(p, name=wanted))

    @told()
    def join(self, owner: str, room: str | None) -> Progress:
        """Be seen on the board of a class, or leave it with None.

        Raises:
            ValueError: if that can't be the code of a class.
        """
        code = None if room is None else checked_name(room)
        return self._change(owner, lambda p: replace(p, room=code))

    @told()
    def delete(self, owner: str) -> None:
        """Leave nothing of a person, damaged files included. Nothing happens if nothing is there."""
        if not self.folder.is_dir():
            return
        with self._lock():
            for path in self.folder.glob(f"*{owner_hash(owner)}.json*"):
                path.unlink(missing_ok=True)

    @told()
    def let_go(self, person: str, room: str, *, forget: bool) -> None:
        """Take a person out of a class. Nothing happens if they are in another one, or unknown.

        Args:
            person: hash of their word, as in `Progress.person`.
            room: code of the class that they must be in.
            forget: delete their record, too.
        """
        if not _PERSON.fullmatch(person) or not self._path(person).is_file():
            return
        with self._lock():
            before = self._read_or_set_aside(person)
            if before.room != room:
                return
            if forget:
                for path in self.folder.glob(f"*{person}.json*"):
                    path.unlink(missing_ok=True)
            else:
                write_json(self._path(person), {"format": _FORMAT, **asdict(replace(before, room=None))})

    def everyone(self, room: str) -> list[Progress]:
        """Those who joined a class: by name, then those without one."""
        paths = self.folder.glob("*.json") if self.folder.is_dir() else ()
        people = [self._read(path.stem) for path in paths if not path.name.startswith(".")]
        found = [progress for progress in people if progress.room == room]
        return sorted(found, key=lambda p: (p.name is None, (p.name or "").casefold(), p.person))

    def _path(self, person: str) -> Path:
        return self.folder / f"{person}.json"

    def _lock(self) -> FileLock:
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / "people.lock")

    def _read(self, person: str) -> Progress:
        path = self._path(person)
        with suppress(ValueError):
            if content := self._reader.read(path):
                return _from_json(content, person)
        if not path.is_file():
            return Progress(person)
        with self._lock():
            return self._read_or_set_aside(person)

    def _read_or_set_aside(self, person: str) -> Progress:
        """For whoever holds the lock: nobody else writes meanwhile."""
        path = self._path(person)
        try:
            path.open("rb").close()
        except FileNotFoundError:
            return Progress(person)
        try:
            return _from_json(read_json(path), person)
        except ValueError:
            path.replace(path.with_name(f"{path.name}.broken-{time.time_ns()}"))
            for old in sorted(self.folder.glob(f"{path.name}.broken-*"))[:-KEPT_BROKEN]:
                old.unlink(missing_ok=True)
            return Progress(person)

    def _change(self, owner: str, change: Callable[[Progress], Progress]) -> Progress:
        person = owner_hash(owner)
        with self._lock():
            before = self._read_or_set_aside(person)
            after = change(before)
            if max(len(after.lessons), len(after.exercises)) > MOST_KINDS:
                raise ValueError(say("too-many", n=MOST_KINDS))
            if after != before:
                write_json(self._path(person), {"format": _FORMAT, **asdict(after)})
        return after


def checked_person(name: str | None) -> str | None:
    """A person's name with single spaces; None if nothing is left of it.

    Raises:
        ValueError: one sentence, if it is too long or holds characters that can't be seen.

    >>> checked_person("  Zoë   Q. "), checked_person(" ")
    ('Zoë Q.', None)
    """
    if name is None:
        return None
    kept = " ".join(unicodedata.normalize("NFC", name).split())
    if len(kept) > LONGEST_NAME:
        raise ValueError(say("long-name", n=len(kept), most=LONGEST_NAME))
    hidden = next((c for c in kept if unicodedata.category(c)[0] == "C" and c not in _JOINERS), None)
    if hidden is not None:
        raise ValueError(say("hidden-character", code=f"U+{ord(hidden):04X}"))
    return kept if kept.strip(_JOINERS) else None


def _with(kept: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return {**kept, name: value}


def _from_json(content: dict[str, Any], person: str) -> Progress:
    """Read what a file holds.

    Raises:
        ValueError: unless it is what `asdict` wrote, for this person.
    """
    try:
        if content["format"] != _FORMAT or content["person"] != person:
            raise ValueError(content["format"], content["person"])
        name, room = content["name"], content["room"]
        if room is not None:
            checked_name(room)
        lessons = {checked_name(k): float(v) for k, v in content["lessons"].items()}
        exercises = {checked_name(k): _done(v) for k, v in content["exercises"].items()}
        return Progress(person, checked_person(name), room, lessons, exercises)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(repr(error)) from error


def _done(kept: dict[str, Any]) -> Done:
    return Done(
        int(kept["tries"]),
        bool(kept["right"]),
        int(kept["hints"]),
        int(kept["seed"]),
        float(kept["time"]),
    )
