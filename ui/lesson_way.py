"""The lesson that is under way: which step, how to get there with everything set, and the way back."""

from typing import NamedTuple

import streamlit as st

from ui import address, model_refs, nav, session
from ui.lesson_list import LESSONS, ORDER

_AT, _GOING, _SEEN = "_lesson_under_way", "_lesson_going", "_lesson_steps_seen"
NAME = "step"  # in the address of the page that a step leads to


class Way(NamedTuple):
    """A step of a lesson, counted from 1."""

    lesson: str
    step: int

    @property
    def written(self) -> str:
        """As the address says it."""
        return f"{self.lesson}.{self.step}"


def under_way() -> Way | None:
    """The step that was begun last, if its lesson was not left or passed."""
    kept = st.session_state.get(_AT)
    return Way(*kept) if kept else None


def sync() -> None:
    """Take the step from the address, so that a reload goes on with it, and write it there."""
    is_news, linked = address.news(NAME)
    if is_news:
        st.session_state[_AT] = _read(linked)
    way = under_way()
    address.write(NAME, way.written if way else None)


def _read(written: str | None) -> Way | None:
    slug, _, step = (written or "").rpartition(".")
    if slug not in LESSONS or not (step.isascii() and step.isdecimal() and len(step) < 3):
        return None
    return Way(slug, int(step)) if 1 <= int(step) <= len(LESSONS[slug].steps) else None


def seen(slug: str) -> set[int]:
    """The steps of a lesson that were begun in this session."""
    return {way[1] for way in st.session_state.get(_SEEN, ()) if way[0] == slug}


def leave() -> None:
    """End the lesson that is under way; what was passed stays passed. For `on_click`."""
    st.session_state[_AT] = None


def begin(slug: str, n: int) -> None:
    """Set everything that step `n` needs, and ask for its page. For `on_click`; `follow` opens it."""
    state, step = st.session_state, LESSONS[slug].steps[n - 1]
    state[_AT] = state[_GOING] = tuple(Way(slug, n))
    state[_SEEN] = {*state.get(_SEEN, ()), (slug, n)}
    if step.text is not None:
        session.set_text(step.text)
    if step.model in {ref.id for ref in model_refs.shipped_models()}:
        session.choose_model(step.model)
    state.update(step.address)
    if step.place.page == address.page():
        state.update(step.numbers)
    else:  # the address will say them: what is set here would be lost if the page's first run is cut short
        for key in step.numbers:
            state.pop(key, None)


def follow(page: str) -> None:
    """Open the page of a step that was just begun, before the one that is open is drawn again."""
    asked = st.session_state.pop(_GOING, None)
    if asked is None:
        return
    way = Way(*asked)
    step = LESSONS[way.lesson].steps[way.step - 1]
    if step.place.page != page:
        numbers = {key: str(value) for key, value in step.numbers.items()}
        query = {**nav.kept_everywhere(), **step.address, **numbers, NAME: way.written}
        st.switch_page(nav.file_of(step.place.page), query_params=query)


def number_of_steps(slug: str) -> int:
    """How many things there are to do."""
    return len(LESSONS[slug].steps)


def next_lesson(slug: str) -> str | None:
    """The lesson after this one."""
    return dict(zip(ORDER, ORDER[1:], strict=False)).get(slug)


def passed(slug: str) -> None:
    """End a lesson because its check was passed."""
    way = under_way()
    if way and way.lesson == slug:
        leave()
