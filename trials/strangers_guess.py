"""A stranger who knows every id of somebody's things, and tries to read, stop, change or take them."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from engine.owners import owner_hash
from engine.runs import RunStore
from trials.outcomes import Check
from trials.strangers_people import (
    SECRET_NAME,
    SECRET_TEXT,
    SECRET_VOCABULARY,
    Listener,
    Spy,
    Things,
    changes,
    pressed,
    state_of,
    told,
)

WATCHES = ("train", "one-step", "time-machine", "runs", "class")
PAGES = (
    "home", "tokens", "embeddings", "next_token", "attention", "inside", "compare", "masking", "generation",
    "models", "tuning", "experiments", "lessons", "exercises", "guess", "teacher", "selftest",
)  # fmt: skip
# What an owner may ask of the store, and with what besides the run and their word.
ASKED: dict[str, dict[str, object]] = {
    "stop": {}, "pause": {}, "step": {}, "resume": {"steps": 99}, "delete": {}, "restore": {},
    "rename": {"name": "mine"}, "keep": {"wanted": True},
}  # fmt: skip
ODD = ("../{run}", "{run}/../{run}", "%2e%2e/{run}", "{run}\0", "*", ".", "", "{run}.", "{RUN}", "runs/{run}")


def links(things: Things, toy: bool) -> list[tuple[str, dict[str, str]]]:
    """Addresses that a stranger may try."""
    named = {"run": things.run, "model": f"run:{things.run}", "class": things.room}
    setting = {"training_tokenizer": f"own:{things.vocabulary}", "training_text": things.text}
    found = [("training", {"watch": watch, **named, "set": json.dumps(setting)}) for watch in WATCHES]
    found += [("training", {"watch": "train", "run": things.waits})]
    found += [
        ("teacher", {"desk": "runs", **named}),
        ("generation", named),
        ("compare", {"other": named["model"], **named}),
    ]
    if not toy:
        found += [(page, named) for page in PAGES]
        for odd in ODD:
            run = odd.format(run=things.run, RUN=things.run.upper())
            found += [("training", {"run": run, "model": f"run:{run}"})]
    return found


def words_of(things: Things) -> dict[str, bytes]:
    """What must never reach a stranger: name of it -> how it is written."""
    return {
        "the owner's word": things.word.encode(),
        "its fingerprint": owner_hash(things.word).encode(),
        "the text": SECRET_TEXT.split()[1].encode(),
        "the vocabulary": SECRET_VOCABULARY.split()[0].encode(),
        "the owner's name": SECRET_NAME.encode(),
    }


def leaked(things: Things, said: bytes) -> list[str]:
    """Which of these stand in what a stranger was sent."""
    return [name for name, written in words_of(things).items() if written in said]


async def read(spy: Spy, owner: Spy, things: Things, toy: bool) -> Check:
    """Open every link that names what isn't theirs; the owner has opened theirs."""
    tried, models, errors = 0, 0, list[str]()
    tab: Listener | None = None
    for page, query in links(things, toy):
        tab = await spy.listen(page, **query)
        tried += 1
        models += tab.value("model") == f"run:{things.run}" if tab.has("model") else 0
        errors += tab.exceptions()
        await tab.close()
    found = leaked(things, spy.said())
    seen = f"{tried} addresses opened, {len(spy.said()) / 1e6:.1f} MB read: " + (
        ", ".join(found) or "nothing private"
    )
    seen += f", the model chosen {models} times, {len(errors)} errors on the screen"
    shown = leaked(things, owner.said())  # else all of this would prove nothing
    seen += f"; the owner is shown: {', '.join(shown) or 'nothing'}"
    return Check(
        "Who knows all ids of others reads no text, vocabulary, name or word of theirs, nor uses their model",
        seen, not (found or models or errors) and {"the text", "the vocabulary"} <= {*shown},
    )  # fmt: skip


async def owners_widgets(owner: Spy, things: Things) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """All widgets and all files offered on the owner's own Training page, which no stranger's page has."""
    widgets: dict[str, tuple[str, str]] = {}
    files: list[str] = []
    for run in (things.run, things.waits):
        for watch in ("train", "runs", "time-machine"):
            tab = await owner.listen("training", watch=watch, run=run)
            widgets |= tab.ids()
            files += [one.deferred_file_id or one.url for one in tab.all("download_button")]
            await tab.close()
    tab = await owner.listen("teacher")
    widgets |= tab.ids()
    files += [one.deferred_file_id or one.url for one in tab.all("download_button")]
    return widgets, files


