"""How a text becomes numbers: the pieces, their ids and their bytes."""

import streamlit as st

from engine.tokenizers import Token, characters_of
from ui import choice, lesson, nav, session, vocabularies, worked
from ui.components import token_strip
from ui.vocabularies import Cut
from viz import format_count, visible

nav.require_app()

MOST = 300  # tokens drawn and listed; the counts are of the whole text
FAMILY = "Zoë saw a 👨‍👩‍👧 at 9:45."
SPACES = "a cat\na  cat\n\ta cat"
CONTROL = "The end.<|endoftext|>Once upon a time"


def controls() -> tuple[str, bool]:
    """Which vocabulary, and whether control words are one token."""
    ref = session.model()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        option = st.segmented_control(
            "Vocabulary",
            vocabularies.options(ref),
            format_func=lambda name: vocabularies.label(name, ref),
            default=vocabularies.options(ref)[0],
            key="tokens_vocabulary",
            required=True,
            wrap=True,
            persist_state="session",
        )
        special = st.toggle(
            "Control tokens", key="tokens_special", persist_state="session",
            help="Off: `<|endoftext|>` in a text is ordinary text. On: it is the control token of that name.",
        )  # fmt: skip
    return str(option), special


def notices(text: str, cut: Cut, special: bool) -> None:
    """What is easily overlooked."""
    if len(cut.ids) > MOST:
        total = format_count(len(cut.ids))
        st.info(f"Drawn are the first {MOST} of {total} tokens. The counts are of the whole text.")
    if session.repaired():
        st.info(f"{session.repaired()} broken characters (halves of a pair) were replaced by �.")
    if cut.other_ids is not None:
        now, other = ("one token each", "plain text") if special else ("plain text", "one token each")
        st.info(
            "There are names of control tokens in this text. "
            f"Read as {now}: {format_count(len(cut.ids))} tokens, drawn here. "
            f"Read as {other}: {format_count(len(cut.other_ids))} tokens."
        )
    lesson.space_hint(text)


def counts(text: str, cut: Cut) -> None:
    """How long the whole text is, in each unit."""
    n_bytes = len(text.encode())
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        for name, value in {"tokens": len(cut.ids), "characters": len(text), "bytes": n_bytes}.items():
            st.metric(name, format_count(value), width="content")
        st.latex(worked.bytes_per_token(n_bytes, len(cut.ids)), width="content")


def details(text: str, cut: Cut, token: Token, index: int) -> None:
    """The chosen token: its characters, their bytes, its number."""
    st.subheader(f"Token {index}, from letters to a number")
    st.code(visible(token.data), language=None, wrap_lines=True)
    spelled = characters_of(token, text)
    st.dataframe(
        {
            "character": [visible(char) for char, _ in spelled],
            "code point": [f"U+{ord(char):04X}" for char, _ in spelled],
            "its bytes": [char.encode().hex(" ").upper() for char, _ in spelled],
            "in this token": [data.hex(" ").upper() for _, data in spelled],
        },
        hide_index=True,
        height="content" if len(spelled) < 7 else 250,
        key="tokens_characters",
    )
    st.latex(worked.number_of(token.data, token.id, cut.tokenizer.vocab_size))
    st.caption(
        f"It begins at character {token.start} of the text and covers the bytes {token.byte_start} to "
        f"{token.byte_end - 1}, counted from 0."
    )


def everything(cut: Cut) -> None:
    """All tokens as a table, and their ids to take away."""
    st.subheader("All tokens")
    tokens = cut.tokens
    st.dataframe(
        {
            "token": range(len(tokens)),
            "id": [token.id for token in tokens],
            "text": [visible(token.data) for token in tokens],
            "first byte": [token.byte_start for token in tokens],
            "bytes": [token.data.hex(" ").upper() for token in tokens],
        },
        hide_index=True,
        height=300,
        key="tokens_table",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download all ids",
            lambda: "\n".join(map(str, cut.ids)) + "\n",
            file_name="ids.txt",
            key="tokens_download",
            on_click="ignore",
        )
        with st.popover("Copy ids"):
            st.code(str([token.id for token in tokens]), language=None, wrap_lines=True, height=200)


def show(text: str, option: str | None = None, special: bool = False) -> None:
    """For a button: put a text, and perhaps a vocabulary, in place."""
    session.set_text(text)
    st.session_state["tokens_special"] = special
    if option:
        st.session_state["tokens_vocabulary"] = option


st.title("Tokens")
st.write("A model reads numbers, not letters. See where the text is cut, and which number each piece gets.")
written = session.text()
lesson.need_text(written)
chosen_option, as_control = controls()
try:
    pieces = vocabularies.cut(chosen_option, session.model(), written, as_control, MOST)
except ValueError as error:
    lesson.explain(error)
choice.begin("tokens_strip", 0, about=(written, chosen_option, as_control), names=("pos",))
position = token_strip(pieces.segments, key="tokens_strip", selected=0, label="The text in tokens") or 0
choice.share({"pos": position})
notices(written, pieces, as_control)
counts(written, pieces)
left, right = st.columns(2, gap="large")
with left:
    details(written, pieces, pieces.tokens[position], position)
with right:
    everything(pieces)
lesson.try_this(
    lesson.Step("A letter may take several bytes, an emoji many.", "Cut a family", show, (FAMILY, "bytes")),
    lesson.Step("A space belongs to a token, a line end too. Which ones?", "Look at spaces", show, (SPACES,)),
    lesson.Step("Some words are signals to a model.", "Read a control token", show, (CONTROL, None, True)),
)
