"""How an exercise is answered: type, choose, bring into order, or look at the person's own runs."""

from collections.abc import Callable

import streamlit as st

from engine import marking
from engine.exercise import Choice, Ids, Number, Order, RunTask
from engine.exercise_runs import Found, look
from ui import exercise_text, nav, resources, session
from ui.exercise_state import Place
from ui.words import literal
from viz import format_number
from wording import words

say = words("ui.exercise_forms")
MOST_CHARACTERS = 400


def draw(place: Place) -> None:
    """The input of an exercise and the button that marks it."""
    kind = place.exercise.kind
    forms = {
        "number": _typed,
        "ids": _typed,
        "choose": _one,
        "several": _several,
        "order": _order,
        "run": _run,
    }
    forms[kind](place)


def _check(place: Place, check: Callable[[Place], None], *, form: bool = True) -> None:
    button: Callable[..., bool] = st.form_submit_button if form else st.button
    button(
        say("check"), key=place.widget("check"), type="primary", on_click=check, args=(place,),
        disabled=place.state.right or place.state.solved,
    )  # fmt: skip


def _label(answer: Number | Ids) -> str:
    """What to type, and how exactly."""
    if isinstance(answer, Ids):
        return say("label.ids")
    if not answer.whole:
        return say(f"label.number.{answer.unit or 'plain'}")
    return say(f"label.whole.{answer.unit or 'plain'}")


def _typed(place: Place) -> None:
    answer = place.exercise.answer
    assert isinstance(answer, Number | Ids)
    form = st.form(place.widget("form"), border=False)
    with form, st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            _label(answer), key=place.widget("answer"), persist_state="session", autocomplete="off",
            max_chars=MOST_CHARACTERS, width=330,
        )  # fmt: skip
        _check(place, _mark_typed)


def _mark_typed(place: Place) -> None:
    typed, answer = str(st.session_state.get(place.widget("answer"), "")), place.exercise.answer
    assert isinstance(answer, Number | Ids)
    if isinstance(answer, Number):
        place.judged(marking.mark_number(typed, answer))
    else:
        place.judged(marking.mark_ids(typed, answer))


def _one(place: Place) -> None:
    exercise, answer = place.exercise, place.exercise.answer
    assert isinstance(answer, Choice)
    with st.form(place.widget("form"), border=False):
        st.radio(
            say("choose"), range(len(answer.options)), index=None, key=place.widget("answer"),
            format_func=lambda i: exercise_text.option(exercise, i), persist_state="session",
        )  # fmt: skip
        _check(place, _mark_one)


def _mark_one(place: Place) -> None:
    answer, chosen = place.exercise.answer, st.session_state.get(place.widget("answer"))
    assert isinstance(answer, Choice)
    place.judged(marking.mark_choice([] if chosen is None else [chosen], answer))


def _several(place: Place) -> None:
    exercise, answer = place.exercise, place.exercise.answer
    assert isinstance(answer, Choice)
    with st.form(place.widget("form"), border=False):
        st.caption(say("choose_all"))
        for i in range(len(answer.options)):
            st.checkbox(
                exercise_text.option(exercise, i), key=place.widget(f"answer_{i}"), persist_state="session"
            )
        _check(place, _mark_several)


def _mark_several(place: Place) -> None:
    answer = place.exercise.answer
    assert isinstance(answer, Choice)
    n = len(answer.options)
    chosen = [i for i in range(n) if st.session_state.get(place.widget(f"answer_{i}"))]
    place.judged(marking.mark_choice(chosen, answer))


def _order(place: Place) -> None:
    """Rows with buttons that move a step up or down: nothing has to be dragged."""
    exercise, steps = place.exercise, _steps(place)
    done = place.state.right or place.state.solved
    with st.container(key=place.widget("steps"), gap="small"):
        for i, name in enumerate(steps):
            words = exercise_text.step(exercise, name)
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"{i + 1}. {words}", width="stretch")
                with st.container(horizontal=True, width="content"):  # side by side, also on a telephone
                    _movers(place, i, len(steps), words, done)
    _check(place, _mark_order, form=False)


def _movers(place: Place, i: int, n: int, words: str, done: bool) -> None:
    """The buttons that move step i of n up or down."""
    for way, by, icon in (("up", -1, "arrow_upward"), ("down", 1, "arrow_downward")):
        st.button(
            say(f"move.{way}"), key=place.widget(f"{way}_{i}"), icon=f":material/{icon}:",
            help=say(f"move_help.{way}", step=words), on_click=_move, args=(place, i, by),
            disabled=done or not 0 <= i + by < n,
        )  # fmt: skip


def _steps(place: Place) -> list[str]:
    answer = place.exercise.answer
    assert isinstance(answer, Order)
    kept = st.session_state.get(place.widget("order"))
    return list(kept or answer.shown)


def _move(place: Place, i: int, by: int) -> None:
    steps = _steps(place)
    steps[i], steps[i + by] = steps[i + by], steps[i]
    st.session_state[place.widget("order")] = steps


def _mark_order(place: Place) -> None:
    answer = place.exercise.answer
    assert isinstance(answer, Order)
    place.judged(marking.mark_order(_steps(place), answer))


def _run(place: Place) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            say("look"), key=place.widget("check"), type="primary", on_click=_mark_run, args=(place,),
            disabled=place.state.right, help=say("look_help"),
        )  # fmt: skip
        nav.link("training", say("train"))


def _mark_run(place: Place) -> None:
    task, store = place.exercise.answer, resources.run_store()
    assert isinstance(task, RunTask)
    found = look(task, store.list(session.owner()), store.history)
    note = f"run.{task.name}.{found.note}"
    place.judged(marking.Verdict(found.done, note, _said(found), marked=found.note != "none"))


def _said(found: Found) -> dict[str, str]:
    """A run's name may hold any characters, also those of Markdown."""
    return {
        "name": literal(found.name),
        "other": literal(found.other),
        "value": format_number(found.value),
        "target": format_number(found.target),
        "missing": format_number(found.missing),
    }
