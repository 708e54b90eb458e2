"""Two people on one server: one who has things of their own, and a stranger who tries to get at them.

The stranger's tab keeps every message that it is sent, and can send what no browser would: presses of buttons
that are not on its page, values that no widget offers, another word than its own.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.client import Person, Tab
from engine import new_runs, own_vocabularies, worker
from engine.classes import ClassStore
from engine.config import ModelConfig, TrainConfig
from engine.corpus import own_text
from engine.owners import owner_hash
from engine.progress import ProgressStore
from engine.runs import RunSpec, RunStore
from engine.tokenizers import char_tokenizer, train_bpe

# Words that stand in the first person's things and nowhere else.
SECRET_TEXT = "the plumfeather waltzed with a quiet zibbet"
SECRET_VOCABULARY = "kwellinor marsh"
SECRET_NAME = "Wilhelmina Quorn"
OPENED = "opened"  # a mark in a run's folder: somebody looked at it


@dataclass
class Listener(Tab):
    """A tab that keeps what it is sent, and sends what it likes."""

    heard: list[ForwardMsg] = field(default_factory=list)
    session: str = ""

    def _take(self, message: ForwardMsg) -> bool | None:
        self.heard.append(message)
        if message.WhichOneof("type") == "new_session":
            self.session = message.new_session.initialize.session_id or self.session
        return super()._take(message)

    async def forge(self, *states: WidgetState) -> None:
        """Run the page with these states, as if its widgets had them; they hold for this run alone."""
        before = dict(self._values)
        self._values |= {state.id: state for state in states}
        try:
            await self._ask()
        finally:
            self._values = {name: state for name, state in before.items()}

    async def follow(self, **query: str) -> None:
        """Change the address, as if a link were opened in this tab."""
        self.query = urlencode(query)
        await self._ask()

    async def send(self, message: BackMsg) -> None:
        """Send a message of another kind."""
        assert self._socket is not None
        await self._socket.send(message.SerializeToString())

    def ids(self) -> dict[str, tuple[str, str]]:
        """Key -> (id, kind) of every widget on the page."""
        return {key: (self._widget(key).content.id, self._widget(key).kind) for key in self.keys() if key}

    def has(self, key: str) -> bool:
        """Whether there is a widget with this key."""
        return key in self.keys()  # noqa: SIM118

    def said(self) -> bytes:
        """All that came, one after the other."""
        return b"\n".join(message.SerializeToString() for message in self.heard)


class Spy(Person):
    """A person whose tabs are listeners."""

    def __init__(self, url: str, word: str | None = None) -> None:
        """Nothing is open yet; `word` is what the browser keeps."""
        super().__init__(url)
        self.word = word or self.word
        self.listeners: list[Listener] = []

    async def __aenter__(self) -> "Spy":
        return self

    async def listen(self, page: str = "", **query: str) -> Listener:
        """Open a page."""
        if not self._cookie:
            self._cookie = self._knock()
        tab = Listener(self, page, urlencode(query))
        self._tabs.append(tab)
        self.listeners.append(tab)
        await tab.start()
        return tab

    @property
    def cookie(self) -> str:
        """The cookie against forged requests."""
        return self._cookie

    def said(self) -> bytes:
        """All that any of the tabs was sent."""
        return b"\n".join(tab.said() for tab in self.listeners)


@dataclass(frozen=True)
class Things:
    """What the first person has on the server.

    Attributes:
        word: that their browser keeps; it gives all rights.
        run: a finished one, on a text of their own, with checkpoints.
        waits: one in the queue.
        vocabulary: hash of a vocabulary that they learned.
        room: code of a class that they made.
        text: fingerprint of their text.
    """

    word: str
    run: str
    waits: str
    vocabulary: str
    room: str
    text: str


def spec(name: str, text: str, **changes: Any) -> RunSpec:
    """A run of ten steps on a text of one's own."""
    tokenizer = char_tokenizer(text)
    objective = changes.pop("objective", "clm")
    model = ModelConfig(tokenizer.model_vocab_size(objective), 16, 1, 1, 8, objective=objective)
    settings = {"steps": 10, "batch_size": 2, "eval_every": 5, "eval_rows": 2, "checkpoint_every": 5}
    return RunSpec(name, own_text(text), tokenizer, model, TrainConfig(**{**settings, **changes}))


def settle(home: str, word: str) -> Things:
    """Give a person a run, one in the queue, a vocabulary, a class and a name."""
    store = RunStore(home)
    new_runs.let_begin(Path(home), False)  # so that what waits goes on waiting
    text = f"{SECRET_TEXT}, and again. " * 40
    ended = store.create(spec("An ended run", text, objective="mlm"), word)
    worker.run_folder(store.claim(ended), report=lambda said: None)
    waits = store.start(spec("A run that waits", text, seed=1), word)
    learned = own_vocabularies.save(
        word, train_bpe(f"{SECRET_VOCABULARY} " * 50, 300), SECRET_VOCABULARY, home=Path(home)
    )
    people = ProgressStore(Path(home))
    people.rename(word, SECRET_NAME)
    people.pass_lesson(word, "tokens")
    room = ClassStore(Path(home)).create(word, "The owner's class")
    sha = str(store.info(ended).corpus["sha256"])
    store.close()
    return Things(word, ended, waits, learned.hash, room, sha)


def state_of(home: str, things: Things) -> dict[str, str]:
    """Fingerprints of all files that are the first person's; marks that somebody looked are left out."""
    folder = Path(home)
    whose = owner_hash(things.word)
    places = [
        *(folder / "runs" / run for run in (things.run, things.waits)),
        folder / "vocab" / "own" / whose[:32],
        folder / "classes" / f"{things.room}.json",
        folder / "people" / f"{whose}.json",
    ]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for place in places
        for path in ([place] if place.is_file() else sorted(place.rglob("*")))
        if path.is_file() and path.name != OPENED
    }


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The files that came, went or are others."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def pressed(widget: str) -> WidgetState:
    """A button that is pressed."""
    return WidgetState(id=widget, trigger_value=True)


def told(widget: str, said: Any) -> WidgetState:
    """A component that answers."""
    return WidgetState(id=widget, json_value=json.dumps(said))


def strings(message: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a message, with its place, such as "delta.new_element.markdown.body"."""
    for descriptor, value in message.ListFields():
        here = f"{path}.{descriptor.name}" if path else descriptor.name
        many = value if descriptor.is_repeated else [value]
        if descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry:
            many = [v for v in value.values()]
        for one in many:
            if isinstance(one, str):
                yield here, one
            elif isinstance(one, bytes):
                with suppress(UnicodeDecodeError):
                    yield here, one.decode()
            elif hasattr(one, "ListFields"):
                yield from strings(one, here)
