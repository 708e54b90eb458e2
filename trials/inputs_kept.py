"""What people leave in the data folder: progress, exercises, bets, classes, predictions, switches."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as some

from engine import new_runs, retention
from engine.classes import ClassStore
from engine.exercise_store import Seen, SeenStore
from engine.folders import write_json
from engine.guess_store import BetStore
from engine.predictions import Predictions
from engine.progress import ProgressStore
from trials import inputs_made as made
from trials.inputs_changes import Change, Cut, as_json, changed, changes, cut_up, cuts
from trials.inputs_kind import Broken, Kind

KINDS = ("progress", "seen", "bets", "classes", "predictions", "retention", "new_runs")


class Json(NamedTuple):
    """Changes of what a kind of file holds."""

    kind: str
    changes: tuple[Change, ...]


class Bytes(NamedTuple):
    """Changes of a file's bytes."""

    kind: str
    cuts: tuple[Cut, ...]


class Text(NamedTuple):
    """What somebody types as a name, a title, the code of a class, an exercise."""

    text: str


cases = some.one_of(
    some.builds(Json, some.sampled_from(KINDS), changes.map(tuple)),
    some.builds(Bytes, some.sampled_from(KINDS), cuts.map(tuple)),
    some.builds(
        Text,
        some.one_of(
            some.text(max_size=60), some.sampled_from(("../x", "/etc/passwd", "a" * 500, "\ud800", ""))
        ),
    ),
)
KNOWN: tuple[Any, ...] = (*(Bytes(kind, ()) for kind in KINDS), Text("Zoë"), Text("../../outside/secret"))


def attempt(case: Any, home: Path) -> None:
    """Write good files, damage one, use all stores."""
    if isinstance(case, Text):
        _typed(case.text, home)
        return
    code = _good(home)
    file = {
        "progress": next(home.glob("people/[!.]*.json")),
        "seen": next(home.glob("people/.exercises-*")),
        "bets": next(home.glob("people/.guess-*")),
        "classes": home / "classes" / f"{code}.json",
        "predictions": next(home.glob("predictions/*.json")),
        "retention": home / retention.RECORD,
        "new_runs": home / new_runs.FILE,
    }[case.kind]
    before = file.read_bytes()
    if isinstance(case, Json):
        file.write_bytes(as_json(changed(json.loads(before), case.changes)))
    else:
        file.write_bytes(cut_up(before, case.cuts))
    _use(home, code)


def _good(home: Path) -> str:
    """A person in a class, with an exercise, a bet and a prediction; gives the class's code."""
    classes, people = ClassStore(home), ProgressStore(home)
    code = classes.create(made.OWNER, "A class")
    people.join(made.OWNER, code)
    people.rename(made.OWNER, "Zoë")
    people.pass_lesson(made.OWNER, "tokens")
    people.answer(made.OWNER, "softmax", seed=1, right=True)
    classes.numbers(code, [people.read(made.OWNER).person])
    SeenStore(home).keep(made.OWNER, "softmax", 1, Seen(1, False, True))
    SeenStore(home).go_to(made.OWNER, "softmax", 1, 2)
    BetStore(home).add(made.OWNER, "round", 0, {"token": 1})
    Predictions(home, made.OWNER).commit("study", 0.5)
    retention.tidy(home)
    write_json(home / new_runs.FILE, {"only_waiting": True, "since": 1.0})
    return code


def _use(home: Path, code: str) -> None:
    """What pages ask of the stores."""
    people, classes = ProgressStore(home), ClassStore(home)
    person = people.read(made.OWNER)
    (person.name or "").encode()
    sum(person.lessons.values()) + sum(
        done.time + done.tries + done.hints for done in person.exercises.values()
    )
    people.everyone(code)
    classes.of(made.OWNER)
    if found := classes.get(code):
        found.title.encode()
        if not found.created < float("inf"):
            raise Broken("a class of no time")
    classes.numbers(code, [person.person])
    seen = SeenStore(home)
    seen.seen(made.OWNER, "softmax", 1)
    seen.turn(made.OWNER, "softmax", 1)
    seen.keep(made.OWNER, "softmax", 1, Seen(2))
    BetStore(home).read(made.OWNER, "round")
    BetStore(home).add(made.OWNER, "round", 1, {"token": 2})
    Predictions(home, made.OWNER).get("study")
    Predictions(home, made.OWNER).commit("study", 1.0)
    people.answer(made.OWNER, "softmax", seed=2, right=False)
    classes.forget(code, person.person)
    new_runs.may_begin(home)
    retention.is_due(home)
    retention.tidy(home)
    people.delete(made.OWNER)


def _typed(text: str, home: Path) -> None:
    people, classes = ProgressStore(home), ClassStore(home)
    refused = []
    for act in (
        lambda: people.rename(made.OWNER, text),
        lambda: people.join(made.OWNER, text),
        lambda: people.pass_lesson(made.OWNER, text),
        lambda: people.answer(made.OWNER, text, seed=1, right=True),
        lambda: classes.create(made.OWNER, text),
    ):
        try:
            act()
        except ValueError as error:
            refused.append(error)
    classes.get(text)
    if (person := people.read(made.OWNER)).name:
        person.name.encode()
    if refused:
        raise refused[0]


KIND = Kind("kept", cases, attempt, known=KNOWN)
