"""How a text becomes numbers: the pieces and their ids, in one vocabulary or in many."""

import streamlit as st

from ui import lesson, merge_lab, nav, session, tokens_compare, tokens_languages, tokens_pieces, vocabularies

nav.require_app()

PIECES, COMPARE, LANGUAGES, TRAIN = "Pieces", "Side by side", "Languages", "Train your own"
SENTENCES = {
    PIECES: "A model reads numbers, not letters. See where the text is cut, and the number of each piece.",
    COMPARE: "Every vocabulary cuts in its own way. See how many pieces the same text takes in each.",
    LANGUAGES: "The same two sentences in many languages. See whose language is cheap, and whose is dear.",
    TRAIN: "A vocabulary is learned from a text, one merge after the other. Watch it grow, and use it.",
}
OWN = vocabularies.OWN  # the model’s vocabulary; without a model another one
FAMILY = "Zoë saw a 👨‍👩‍👧 at 9:45."
SPACES = "a cat\na  cat\n\ta cat"
CONTROL = "The end.<|endoftext|>Once upon a time, a [MASK] sang."
NUMBERS = "In 1999, 3.14159 × 1,000,000 = 3,141,590."
CODE = "def area(r):\n    return 3.14 * r**2  # a circle"
HINDI = tokens_languages.SENTENCES["Hindi"]


def show(text: str, option: str | None = None, view: str = PIECES) -> None:
    """For a button: put a text, and perhaps a vocabulary, in place."""
    session.set_text(text)
    st.session_state["view"] = view
    st.session_state["tokens_special"] = False
    options = vocabularies.options(session.model())
    st.session_state["tokens_vocabulary"] = option if option in options else options[0]


def compare_language(language: str) -> None:
    """For a button: choose a language."""
    st.session_state["tokens_language"] = language


def see(text: str) -> None:
    """For a button: the same view, another text."""
    session.set_text(text)


STEPS = {
    PIECES: (
        ("A letter may take several bytes, an emoji many.", "Cut a family", show, (FAMILY, "bytes")),
        ("A space belongs to a token, a line end too. Which ones?", "Look at spaces", show, (SPACES, OWN)),
        ("Some words are signals to a model.", "Write control words", show, (CONTROL, OWN)),
    ),
    COMPARE: (
        ("Which vocabularies keep a number whole?", "Cut numbers", see, (NUMBERS,)),
        ("Which ones know the blanks of a program?", "Cut a program", see, (CODE,)),
        ("Most have seen little Hindi. Who cuts it finest?", "Cut Hindi", see, (HINDI,)),
    ),
    LANGUAGES: (
        (
            "Few characters. How many bytes, how many tokens?",
            "Choose Chinese",
            compare_language,
            ("Chinese",),
        ),
        ("The letters of English. The price of English?", "Choose German", compare_language, ("German",)),
        ("Where exactly is it cut?", "Put Hindi side by side", show, (HINDI, None, COMPARE)),
    ),
}

st.title("Tokens")
place = st.empty()
written = session.text()
view = str(
    st.segmented_control(
        "View", list(SENTENCES), default=PIECES, key="view", bind="query-params", required=True, wrap=True,
        label_visibility="collapsed",
    )
)  # fmt: skip
place.write(SENTENCES[view])
if view == LANGUAGES:
    tokens_languages.draw()
else:
    lesson.need_text(written)
    if view == COMPARE:
        tokens_compare.draw(written)
    elif view == TRAIN:
        merge_lab.draw(written)
    else:
        tokens_pieces.draw(written)
if view in STEPS:
    lesson.try_this(*(lesson.Step(*step) for step in STEPS[view]))
