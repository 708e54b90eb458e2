"""One exercise, anywhere: its question, the answer and what is said to it, hints, the worked solution."""

import streamlit as st

from engine.exercise import Choice, Exercise, Ids, Number, Order, RunTask
from engine.exercise_list import has_other_numbers
from ui import exercise_forms, exercise_solution, exercise_text, people
from ui.exercise_state import Place, pinned
from wording import words

say = words("ui.exercise_view")


def draw(id: str, *, key: str) -> bool:
    """Draw an exercise with everything that belongs to it.

    Args:
        id: of `engine.exercise_list.IDS`.
        key: of the place, so that the same exercise may stand in several.

    Returns:
        Whether this person ever answered it right, with whatever numbers.
    """
    place = Place(id, key)
    exercise = place.exercise
    st.markdown(exercise_text.question(exercise))
    exercise_forms.draw(place)
    _message(place)
    _hints(place, exercise)
    if (place.state.right or place.state.solved) and not isinstance(exercise.answer, RunTask):
        _solution(exercise)
    _buttons(place, exercise)
    done = people.progress().exercises.get(id)
    return place.state.ever or (done is not None and done.right)


def _message(place: Place) -> None:
    """What is said to the last answer, in a place of its own so that it is read out."""
    state = place.state
    verdict = state.verdict
    if verdict is None:
        if state.right:  # before a reload, in another tab, at another place
            st.success(say("was_right"), icon=":material/check_circle:")
        elif state.solved:
            st.info(say("given_away"), icon=":material/visibility:")
        return
    values = dict(verdict.values)
    for name in ("unit", "given"):
        if name in values:
            values[name] = say(f"unit.{values[name] or 'plain'}")
    if verdict.note == "option":
        said = exercise_text.why_not(place.before, str(verdict.values["key"]))
    else:
        said = say(f"verdict.{verdict.note}", **values)
    if place.state.about != place.state.turn:
        said = say("again", said=said)
    if verdict.read:
        said = say("read_as", said=said, read=verdict.read)
    draw = st.success if verdict.right else st.warning
    draw(said, icon=":material/check_circle:" if verdict.right else ":material/refresh:")


def _hints(place: Place, exercise: Exercise) -> None:
    for i, hint in enumerate(exercise_text.hints(exercise)[: place.state.hints]):
        st.info(say("hint", n=i + 1, said=hint), icon=":material/lightbulb:")


def _solution(exercise: Exercise) -> None:
    """The way to the answer, with these numbers."""
    with st.container(border=True):
        st.markdown(say("solution"))
        answer = exercise.answer
        if isinstance(answer, Number):
            st.latex(exercise_solution.formula(exercise))
            return
        if isinstance(answer, Choice):
            for i in sorted(answer.right):
                st.markdown(f"- {exercise_text.option(exercise, i)}")
        elif isinstance(answer, Order):
            lines = (f"{i + 1}. {exercise_text.step(exercise, name)}" for i, name in enumerate(answer.steps))
            st.markdown("\n".join(lines))
        elif isinstance(answer, Ids):
            st.markdown(f"`{', '.join(map(str, answer.values))}`")
        st.markdown(exercise_text.because(exercise))


def _buttons(place: Place, exercise: Exercise) -> None:
    state, n_hints = place.state, len(exercise_text.hints(exercise))
    over, run = state.right or state.solved, isinstance(exercise.answer, RunTask)
    others = has_other_numbers(exercise.id)
    with st.container(horizontal=True):
        if not over and state.hints < n_hints:
            st.button(
                say("next_hint", n=state.hints + 1, of=n_hints), key=place.widget("hint"),
                icon=":material/lightbulb:", on_click=place.one_hint,
            )  # fmt: skip
        elif not over and not run:
            st.button(
                say("show_solution"), key=place.widget("solve"), icon=":material/visibility:",
                on_click=place.solve, help=say("show_solution_help"),
            )  # fmt: skip
        if not run or (others and not over):
            st.button(
                say("new_numbers") if others else say("once_more"), key=place.widget("new"),
                icon=":material/casino:", on_click=place.new_numbers,
            )  # fmt: skip
        if state.turn and pinned() is not None and others:
            st.button(
                say("first_numbers"), key=place.widget("first"), icon=":material/undo:",
                on_click=place.first_numbers,
            )  # fmt: skip
