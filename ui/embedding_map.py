"""All token vectors as a map, on one pair of axes for all of training."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine import embeddings
from ui import resources, worked_vectors
from ui.components import show
from ui.embedding_data import (
    MOST_POINTS,
    Chosen,
    Movie,
    fate_of_unseen,
    frequency,
    movie,
    names,
    neighbours,
    unseen,
)
from ui.lesson import literal
from ui.resources import ModelRef
from ui.words import counted
from viz import format_count, format_number, objective_color, token_map
from wording import words

say = words("ui.embedding_map")

FEW = 300
LABELLED_NEAR = 6  # neighbours of the chosen token that are named
ZOOM = "embeddings_zoom"
NARROW = 0.2  # a cloud whose extent is less than this share of the last one's is said to be small
WHICH = {"frequent": f"top {FEW}", "seen": "all that occur", "all": "all"}


def step_key(ref: ModelRef) -> str:
    """Key of the step slider."""
    return f"embeddings_step_{ref.id}"


def first_step(ref: ModelRef) -> None:
    """Put the slider at the oldest checkpoint, and look at it closely. For `on_click`."""
    st.session_state[step_key(ref)] = resources.history(ref)[0].step
    st.session_state[ZOOM] = True


def _ids(chosen: Chosen, which: str) -> list[int]:
    """Tokens that the map is made of, the most frequent first."""
    counts = frequency(chosen).counts
    n_seen = int((counts > 0).sum())
    n = {"frequent": min(FEW, n_seen), "seen": n_seen, "all": len(counts)}[which]
    return embeddings.most_frequent(counts, max(min(n, MOST_POINTS), 1)).tolist()


def _controls() -> tuple[int, str]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        flat = st.segmented_control(
            say("axes"), [2, 3], default=2, required=True, key="embeddings_axes", persist_state="session",
            format_func="{}-D".format, label_visibility="collapsed",
        )  # fmt: skip
        which = st.segmented_control(
            say("tokens_drawn"), list(WHICH), default="seen", required=True, key="embeddings_which",
            persist_state="session", format_func=WHICH.__getitem__, label_visibility="collapsed", wrap=True,
        )  # fmt: skip
    return int(flat), str(which)


def _step(ref: ModelRef, steps: Sequence[int]) -> int:
    """Which checkpoint is drawn: its place among the steps."""
    if len(steps) < 2:
        st.info(say("only_one_moment_models"))
        return 0
    key = step_key(ref)
    if st.session_state.get(key) not in (None, *steps):
        st.session_state[key] = steps[-1]
    if key not in st.session_state:
        st.session_state[key] = steps[-1]
    step = st.select_slider(
        say("training_step"), steps, key=key, format_func=format_count, persist_state="session"
    )
    return list(steps).index(int(step))


def draw(chosen: Chosen) -> None:
    """Draw the map at a step, and say what its axes are."""
    left, right = st.columns([3, 2], gap="large")
    with right:
        k, which = _controls()
        ids = _ids(chosen, which)
        shown = movie(chosen.ref, tuple(ids))
        at = _step(chosen.ref, shown.steps)
        zoomed = len(shown.steps) > 1 and st.toggle(
            say("zoom_step"), key=ZOOM, persist_state="session",
            help=say("axes_hold_just_tokens"),
        )  # fmt: skip
        _where(chosen, shown, at, k)
        _explain(chosen, shown, k, ids, which)
    with left:
        _picture(chosen, shown, at, k, ids, bool(zoomed))
        if about := _size(shown, at, ids, bool(zoomed)) + _first_axis(chosen, shown, ids):
            st.caption(about)


def _size(shown: Movie, at: int, ids: list[int], zoomed: bool) -> str:
    """How wide the cloud is at this step beside the last one, in words."""
    wide = np.ptp(shown.points[:, ids, :2], axis=1).max(axis=1)
    share = float(wide[at] / wide[-1]) if wide[-1] > 0 else 1.0
    words = []
    if share < NARROW:
        chance = say("tiny_random") if at == 0 else say("still_small")
        words.append(
            say("step_vectors_whole_cloud", steps=format_count(shown.steps[at]), chance=chance, value=format_number(100 * share, 2), steps_2=format_count(shown.steps[-1]))
        )
        if not zoomed:
            words.append(say("axes_all_steps_tokens"))
    if zoomed:
        words.append(say("zoomed_axes_hold_only"))
    return "".join(f"{sentence} " for sentence in words)


def _picture(chosen: Chosen, shown: Movie, at: int, k: int, ids: list[int], zoomed: bool) -> None:
    near, called = _near(chosen), names(chosen.ref)
    drawn = list(dict.fromkeys([*ids, *chosen.text_ids, *near, chosen.token_id]))
    place = {token_id: i for i, token_id in enumerate(drawn)}
    points = shown.points[:, drawn, :k]
    moves = len(shown.steps) > 1
    fig = token_map(
        points[at],
        [called[i] for i in drawn],
        limits=embeddings.limits(points[at] if zoomed else points),
        shares=shown.basis.shares[:k],
        labelled=[place[i] for i in dict.fromkeys([*near, *chosen.text_ids])],
        chosen=place[chosen.token_id],
        trail=points[:, place[chosen.token_id]] if moves and not (zoomed and k == 3) else None,
        at=at,
        color=objective_color(chosen.ref.objective),
        fitted=say("step", steps=format_count(shown.steps[-1])) if moves else "",
    )
    show(fig, key="embeddings_map")


def _near(chosen: Chosen) -> list[int]:
    try:
        return neighbours(chosen.ref, chosen.token_id).near[:LABELLED_NEAR].tolist()
    except ValueError:
        return []


def _where(chosen: Chosen, shown: Movie, at: int, k: int) -> None:
    """The chosen token's place, as a formula."""
    st.markdown(f"**Where “{literal(chosen.name)}” is**")
    values = shown.points[at, chosen.token_id, :k].astype(np.float64).tolist()
    st.latex(worked_vectors.coordinates(values, chosen.config.d_model))
    st.caption(say("x_vector_mean_vector"))


