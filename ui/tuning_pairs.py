"""Choosing pairs to learn from: built-in ones from the story grammar, pasted ones, or a file's."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from engine import corpus as texts
from engine import plain_log
from engine.corpus import Corpus
from engine.folders import read_json
from engine.pair_files import Pair, Preference, as_lines, read_pairs, read_preferences
from engine.story_pairs import story_pairs, story_preferences
from engine.tuning_plan import N_HELD_OUT, N_PAIRS
from ui.words import literal
from viz import format_count
from wording import words

say = words("ui.tuning_pairs")

KINDS = ("stories", "pasted", "uploaded")
SEED = 11  # of the built-in pairs
OWN_HELD_OUT = 0.1  # of own pairs, at least one, if there are several
EXAMPLE = {
    "answers": '{"prompt": "What does the cat say?", "answer": "Meow."}',
    "preferences": '{"prompt": "May I come in?", "chosen": "Please do.", "rejected": "No."}',
}
NAMES = {"answers": "Story pairs", "preferences": "Story preferences"}  # as runs keep them

PairAim = Literal["answers", "preferences"]
Rows = list[Pair] | list[Preference]


@dataclass(frozen=True, eq=False)
class Pairs:
    """What is learned from, and what is only for checking.

    Attributes:
        kind: "stories", "pasted" or "uploaded".
        name: of the file, or as runs keep it.
        train: to learn from.
        held_out: never learned from; the last of the own ones, or stories about other heroes.
    """

    kind: str
    name: str
    train: Any
    held_out: Any

    @property
    def shown(self) -> Any:
        """Those that a picture is of: held out, or without any those that are learned."""
        return self.held_out or self.train

    def corpus(self, aim: str) -> Corpus:
        """As the text of a run."""
        return Corpus(self.name, aim, as_lines(self.train), as_lines(self.held_out))


@dataclass(frozen=True)
class PairChoice:
    """The widgets of one choice of pairs, and the pairs that they lead to."""

    aim: PairAim

    def key(self, name: str) -> str:
        """Session key of one of the widgets: pairs, paste, file."""
        return f"tuning_{self.aim}_{name}"

    @property
    def kind(self) -> str:
        """What is chosen: one of `KINDS`."""
        chosen = st.session_state.get(self.key("pairs"))
        return str(chosen) if chosen in KINDS else KINDS[0]

    def draw(self) -> None:
        """Draw the choice, and what the chosen kind asks for."""
        st.session_state.setdefault(self.key("pairs"), KINDS[0])
        st.selectbox(
            say("label"), KINDS, format_func=lambda kind: say(f"kind.{self.aim}.{kind}"),
            key=self.key("pairs"), persist_state="session",
        )  # fmt: skip
        if self.kind == "pasted":
            st.text_area(
                say(f"paste.{self.aim}"), key=self.key("paste"), height=140, persist_state="session",
                placeholder=EXAMPLE[self.aim],
            )  # fmt: skip
        elif self.kind == "uploaded":
            st.file_uploader(
                say("upload"), type=["jsonl", "json", "csv", "tsv", "txt"], key=self.key("file"),
                max_upload_size=5, on_change=self._keep, help=say(f"format.{self.aim}"),
            )  # fmt: skip
            if self._upload:
                name, data = self._upload
                st.caption(say("file", name=literal(name), size=format_count(len(data))))
        if self.kind != KINDS[0]:
            st.caption(say(f"format.{self.aim}"))

    @property
    def _upload(self) -> tuple[str, bytes] | None:
        kept: tuple[str, bytes] | None = st.session_state.get(f"_{self.key('upload')}")
        return kept

    def _keep(self) -> None:
        file = st.session_state.get(self.key("file"))
        st.session_state[f"_{self.key('upload')}"] = (file.name, file.getvalue()) if file else None
        if file:
            try:
                _own(self.aim, "uploaded", file.name, texts.decode_upload(file.getvalue()))
            except ValueError as error:  # `read` says what is wrong
                plain_log.refusal("upload refused", error, of="pairs", bytes=file.size)

    def read(self) -> Pairs:
        """The chosen pairs.

        Raises:
            ValueError: one sentence, if there are none, or one can't be read: then with its line.
        """
        if self.kind == KINDS[0]:
            return _stories(self.aim)
        if self.kind == "uploaded":
            if not self._upload:
                raise ValueError(say("no_file"))
            name, data = self._upload
            return _own(self.aim, "uploaded", name, texts.decode_upload(data))
        text = str(st.session_state.get(self.key("paste"), ""))
        if not text.strip():
            raise ValueError(say(f"nothing.{self.aim}"))
        return _own(self.aim, "pasted", say("yours"), text)


@st.cache_resource(max_entries=4, show_spinner=False)
def _stories(aim: PairAim) -> Pairs:
    n = N_PAIRS[aim]
    if aim == "answers":
        train, held_out = story_pairs(SEED, n), story_pairs(SEED + 1, N_HELD_OUT, held_out=True)
        return Pairs("stories", NAMES[aim], train, held_out)
    preferences = story_preferences(SEED, n), story_preferences(SEED + 1, N_HELD_OUT, held_out=True)
    return Pairs("stories", NAMES[aim], *preferences)


def of_run(aim: PairAim, folder: Path) -> Pairs:
    """The pairs of a run.

    Raises:
        ValueError: if its files are damaged.
    """
    return _of_run(aim, str(folder))


@st.cache_resource(max_entries=16, show_spinner=False)
def _of_run(aim: PairAim, folder: str) -> Pairs:
    name = str(read_json(Path(folder) / "run.json").get("corpus", {}).get("name", ""))
    parts: list[Any] = []
    for file in ("corpus.txt", "corpus_val.txt"):
        path = Path(folder) / file
        text = path.read_text("utf-8") if path.exists() else ""
        parts.append(_rows(aim, text) if text.strip() else [])
    return Pairs(KINDS[0] if name == NAMES[aim] else "pasted", name, *parts)


def _rows(aim: str, text: str) -> Rows:
    return read_pairs(text) if aim == "answers" else read_preferences(text)


@st.cache_resource(max_entries=8, show_spinner=False)
def _own(aim: str, kind: str, name: str, text: str) -> Pairs:
    rows: Any = _rows(aim, text)
    n_held_out = max(1, round(len(rows) * OWN_HELD_OUT)) if len(rows) > 1 else 0
    cut = len(rows) - n_held_out
    return Pairs(kind, name, rows[:cut], rows[cut:])
