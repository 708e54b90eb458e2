"""Choosing a text to learn from: the stories, Python's help texts, one of your own, an uploaded file."""

from dataclasses import dataclass

import streamlit as st

from engine import corpus as texts
from engine import plain_log
from engine.corpus import Corpus
from ui.words import literal
from viz import format_count
from wording import words

say = words("ui.text_choice")

TEXTS = ("stories", "python-docs", "pasted", "uploaded")


def name_of(kind: str) -> str:
    """What the choice calls a kind of text."""
    return say(f"kind.{kind}")


@dataclass(frozen=True)
class TextChoice:
    """The widgets of one choice, and the text that they lead to.

    Attributes:
        prefix: of the session keys: "training" gives training_text, training_paste, …
        options: kinds of text; the first one is chosen at first.
    """

    prefix: str
    options: tuple[str, ...]

    def key(self, name: str) -> str:
        """Session key of one of the widgets: text, paste, file, encoding."""
        return f"{self.prefix}_{name}"

    @property
    def kind(self) -> str:
        """What is chosen: one of `options`."""
        return str(st.session_state.get(self.key("text"), self.options[0]))

    @property
    def _upload(self) -> tuple[str, bytes] | None:
        """Name and bytes of the file that was chosen last."""
        kept: tuple[str, bytes] | None = st.session_state.get(f"_{self.prefix}_upload")
        return kept

    def draw(self) -> None:
        """Draw the choice, and what the chosen kind asks for."""
        st.selectbox(
            say("label"),
            self.options,
            format_func=name_of,
            key=self.key("text"),
            persist_state="session",
        )
        if self.kind == "pasted":
            st.text_area(
                say("paste"),
                key=self.key("paste"),
                height=140,
                persist_state="session",
                placeholder=say("paste_hint"),
            )
        elif self.kind == "uploaded":
            self._file()

    def _file(self) -> None:
        st.file_uploader(
            say("upload"), type="txt", key=self.key("file"), max_upload_size=5, on_change=self._keep,
            help=say("upload_help"),
        )  # fmt: skip
        if not self._upload:
            return
        name, data = self._upload
        st.caption(say("file", name=literal(name), size=format_count(len(data))))
        try:
            texts.decode_upload(data)
            st.session_state[self.key("encoding")] = None
        except texts.UnknownEncoding as error:
            st.warning(literal(str(error)))
            st.selectbox(
                say("encoding"),
                list(texts.encodings()),
                index=None,
                format_func=texts.encodings().__getitem__,
                key=self.key("encoding"),
                persist_state="session",
                placeholder=say("choose_one"),
            )
        except ValueError:
            pass  # `corpus` says what is wrong

    def _keep(self) -> None:
        file = st.session_state.get(self.key("file"))
        st.session_state[f"_{self.prefix}_upload"] = (file.name, file.getvalue()) if file else None
        st.session_state[self.key("encoding")] = None
        if file:
            try:
                usable(texts.own_text(texts.decode_upload(file.getvalue()), kind="uploaded"))
            except ValueError as error:  # `corpus` says what is wrong
                plain_log.refusal("upload refused", error, of="text", bytes=file.size)

    def corpus(self) -> Corpus:
        """The chosen text.

        Raises:
            ValueError: if there is none yet, or it can't be read; UnknownEncoding if an encoding must be
                chosen.
        """
        if self.kind == "stories":
            return texts.stories()
        if self.kind == "python-docs":
            return texts.python_docs()
        if self.kind == "uploaded":
            name, data = self._upload or ("", b"")
            if not name:
                raise ValueError(say("no_file"))
            encoding = st.session_state.get(self.key("encoding"))
            return texts.own_text(texts.decode_upload(data, encoding), name=name, kind="uploaded")
        return texts.own_text(st.session_state.get(self.key("paste"), ""))


def usable(text: Corpus) -> None:
    """Refuse a text without anything to learn from.

    Raises:
        ValueError: if it is blank or too long.
    """
    if text.kind not in ("pasted", "uploaded"):
        return
    if not text.text.strip():
        raise ValueError(say("blank"))
    size = len(text.text.encode())
    if size > texts.MAX_UPLOAD_BYTES:
        raise ValueError(say("too_long", size=size, most=texts.MAX_UPLOAD_BYTES))