async def act(spy: Spy, home: str, things: Things, widgets: dict[str, tuple[str, str]]) -> list[Check]:
    """Press each of the owner's buttons, and choose the owner's things, where the page has none of them."""
    before = state_of(home, things)
    tab = await spy.listen("training", watch="train", run=things.waits)
    buttons = [widget for widget, kind in widgets.values() if kind in ("button", "download_button")]
    for widget in buttons:
        await tab.forge(pressed(widget))
    for watch in ("runs", "time-machine", "train"):
        await tab.follow(watch=watch, run=things.run)
        await tab.forge(*_chosen(widgets, things), *map(pressed, buttons))
    errors = tab.exceptions()
    gone = changes(before, state_of(home, things))
    acted = len(buttons) * 4
    checks = [
        Check(
            "Presses of buttons that are not on a stranger's page change nothing of others",
            f"{acted} forged presses on {len(buttons)} buttons, {len(gone)} files changed, "
            f"{len(errors)} errors on the screen",
            not gone and not errors and len(buttons) > 5,
        )
    ]
    store = RunStore(home)
    refused, tried = 0, 0
    for run in (things.run, things.waits):
        for name, more in ASKED.items():
            tried += 1
            try:
                getattr(store, name)(run, spy.word, **more)
            except (PermissionError, ValueError):
                refused += 1
    store.close()
    gone = changes(before, state_of(home, things))
    said = f"{tried} asked, {refused} refused, {len(gone)} files changed"
    checks.append(
        Check(
            "The store refuses another word for everything that an owner may do",
            said,
            refused == tried and not gone,
        )
    )
    return checks


def _chosen(widgets: dict[str, tuple[str, str]], things: Things) -> list[WidgetState]:
    """The owner's things as values of the widgets that choose among one's own."""
    found = []
    for key, (widget, kind) in widgets.items():
        wanted = {"model": f"run:{things.run}", "runs_one": things.run, "teacher_class": things.room}.get(key)
        if wanted and kind == "selectbox":
            found.append(WidgetState(id=widget, string_value=wanted))
        elif key.startswith("runs_name_"):
            found.append(WidgetState(id=widget, string_value="mine now"))
        elif key == "runs_chosen":
            state = WidgetState(id=widget)
            state.string_array_value.data.append(things.run)
            found.append(state)
    return found


def words_to_try(things: Things) -> Iterable[object]:
    """What somebody may send as the word of their browser."""
    for known in (owner_hash(things.word)[:32], things.run, things.room, things.vocabulary):
        yield {"token": known}
        yield {"token": hashlib.sha256(known.encode()).hexdigest()[:32]}
    yield from ({"token": word} for word in ("", "0" * 32, "a" * 32, "*", None, 0, True, ["x"], {"$ne": ""}))
    yield from (
        "token",
        [],
        {"token": things.word.upper()},
        {"token": f" {things.word}"},
        {"token": things.word[:-1]},
    )


async def other_words(spy: Spy, home: str, things: Things) -> Check:
    """Answer for the browser with words that are not its own: none makes a stranger the owner."""
    before = state_of(home, things)
    tab = await spy.listen("training", watch="train", run=things.waits)
    (owner,) = [one.id for one in tab.all("bidi_component") if one.component_name.endswith("loupe_owner")]
    tried, mine = 0, 0
    for said in words_to_try(things):
        await tab.forge(told(owner, said))
        tried += 1
        mine += tab.has("training_stop")
    gone, found = changes(before, state_of(home, things)), leaked(things, tab.said())
    await tab.forge(told(owner, {"token": things.word}))
    right = tab.has("training_stop")  # else all of this would prove nothing
    seen = f"{tried} words tried, {mine} took effect, {len(gone)} files changed; the right one does: {right}"
    what = "No word but the owner's own, 128 random bits, gives an owner's rights"
    return Check(what, seen, not mine and not gone and not found and right)


async def _given(tab: Listener, session: str, names: list[str]) -> tuple[int, int]:
    """Ask for files by their names, as if in some session; how many answers there were, and files."""
    before, kind = len(tab.heard), "backend_operation_response"
    for i, name in enumerate(names):
        message = BackMsg()
        message.backend_operation_request.request_id = f"r{i}"
        message.backend_operation_request.session_id = session
        message.backend_operation_request.deferred_file.file_id = name
        await tab.send(message)
    answers: list[Any] = []
    for _ in range(5):  # an answer may come after the page's own; a request that is refused has none
        await tab.forge()
        answers = [getattr(one, kind) for one in tab.heard[before:] if one.WhichOneof("type") == kind]
        if len(answers) == len(names):
            break
    return len(answers), sum(bool(answer.deferred_file.url) for answer in answers)


async def files(spy: Spy, owner: Spy, files_of: list[str], things: Things) -> Check:
    """Ask for the owner's downloads by guesses at their names, in one's own session and in the owner's."""
    tab = await spy.listen("training", watch="runs", run=things.run)
    guesses = [things.run, f"{things.run}.zip", things.vocabulary, things.text, "0" * 32, "../runs", ""]
    theirs = await owner.listen("training", watch="runs", run=things.run)
    answered, given = await _given(tab, tab.session, guesses)
    in_theirs = (await _given(tab, theirs.session, [*guesses, *files_of]))[1]
    names = [one.deferred_file_id for one in theirs.all("download_button") if one.deferred_file_id]
    right = (await _given(theirs, theirs.session, names))[1]  # else all of this would prove nothing
    offered = [name for name in files_of if name and name.encode() in spy.said()]
    return Check(
        "Files that a page offers have names that nobody else is told or can guess",
        f"{len(guesses)} names guessed, {answered} answered, {given} files given, {in_theirs} in the owner's "
        f"session; of {len(files_of)} names of the owner {len(offered)} reached the stranger; the owner is "
        f"given {right}",
        bool(files_of) and answered > 0 and not given and not in_theirs and not offered and right > 0,
    )
