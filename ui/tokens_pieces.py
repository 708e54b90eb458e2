"""One text in one vocabulary: the pieces, the table of them, and the chosen one from letters to number."""

from functools import partial
from typing import NoReturn

import streamlit as st

from engine.tokenizers import Token
from engine.tokens import characters_of
from ui import choice, lesson, nav, session, vocabularies, vocabulary_files, worked
from ui.components import copy_text, select, token_strip, token_table
from ui.vocabularies import Cut
from ui.words import counted, literal
from viz import format_count, visible
from wording import words

say = words("ui.tokens_pieces")

MOST = 300  # tokens drawn and listed; the counts are of the whole text
STRIP, TABLE = "tokens_strip", "tokens_table"


def draw(text: str) -> None:
    """The whole view, for a text that is not empty."""
    option = _vocabulary()
    special = bool(st.session_state.get("tokens_special", False))
    try:
        cut = vocabularies.cut(option, session.model(), text, special, MOST)
    except ValueError as error:
        if not special:
            _refused(error, option)
        cut, special = _plain(option, text, error), False
    choice.begin(STRIP, 0, about=(text, option), names=("pos",))
    position = _strips(cut, special)
    choice.share({"pos": position})
    _notices(text, cut)
    _counts(text, cut)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        _piece(text, cut, position)
        _details(text, cut, cut.tokens[position], position)
    with right:
        _table(cut, position)
        _take_away(text, cut)
    with st.expander(say("more_vocabularies")):
        vocabulary_files.panel()


def _plain(option: str, text: str, error: ValueError) -> Cut:
    """The reading as plain text, with the sentence that says why there is no other one."""
    try:
        cut = vocabularies.cut(option, session.model(), text, False, MOST)
    except ValueError as plainly:
        _refused(plainly, option)
    st.warning(literal(str(error)))
    return cut


def _vocabulary() -> str:
    ref = session.model()
    options = vocabularies.options(ref, also=st.session_state.get("tokens_vocabulary"))
    if st.session_state.get("tokens_vocabulary", options[0]) not in options:
        st.session_state["tokens_vocabulary"] = options[0]  # an upload of earlier, or there is no model now
    return str(
        st.segmented_control(
            say("vocabulary"),
            options,
            format_func=lambda name: literal(vocabularies.label(name, ref)),
            default=options[0] if "tokens_vocabulary" not in st.session_state else None,
            key="tokens_vocabulary",
            required=True,
            wrap=True,
            persist_state="session",
        )
    )


def _refused(error: ValueError, option: str) -> NoReturn:
    """Why there are no pieces, and what can be done about it; the page ends there."""
    st.warning(literal(str(error)))
    if option in vocabularies.PUBLISHED:
        vocabulary_files.panel()
    nav.end_page()


def _strips(cut: Cut, special: bool) -> int:
    """The pieces; two rows of them where the names of control tokens can be read in two ways."""
    if cut.n_other is None:
        return token_strip(cut.segments, key=STRIP, selected=0, label=say("strip")) or 0
    n_plain, n_control = (cut.n_other, len(cut.ids)) if special else (len(cut.ids), cut.n_other)
    position = 0
    with st.container(border=True):
        st.markdown(say("two_readings"))
        for control, name, n in (
            (False, say("reading_as.plain_text"), n_plain),
            (True, say("reading_as.control_tokens"), n_control),
        ):
            tokens = counted(n, "token")
            if control == special:
                st.caption(say("reading_below", name=name, tokens=tokens))
                position = token_strip(cut.segments, key=STRIP, selected=0, label=name) or 0
            else:
                st.caption(say("reading", name=name, tokens=tokens))
                token_strip(cut.other, key="tokens_other", label=name, on_press=lambda i: _switch(special, i))
        st.toggle(say("switch"), key="tokens_special", persist_state="session")
        st.write(say("control_why"))
    return position


def _switch(special: bool, index: int) -> None:
    """Look at the other reading, at the token that was pressed there."""
    st.session_state["tokens_special"] = not special
    select(STRIP, index)


def _notices(text: str, cut: Cut) -> None:
    """What is easily overlooked."""
    if len(cut.ids) > MOST:
        total = format_count(len(cut.ids))
        st.info(say("cut_short", most=MOST, total=total))
    if session.repaired():
        st.info(say("repaired", n=session.repaired()))
    lesson.space_hint(text)


def _counts(text: str, cut: Cut) -> None:
    """How long the whole text is, in each unit."""
    n_bytes = len(text.encode())
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        for noun, value in {"token": len(cut.ids), "character": len(text), "byte": n_bytes}.items():
            number, name = counted(value, noun).split(maxsplit=1)
            st.metric(name, number, width="content")
        st.latex(worked.bytes_per_token(n_bytes, len(cut.ids)), width="content")


def _piece(text: str, cut: Cut, position: int) -> None:
    """If the chosen token is only a part of what a reader sees as one character: the whole of it."""
    segment = cut.segment_of(position)
    data = b"".join(token.data for token in segment)
    cut_short = segment[-1] is cut.tokens[-1] and len(cut.ids) > len(cut.tokens)
    if len(segment) < 2 or cut_short:
        return
    n_points = len(data.decode("utf-8", "replace"))
    st.markdown(
        say(
            "piece_of_points" if n_points > 1 else "piece",
            piece=literal(visible(data)),
            points=n_points,
            bytes=len(data),
            tokens=len(segment),
            part=position - cut.tokens.index(segment[0]) + 1,
        )
    )


def _details(text: str, cut: Cut, token: Token, index: int) -> None:
    """The chosen token: its characters, their bytes, its number."""
    st.subheader(say("chosen", index=index))
    st.code(visible(token.data), language=None, wrap_lines=True)
    spelled = characters_of(token, text)
    st.dataframe(
        {
            "character": [visible(char) for char, _ in spelled],
            "code_point": [f"U+{ord(char):04X}" for char, _ in spelled],
            "bytes": [char.encode().hex(" ").upper() for char, _ in spelled],
            "in_token": [data.hex(" ").upper() for _, data in spelled],
        },
        hide_index=True,
        column_config=say.table("column"),
        height="content" if len(spelled) < 7 else 250,
        key="tokens_characters",
    )
    st.latex(worked.number_of(token.data, token.id, cut.tokenizer.vocab_size))
    first, last = token.byte_start, token.byte_end - 1
    st.caption(
        say("place_byte" if first == last else "place_bytes", start=token.start, first=first, last=last)
    )


def _table(cut: Cut, position: int) -> None:
    """All tokens that are drawn; the chosen row is the chosen chip."""
    st.subheader(say("all_tokens"))
    token_table(cut.tokens, key=TABLE, selected=position, on_press=partial(select, STRIP))


def _take_away(text: str, cut: Cut) -> None:
    """The ids, and the text that is drawn, to use elsewhere."""
    drawn = text.encode()[: cut.tokens[-1].byte_end].decode("utf-8", "ignore")
    with st.container(horizontal=True, vertical_alignment="center"):
        copy_text(say("copy_text"), drawn, key="tokens_copy_text")
        copy_text(say("copy_ids"), str([token.id for token in cut.tokens]), key="tokens_copy_ids")
        st.download_button(
            say("download_all_ids"),
            lambda: "\n".join(map(str, cut.ids.tolist())) + "\n",
            file_name="ids.txt",
            key="tokens_download",
            on_click="ignore",
        )
