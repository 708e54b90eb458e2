"""The list of the lessons: what each is about, how long it takes, which are done, which comes next."""

import streamlit as st

from ui import lesson_list, nav, people
from ui.lesson_list import LESSONS, ORDER
from wording import words

say = words("ui.lesson_path")


def draw() -> None:
    """Draw the path."""
    progress = people.progress()
    done = [slug for slug in ORDER if slug in progress.lessons]
    following = lesson_list.following(progress.lessons)
    st.title(nav.title("lessons"))
    st.write(say("intro"))
    st.progress(len(done) / len(ORDER), text=say("progress", n=len(done), of=len(ORDER)))
    with st.container(horizontal=True, vertical_alignment="center"):
        if following:
            number = lesson_list.number(following)
            label = say("next", n=number) if done else say("start", n=number)
            nav.link("lessons", label, icon=":material/play_arrow:", lesson=following)
        else:
            st.markdown(say("all-done"), width="content")
        nav.link("lessons", say("summary"), icon=":material/print:", lesson="summary")
    for start in range(0, len(ORDER), 2):
        for column, slug in zip(st.columns(2), ORDER[start : start + 2], strict=True):
            with column.container(border=True, height="stretch", key=f"lesson_card_{slug}"):
                _card(slug, slug in progress.lessons, slug == following)
    st.caption(say("kept"))


def _card(slug: str, done: bool, is_next: bool) -> None:
    label = f"**{lesson_list.number(slug)}. {lesson_list.title(slug)}**"
    nav.link("lessons", label, icon="", lesson=slug)
    st.markdown(lesson_list.aim(slug))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(say("minutes", n=LESSONS[slug].minutes), icon=":material/schedule:", color="gray")
        if done:
            st.badge(say("done"), icon=":material/check_circle:", color="green")
        elif is_next:
            st.badge(say("is-next"), icon=":material/flag:", color="blue")
