"""One lesson: its idea, what to do on the live pages, where it happens, and the check at its end."""

import streamlit as st

from engine.exercise_list import exercise
from engine.progress import Progress
from ui import example_list, exercise_view, glossary_words, lesson_list, lesson_way, nav, people
from ui.diagram import diagram
from ui.lesson_list import LESSONS, Lesson
from wording import words

say = words("ui.lesson_page")


def draw(slug: str) -> None:
    """Draw a lesson."""
    it, progress = LESSONS[slug], people.progress()
    number = lesson_list.number(slug)
    st.title(f"{number}. {lesson_list.title(slug)}", anchor=False)
    st.write(lesson_list.aim(slug))
    _facts(it, slug in progress.lessons)
    diagram(it.diagram[0], it.diagram[1], key=f"lesson_diagram_{slug}")
    left, right = st.columns([1, 1], gap="large")
    with left:
        _idea(slug, it)
    with right:
        _steps(slug)
    _check(slug, it, progress)


def _facts(it: Lesson, done: bool) -> None:
    needs = ", ".join(say("need", n=lesson_list.number(slug)) for slug in it.needs)
    facts = say("facts-needs", minutes=it.minutes, needs=needs) if needs else say("facts", minutes=it.minutes)
    with st.container(horizontal=True, vertical_alignment="center"):
        nav.link("lessons", say("path"), icon=":material/arrow_back:")
        st.caption(facts, width="content")
        if done:
            st.badge(say("passed"), icon=":material/check_circle:", color="green")


def _idea(slug: str, it: Lesson) -> None:
    st.subheader(say("idea"), anchor=False)
    st.markdown(lesson_list.idea(slug))
    st.latex(it.formula)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.caption(say("examples"), width="content")
        for name in it.examples:
            nav.link("examples", example_list.title(name), icon="", example=name)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.caption(say("words"), width="content")
        for word in it.words:
            nav.link("glossary", glossary_words.name(word), icon="", word=word)


def _steps(slug: str) -> None:
    st.subheader(say("do"), anchor=False)
    st.caption(say("do-help"))
    seen = lesson_way.seen(slug)
    for n in range(1, lesson_way.number_of_steps(slug) + 1):
        with st.container(border=True):
            mark = f" :green-badge[:material/check: {say('visited')}]" if n in seen else ""
            st.markdown(f"**{n}.** {lesson_list.to_do(slug, n)}{mark}")
            st.button(
                lesson_list.button(slug, n), key=f"lesson_go_{n}", icon=":material/arrow_forward:",
                on_click=lesson_way.begin, args=(slug, n),
            )  # fmt: skip


def _check(slug: str, it: Lesson, progress: Progress) -> None:
    st.subheader(say("check"), anchor=False)
    st.caption(say("check-help", n=len(it.check)))
    narrow = [name for name in it.check if exercise(name, 0).kind != "order"]
    columns = dict(zip(narrow, st.columns(max(len(narrow), 1), gap="small"), strict=False))
    right = []
    for name in it.check:  # steps to bring into order need the whole width
        with columns.get(name, st).container(border=True, height="stretch" if name in columns else "content"):
            right.append(exercise_view.draw(name, key=f"lesson_{slug}"))
    if all(right) and slug not in progress.lessons:
        progress = people.pass_lesson(slug)
        lesson_way.passed(slug)
    if slug in progress.lessons:
        _onward(slug, progress)
    else:
        st.markdown(say("right-so-far", n=sum(right), of=len(right)))


def _onward(slug: str, progress: Progress) -> None:
    key = lesson_list.key_sentence(slug)
    st.success(say("now-done", n=lesson_list.number(slug), key=key), icon=":material/school:")
    with st.container(horizontal=True):
        following = lesson_way.next_lesson(slug) or lesson_list.following(progress.lessons)
        if following:
            label = say("onward", n=lesson_list.number(following), title=lesson_list.title(following))
            nav.link("lessons", label, icon=":material/arrow_forward:", lesson=following)
        nav.link("lessons", say("finish"), icon=":material/print:", lesson="summary")
