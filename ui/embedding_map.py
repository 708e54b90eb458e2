"""All token vectors as a map, on one pair of axes for all of training."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine import embeddings
from ui import model_refs, worked_vectors
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
    untold,
)
from ui.lesson import literal
from ui.model_refs import ModelRef
from ui.words import counted
from viz import format_count, format_number, objective_color, token_map
from wording import words

say = words("ui.embedding_map")

FEW = 300
LABELLED_NEAR = 6  # neighbours of the chosen token that are named
ZOOM = "embeddings_zoom"
NARROW = 0.2  # a cloud whose extent is less than this share of the last one's is said to be small
WHICH = ("frequent", "seen", "all")
UNTOLD = ("text", "all")  # where it is not known how often tokens occur


def step_key(ref: ModelRef) -> str:
    """Key of the step slider."""
    return f"embeddings_step_{ref.id}"


def first_step(ref: ModelRef) -> None:
    """Put the slider at the oldest checkpoint, and look at it closely. For `on_click`."""
    st.session_state[step_key(ref)] = model_refs.history(ref)[0].step
    st.session_state[ZOOM] = True


def _ids(chosen: Chosen, which: str) -> list[int]:
    """Tokens that the map is made of, the most frequent first."""
    counts = frequency(chosen).counts
    n_seen = int((counts > 0).sum())
    n = {"frequent": min(FEW, n_seen), "seen": n_seen, "text": n_seen, "all": len(counts)}[which]
    return embeddings.most_frequent(counts, max(min(n, MOST_POINTS), 1)).tolist()


def _controls(ref: ModelRef) -> tuple[int, str]:
    options, default = (UNTOLD, "all") if untold(ref) else (WHICH, "seen")
    if st.session_state.get("embeddings_which") not in options:  # of another model
        st.session_state["embeddings_which"] = default
    with st.container(horizontal=True, vertical_alignment="bottom"):
        flat = st.segmented_control(
            say("dimensions"), [2, 3], default=2, required=True, key="embeddings_axes",
            persist_state="session", format_func="{}-D".format, label_visibility="collapsed",
        )  # fmt: skip
        which = st.segmented_control(
            say("tokens"), options, required=True, key="embeddings_which",
            persist_state="session", format_func=lambda name: say(f"which.{name}", n=FEW),
            label_visibility="collapsed", wrap=True,
        )  # fmt: skip
    return int(flat), str(which)


def _step(ref: ModelRef, steps: Sequence[int]) -> int:
    """Which checkpoint is drawn: its place among the steps."""
    if len(steps) < 2:
        st.info(say("one_moment"))
        return 0
    key = step_key(ref)
    if st.session_state.get(key) not in (None, *steps):
        st.session_state[key] = steps[-1]
    if key not in st.session_state:
        st.session_state[key] = steps[-1]
    step = st.select_slider(say("step"), steps, key=key, format_func=format_count, persist_state="session")
    return list(steps).index(int(step))


def draw(chosen: Chosen) -> None:
    """Draw the map at a step, and say what its axes are."""
    left, right = st.columns([3, 2], gap="large")
    with right:
        k, which = _controls(chosen.ref)
        ids = _ids(chosen, which)
        shown = movie(chosen.ref, tuple(ids))
        at = _step(chosen.ref, shown.steps)
        zoomed = len(shown.steps) > 1 and st.toggle(
            say("zoom"), key=ZOOM, persist_state="session",
            help=say("zoom_help"),
        )  # fmt: skip
        _where(chosen, shown, at, k)
        _explain(chosen, shown, k, ids, which)
    with left:
        _picture(chosen, shown, at, k, ids, bool(zoomed))
        if about := [*_size(shown, at, ids, bool(zoomed)), *_first_axis(chosen, shown, ids)]:
            st.caption(" ".join(about))


def _size(shown: Movie, at: int, ids: list[int], zoomed: bool) -> list[str]:
    """How wide the cloud is at this step beside the last one, in sentences."""
    wide = np.ptp(shown.points[:, ids, :2], axis=1).max(axis=1)
    share = float(wide[at] / wide[-1]) if wide[-1] > 0 else 1.0
    said = []
    if share < NARROW:
        told = {"step": format_count(shown.steps[at]), "last": format_count(shown.steps[-1])}
        key = "tiny" if at == 0 else "small"
        said.append(say(f"size.{key}", share=format_number(100 * share, 2), **told))
        if not zoomed:
            said.append(say("far"))
    if zoomed:
        said.append(say("zoomed"))
    return said


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
        fitted=format_count(shown.steps[-1]) if moves else "",
    )
    show(fig, key="embeddings_map")


def _near(chosen: Chosen) -> list[int]:
    try:
        return neighbours(chosen.ref, chosen.token_id).near[:LABELLED_NEAR].tolist()
    except ValueError:
        return []


def _where(chosen: Chosen, shown: Movie, at: int, k: int) -> None:
    """The chosen token's place, as a formula."""
    st.markdown(say("where", name=literal(chosen.name)))
    values = shown.points[at, chosen.token_id, :k].astype(np.float64).tolist()
    st.latex(worked_vectors.coordinates(values, chosen.config.d_model))
    st.caption(say("formula"))


def _first_axis(chosen: Chosen, shown: Movie, ids: list[int]) -> list[str]:
    """Whether the first direction tells the tokens that never occur from the others, in sentences."""
    never = np.isin(ids, unseen(chosen))
    values = shown.points[-1, ids, 0].astype(np.float64)
    if not never.any() or never.all():
        return []
    means = [values[never].mean(), values[~never].mean()]
    counts = [int(never.sum()), int((~never).sum())]
    between = sum(n * (m - values.mean()) ** 2 for n, m in zip(counts, means, strict=True)) / len(values)
    said = [say("never", n=counts[0], tokens=counted(counts[0], "token")), fate_of_unseen(chosen)]
    return [*said, say("first_axis")] if between > values.var() / 2 else said


def _explain(chosen: Chosen, shown: Movie, k: int, ids: list[int], which: str) -> None:
    n, moves = len(ids), len(shown.steps) > 1
    which_ones = say(f"drawn.{which}")
    if n == MOST_POINTS:
        most = format_count(MOST_POINTS)
        untold_ones = say("drawn_at_most_untold", most=most)
        which_ones = untold_ones if untold(chosen.ref) else say("drawn_at_most", which=which_ones, most=most)
    said = [
        say(
            "axes_at_step" if moves else "axes",
            k=k,
            n=format_count(n),
            which=which_ones,
            step=format_count(shown.steps[-1]),
            kept=format_number(100 * float(shown.basis.shares[:k].sum())),
            others=max(chosen.config.d_model - k, 0),
        )
    ]
    if moves:
        said.append(say("fixed"))
        said += [say("rounded")] if chosen.ref.kind == "shipped" else []
    said.append(say("named_only") if untold(chosen.ref) else say("named", source=frequency(chosen).source))
    st.caption(" ".join(said))
