"""The glossary: one term for each idea, and the other names that books use."""

import string

import streamlit as st

from ui import address, glossary_words, nav, places
from ui.words import literal
from wording import words

nav.require_app()
say = words("pages.glossary")

FIRST = "token"  # the word that is open before one was chosen
OPEN, INDEX, ASKED = "_glossary_word", "glossary_index", "glossary_search"


def opened() -> str:
    """The word that the address asks for, or the one that was chosen last."""
    state = st.session_state
    is_news, linked = address.news("word")
    if is_news:
        state[OPEN] = linked
        state.pop(INDEX, None)
        if linked is not None:
            state[ASKED] = ""
    asked = state.get(OPEN) or FIRST
    if asked not in glossary_words.WORDS:
        st.warning(say("unknown", word=literal(asked)))
        state[OPEN] = asked = FIRST
    return str(asked)


def choose() -> None:
    """For the index: open what was pressed."""
    if st.session_state.get(INDEX):
        st.session_state[OPEN] = st.session_state[INDEX]


def show_all() -> None:
    """For the button: search for nothing."""
    st.session_state[ASKED] = ""


def card(word: str) -> None:
    """One word with all that is known of it."""
    entry = glossary_words.WORDS[word]
    with st.container(border=True, key="glossary_card"):
        st.subheader(literal(glossary_words.name(word)), anchor=False)
        st.markdown(literal(glossary_words.text(word)))
        if entry.formula:
            st.latex(entry.formula)
        if glossary_words.others(word):
            st.markdown(say("others", names=f"*{literal(glossary_words.others(word))}*"))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(say("see"), width="content")
            for place in entry.see:
                places.link(place)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(say("related"), width="content")
            for other in entry.related:
                nav.link("glossary", glossary_words.name(other), icon="", word=other)


def definitions(shown: list[str]) -> None:
    """All of them to read through, or to find with the browser's own search."""
    lines, letter = [], ""
    for word in shown:
        begins = glossary_words.plain(glossary_words.name(word))[:1].upper()
        if begins != letter and begins in string.ascii_uppercase and len(shown) > 12:
            letter = begins
            lines.append(f"\n#### {letter}\n")
        named, meaning = literal(glossary_words.others(word)), literal(glossary_words.text(word))
        also = f" *({named})*" if named else ""
        lines.append(f"- **{literal(glossary_words.name(word))}**{also}: {meaning}")
    st.markdown("\n".join(lines))


st.title(nav.title("glossary"))
st.write(say("intro"))
chosen = opened()
asked = st.text_input(
    say("search"), key=ASKED, placeholder=say("search-hint"), persist_state="session",
    icon=":material/search:", label_visibility="collapsed",
)  # fmt: skip
fitting = glossary_words.found(asked)
if not fitting:
    st.info(say("none", query=literal(asked)))
    st.button(say("all"), key="glossary_all", on_click=show_all)
    nav.end_page()
if asked.strip() and chosen not in fitting:
    chosen = st.session_state[OPEN] = fitting[0]
address.write("word", chosen if chosen != FIRST or "word" in st.query_params else None)
card(chosen)
if st.session_state.get(INDEX) != chosen:
    st.session_state[INDEX] = chosen
st.pills(
    say("found", n=len(fitting)), fitting, default=chosen, format_func=glossary_words.name, key=INDEX,
    on_change=choose,
)  # fmt: skip
definitions(fitting)