def _first_axis(chosen: Chosen, shown: Movie, ids: list[int]) -> str:
    """Whether the first direction tells the tokens that never occur from the others, in words."""
    never = np.isin(ids, unseen(chosen))
    values = shown.points[-1, ids, 0].astype(np.float64)
    if not never.any() or never.all():
        return ""
    means = [values[never].mean(), values[~never].mean()]
    counts = [int(never.sum()), int((~never).sum())]
    between = sum(n * (m - values.mean()) ** 2 for n, m in zip(counts, means, strict=True)) / len(values)
    mostly = say("pc_1_mostly_difference") if between > values.var() / 2 else ""
    return say("among_them_never_occur", counts=counted(counts[0], 'token'), fate_of_unseen=fate_of_unseen(chosen), mostly=mostly)


def _explain(chosen: Chosen, shown: Movie, k: int, ids: list[int], which: str) -> None:
    n, moves = len(ids), len(shown.steps) > 1
    when = f"step {format_count(shown.steps[-1])}" if moves else say("moment")
    capped = say("most", most_points=format_count(MOST_POINTS)) if n == MOST_POINTS else ""
    words = {"frequent": say("most_frequent"), "seen": say("all_occur"), "all": say("whole_vocabulary")}[which]
    kept = format_number(100 * float(shown.basis.shares[:k].sum()))
    st.caption(
        say("axes_directions_which_vectors", k=k, n=format_count(n), words=words, capped=capped, when=when, kept=kept, max=max(chosen.config.d_model - k, 0))
        + (say("they_stay_same_all") if moves else "")
        + (
            say("earlier_moments_were_stored")
            if moves and chosen.ref.kind == "shipped"
            else ""
        )
        + say("named_where_there_room", source=frequency(chosen).source)
    )
