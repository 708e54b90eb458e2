"""Exercises that mark themselves: fresh numbers from a seed, hints, and the worked solution."""

import streamlit as st

from engine.exercise_list import IDS, TOPICS
from ui import address, exercise_state, exercise_text, exercise_view, nav, people
from wording import words

nav.require_app()

OPEN = "exercise"  # in the address and in the session
ALL = "all"
say = words("pages.exercises")

st.title(nav.title("exercises"))
st.write(say("opening"))


def open_exercise(name: str | None) -> None:
    """Open an exercise, or the list again. For `on_click`."""
    st.session_state[OPEN] = name


def opened() -> str | None:
    """The exercise that the address or a press opened; None for the list."""
    is_news, linked = address.news(OPEN)
    if is_news:
        st.session_state[OPEN] = linked
    name = st.session_state.get(OPEN)
    if name is not None and name not in IDS:
        st.warning(say("unknown"))
        name = st.session_state[OPEN] = None
    address.write(OPEN, name)
    return name


def score() -> None:
    """How many are right so far, and how many of them without help."""
    done = people.progress().exercises
    right = {name for name in IDS if name in done and done[name].right}
    alone = sum(not done[name].hints for name in right)
    text = say("score", right=len(right), of=len(IDS))
    st.progress(len(right) / len(IDS), text=f"{text} {say('alone', n=alone)}" if right else text)


def choose_topic() -> str:
    """One topic, or all."""
    topics = {ALL: say("all")} | {name: exercise_text.topic(name) for name in TOPICS}
    return address.choose(
        st.pills, say("topic"), topics, key="topic", label_visibility="collapsed", required=True
    )


def overview(names: dict[str, list[str]], right: set[str]) -> None:
    """All exercises by topic; those done have a mark."""
    for topic, ids in names.items():
        n = sum(name in right for name in ids)
        st.subheader(say("heading", topic=exercise_text.topic(topic), right=n, of=len(ids)))
        with st.container(horizontal=True, gap="small"):
            for name in ids:
                done = name in right
                st.button(
                    exercise_text.title(name),
                    key=f"exercises_open_{name}",
                    icon=f":material/{'check_circle' if done else 'radio_button_unchecked'}:",
                    help=say("done") if done else None,
                    on_click=open_exercise,
                    args=(name,),
                )


def one(name: str, ids: list[str]) -> None:
    """One exercise, with the way to its neighbours."""
    place = ids.index(name)
    topic_name = next(key for key, makers in TOPICS.items() if name in makers)
    steps = (
        ("back", None, "list", False),
        ("previous", ids[place - 1], "chevron_left", place == 0),
        ("next", ids[(place + 1) % len(ids)], "chevron_right", place == len(ids) - 1),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        for key, to, icon, off in steps:
            st.button(
                say(f"go.{key}"),
                key=f"exercises_{key}",
                icon=f":material/{icon}:",
                disabled=off,
                on_click=open_exercise,
                args=(to,),
            )
    st.subheader(exercise_text.title(name))
    seed = exercise_state.Place(name, "exercises").state.seed
    st.caption(say("place", topic=exercise_text.topic(topic_name), n=place + 1, of=len(ids), seed=seed))
    exercise_view.draw(name, key="exercises")


top = st.container()
chosen = opened()
middle = st.container()
topic = choose_topic()  # above the list, below an open exercise
shown = {key: list(makers) for key, makers in TOPICS.items() if topic in (ALL, key)}
in_reach = [name for ids in shown.values() for name in ids]
if chosen is None:
    overview(shown, {name for name, done in people.progress().exercises.items() if done.right})
else:
    with middle:
        one(chosen, in_reach if chosen in in_reach else list(IDS))
with top:
    score()
if (seed := exercise_state.pinned()) is not None:
    st.caption(say("pinned", seed=seed))
