"""A strip above the page while a lesson is under way: what to do here, the next step, the way back."""

import streamlit as st

from ui import lesson_list, lesson_way, nav, people
from ui.lesson_way import Way
from wording import words

say = words("ui.lesson_strip")


def draw(page: str) -> None:
    """Draw the strip, unless the page is that of the lessons, or no lesson is under way.

    If a step was just begun, its page is opened instead.
    """
    lesson_way.follow(page)
    people.tell()
    if page == "lessons":
        return
    lesson_way.sync()
    way = lesson_way.under_way()
    if way is not None:
        _strip(way, page)


def _strip(way: Way, page: str) -> None:
    slug, n = way
    number, of = lesson_list.number(slug), lesson_way.number_of_steps(slug)
    with st.container(border=True, key="lesson_strip"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            said = say("where", n=number, title=lesson_list.title(slug), step=n, of=of)
            st.markdown(said, width="content")
            nav.link("lessons", say("back", n=number), icon=":material/arrow_back:", lesson=slug)
            if lesson_list.LESSONS[slug].steps[n - 1].place.page != page:
                _button("there", slug, n)
            if n < of:
                _button("next", slug, n + 1)
            else:
                nav.link("lessons", say("check"), icon=":material/task_alt:", lesson=slug)
            st.button(say("leave"), key="lesson_leave", type="tertiary", on_click=lesson_way.leave)
        st.markdown(lesson_list.to_do(slug, n))


def _button(name: str, slug: str, n: int) -> None:
    st.button(
        say(f"button.{name}"), key=f"lesson_{name}", type="primary" if name == "next" else "secondary",
        on_click=lesson_way.begin, args=(slug, n),
    )  # fmt: skip
