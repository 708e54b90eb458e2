"""Train a tokenizer: choose a text and a size, watch the merges, look into the vocabulary, use it."""

import streamlit as st

from engine import corpus as texts
from engine.corpus import Corpus
from engine.merges import History, replay
from engine.tokenizers import train_bpe
from ui import lesson, merge_keep, merge_player, merge_vocabulary, session
from ui.text_choice import TextChoice, name_of, usable
from ui.words import counted, literal
from viz import clip
from wording import words

say = words("ui.merge_lab")

SMALLEST, LARGEST, AT_FIRST = 256, 8192, 512
SIDEBAR = "sidebar"
CHOICE = TextChoice("merges", ("stories", "python-docs", SIDEBAR, "pasted", "uploaded"))
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
        say("ids"), SMALLEST, LARGEST, step=128, key=SIZE, persist_state="session",
        help=say("ids_help"),
    )  # fmt: skip
    try:
        corpus = _corpus(text)
        usable(corpus)
        history = learned(
            corpus, min(max(int(st.session_state[SIZE]), SMALLEST), LARGEST)
        )  # it may be forged
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
        return texts.own_text(text, name=name_of(SIDEBAR))
    return CHOICE.corpus()


def _source(corpus: Corpus) -> str:
    """How to recall later what was learned from: a pasted text by its first words."""
    return f"“{clip(' '.join(corpus.text[:200].split()), 30)}”" if corpus.kind == "pasted" else corpus.title


def learned(corpus: Corpus, vocab_size: int) -> History:
    """The vocabulary of a text and how it came about; learned once for everybody who asks for the same.

    Raises:
        ValueError: one sentence, if nothing can be learned from the text.
    """
    return _learned(corpus.sha256, vocab_size, corpus.text)


@st.cache_resource(max_entries=6, show_spinner=say.later("learning"))
def _learned(fingerprint: str, vocab_size: int, _text: str) -> History:
    return replay(train_bpe(_text, vocab_size), _text)


def _outcome(corpus: Corpus, history: History) -> None:
    """What was asked for and what came."""
    asked, got = int(st.session_state[SIZE]), history.tokenizer.vocab_size
    told = {
        "got": got,
        "merges": counted(history.n_merges, "merge"),
        "bytes": counted(history.n_bytes, "byte"),
    }
    told["text"] = literal(name_of(CHOICE.kind))
    if got < asked:
        st.info(say("fewer" if got > SMALLEST else "no_pair", asked=asked, **told))
    elif got == SMALLEST:
        st.info(say("bytes_alone"))
    else:
        st.caption(say("as_asked", **told))


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
        lesson.Step(say("by_hand"), say("by_hand_button"), _set, (SIDEBAR, 259, 1, BY_HAND)),
        lesson.Step(say("play"), say("play_button"), _from_the_start),
        lesson.Step(say("other"), say("other_button"), _set, ("python-docs", AT_FIRST, 1)),
        key="merges_try",
    )
