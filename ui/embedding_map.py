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
            "Axes", [2, 3], default=2, required=True, key="embeddings_axes", persist_state="session",
            format_func="{}-D".format, label_visibility="collapsed",
        )  # fmt: skip
        which = st.segmented_control(
            "Tokens drawn", list(WHICH), default="seen", required=True, key="embeddings_which",
            persist_state="session", format_func=WHICH.__getitem__, label_visibility="collapsed", wrap=True,
        )  # fmt: skip
    return int(flat), str(which)


def _step(ref: ModelRef, steps: Sequence[int]) -> int:
    """Which checkpoint is drawn: its place among the steps."""
    if len(steps) < 2:
        st.info("Only one moment of this model’s training was kept, so its map can’t move.")
        return 0
    key = step_key(ref)
    if st.session_state.get(key) not in (None, *steps):
        st.session_state[key] = steps[-1]
    if key not in st.session_state:
        st.session_state[key] = steps[-1]
    step = st.select_slider(
        "Training step", steps, key=key, format_func=format_count, persist_state="session"
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
            "Zoom to this step", key=ZOOM, persist_state="session",
            help="Axes that hold just the tokens of this step. Otherwise they hold those of all steps.",
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
        chance = "tiny and random" if at == 0 else "still small"
        words.append(
            f"At step {format_count(shown.steps[at])} the vectors are {chance}: the whole cloud is "
            f"{format_number(100 * share, 2)} % as wide as at step {format_count(shown.steps[-1])}."
        )
        if not zoomed:
            words.append("On axes for all steps its tokens lie on each other: zoom to see them apart.")
    if zoomed:
        words.append("Zoomed: the axes hold only this step, so mind their numbers.")
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
        fitted=f" at step {format_count(shown.steps[-1])}" if moves else "",
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
    st.caption("x is its vector, μ the mean vector, w the direction of each axis, of length 1.")


def _first_axis(chosen: Chosen, shown: Movie, ids: list[int]) -> str:
    """Whether the first direction tells the tokens that never occur from the others, in words."""
    never = np.isin(ids, unseen(chosen))
    values = shown.points[-1, ids, 0].astype(np.float64)
    if not never.any() or never.all():
        return ""
    means = [values[never].mean(), values[~never].mean()]
    counts = [int(never.sum()), int((~never).sum())]
    between = sum(n * (m - values.mean()) ** 2 for n, m in zip(counts, means, strict=True)) / len(values)
    mostly = "PC 1 is mostly the difference between them and the rest. " if between > values.var() / 2 else ""
    return f"Among them are {counted(counts[0], 'token')} that never occur. {fate_of_unseen(chosen)} {mostly}"


def _explain(chosen: Chosen, shown: Movie, k: int, ids: list[int], which: str) -> None:
    n, moves = len(ids), len(shown.steps) > 1
    when = f"step {format_count(shown.steps[-1])}" if moves else "this moment"
    capped = f", at most {format_count(MOST_POINTS)}" if n == MOST_POINTS else ""
    words = {"frequent": "the most frequent", "seen": "all that occur", "all": "the whole vocabulary"}[which]
    kept = format_number(100 * float(shown.basis.shares[:k].sum()))
    st.caption(
        f"The axes are the {k} directions in which the vectors of {format_count(n)} tokens ({words}{capped}) "
        f"differ most at {when}. They hold {kept} % of the variance: {max(chosen.config.d_model - k, 0)} "
        "more directions can’t be seen. "
        + ("They stay the same at all steps, so what moves has really moved. " if moves else "")
        + (
            "Earlier moments were stored with 8 bits a number, so they are rounded. "
            if moves and chosen.ref.kind == "shipped"
            else ""
        )
        + "Named, where there is room: the tokens of the text and the nearest to the chosen one. "
        f"Counted in {frequency(chosen).source}."
    )
