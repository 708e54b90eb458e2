"""Train a tokenizer: choose a text and a size, watch the merges, look into the vocabulary, use it."""

import streamlit as st

from engine import corpus as texts
from engine.corpus import Corpus
from engine.merges import History, replay
from engine.tokenizers import train_bpe
from ui import lesson, merge_keep, merge_player, merge_vocabulary, session
from ui.text_choice import TEXTS, TextChoice, usable
from ui.words import counted, literal
from viz import clip

SMALLEST, LARGEST, AT_FIRST = 256, 8192, 512
SIDEBAR = "sidebar"
CHOICE = TextChoice(
    "merges",
    {
        "stories": TEXTS["stories"],
        "python-docs": TEXTS["python-docs"],
        SIDEBAR: "The text in the sidebar",
        "pasted": TEXTS["pasted"],
        "uploaded": TEXTS["uploaded"],
    },
)
SIZE = CHOICE.key("size")
BY_HAND = "aaabdaaabac"


def draw(text: str) -> None:
    """Draw the whole view.

    Args:
        text: of the sidebar, not empty; it is cut with the vocabulary that comes out.
    """
    st.session_state.setdefault(SIZE, AT_FIRST)
    left, right = st.columns([3, 2])
    with left:
        CHOICE.draw()
    right.number_input(
        "Ids to learn", SMALLEST, LARGEST, step=128, key=SIZE, persist_state="session",
        help="256 are the bytes, which can spell everything. Each further id is one merge: the pair of "
        "tokens that stands side by side most often becomes a token of its own.",
    )  # fmt: skip
    try:
        corpus = _corpus(text)
        usable(corpus)
        history = learned(corpus, int(st.session_state[SIZE]))
    except texts.UnknownEncoding:
        history = None  # asked beside the file
    except ValueError as error:
        st.warning(literal(str(error)))
        history = None
    if history:
        _outcome(corpus, history)
        if history.n_merges:
            merge_player.draw(history, text)
        merge_vocabulary.draw(history)
        merge_keep.draw(history, _source(corpus))
    _try_this()


def _corpus(text: str) -> Corpus:
    if CHOICE.kind == SIDEBAR:
        return texts.own_text(text, name=CHOICE.options[SIDEBAR])
    return CHOICE.corpus()


def _source(corpus: Corpus) -> str:
    """How to recall later what was learned from: a pasted text by its first words."""
    return f"“{clip(' '.join(corpus.text[:200].split()), 30)}”" if corpus.kind == "pasted" else corpus.name


def learned(corpus: Corpus, vocab_size: int) -> History:
    """The vocabulary of a text and how it came about; learned once for everybody who asks for the same.

    Raises:
        ValueError: one sentence, if nothing can be learned from the text.
    """
    return _learned(corpus.sha256, vocab_size, corpus.text)


@st.cache_resource(max_entries=6, show_spinner="Learning the merges …")
def _learned(fingerprint: str, vocab_size: int, _text: str) -> History:
    return replay(train_bpe(_text, vocab_size), _text)


def _outcome(corpus: Corpus, history: History) -> None:
    """What was asked for and what came."""
    asked, got = int(st.session_state[SIZE]), history.tokenizer.vocab_size
    n_bytes = counted(history.n_bytes, "byte")
    source = f"Learned from “{literal(CHOICE.options.get(CHOICE.kind, corpus.name))}”, {n_bytes}."
    if got < asked:
        why = (
            f"after {history.n_merges:,} merges no pair is left to join"
            if got > SMALLEST
            else "it has no pair"
        )
        st.info(f"Asked {asked:,}, got {got:,}: {why}. {source}")
    elif got == SMALLEST:
        st.info("256 ids are the bytes alone, without merges. Ask for more to see pairs join.")
    else:
        st.caption(f"{got:,} ids: the 256 bytes and {history.n_merges:,} merges. {source}")


def _set(kind: str, size: int, position: int, text: str | None = None) -> None:
    """For a button: another text and size, and where to stand among the merges."""
    if text is not None:
        session.set_text(text)
    st.session_state[CHOICE.key("text")] = kind
    st.session_state[SIZE] = size
    merge_player.PLAYER.go(position)


def _from_the_start() -> None:
    merge_player.PLAYER.go(0)
    merge_player.PLAYER.play()


def _try_this() -> None:
    lesson.try_this(
        lesson.Step(
            "Eleven letters, three merges: small enough to do on paper first.",
            "Merge by hand",
            _set,
            (SIDEBAR, 259, 1, BY_HAND),
        ),
        lesson.Step(
            "From bytes to words: in which order do letters, endings and whole words appear?",
            "Play from the start",
            _from_the_start,
        ),
        lesson.Step(
            "Learn from another kind of text. Which pair comes first now?",
            "Learn from Python’s help",
            _set,
            ("python-docs", AT_FIRST, 1),
        ),
        key="merges_try",
    )
