"""The curves of the chosen runs on shared axes, their controls, and what can't share one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from engine import reading, run_sets
from engine.run_sets import Line
from ui import resources
from ui.components import show
from ui.runs_choice import RunSet
from ui.words import counted, literal
from viz.runs import RunLine, run_curves
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.runs_picture")

QUANTITIES = ("val_loss", "loss", "bits_per_byte")
AXES = ("step", "tokens", "seconds")


@dataclass(frozen=True)
class Look:
    """How the curves are drawn: the quantity, the axis under them, and the rest."""

    quantity: str
    axis: str
    half_life: int
    log_x: bool
    log_y: bool
    bands: bool
    close_up: bool


def controls() -> Look:
    """The controls over the picture."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        quantity = st.segmented_control(
            say("quantity"), QUANTITIES, format_func=lambda name: say(f"choice.{name}"), default="val_loss",
            required=True, key="runs_quantity", persist_state="session", wrap=True,
            label_visibility="collapsed",
        )  # fmt: skip
        axis = st.segmented_control(
            say("against"), AXES, format_func=lambda name: say(f"axis.{name}"), default="step", required=True,
            key="runs_axis", persist_state="session", wrap=True, label_visibility="collapsed",
        )  # fmt: skip
        with st.popover(say("more"), icon=":material/tune:", key="runs_more"):
            close_up = st.toggle(
                say("close_up"), True, key="runs_close_up", persist_state="session",
                help=say("close_up_help"),
            )  # fmt: skip
            log_x = st.toggle(say("log_x"), key="runs_log_x", persist_state="session")
            log_y = st.toggle(say("log_y"), key="runs_log_y", persist_state="session")
            bands = st.toggle(say("bands"), True, key="runs_bands", persist_state="session")
            half_life = st.slider(
                say("smoothing"), 0, 200, 10, step=5, key="runs_smooth",
                persist_state="session", format=say("steps"),
                help=say("smoothing_help"),
            )  # fmt: skip
    return Look(str(quantity), str(axis), int(half_life), log_x, log_y, bands, close_up)


def draw(sets: Sequence[RunSet], look: Look) -> run_sets.Shared:
    """The picture of sets of one objective; gives what was drawn of them, and in what."""
    objective = sets[0].objective
    shared = run_sets.shared_axis([each.settings for each in sets], look.quantity)
    kept = [sets[i] for i in shared.kept]
    for reason in shared.reasons:
        st.info(reason, icon=":material/info:")
    lines, absent = [], []
    for each in kept:
        own = _lines(each, shared.quantity, look)
        lines += own
        absent += [] if own else [each]
    floors = {_floor(info, shared.quantity) for each in kept for info in each.infos[:1]}
    y_title = say(f"y_title.{objective}_{shared.quantity}")
    if not lines:
        st.info(say("nothing_measured"))
        return shared
    show(
        run_curves(
            lines,
            x_title=say(f"x_title.{look.axis}"),
            y_title=y_title,
            unit=say("bits_per_byte") if shared.quantity == "bits_per_byte" else say("nats"),
            floor=floors.pop() if len(floors) == 1 else None,
            log_x=look.log_x,
            log_y=look.log_y,
            close_up=look.close_up,
        ),
        key=f"runs_curves_{objective}",
    )
    _say(kept, absent, shared.quantity, look)
    return shared


def _say(kept: Sequence[RunSet], absent: Sequence[RunSet], quantity: str, look: Look) -> None:
    said = [say("is_close_up")] if look.close_up else []
    if look.bands and any(len(each.infos) > 1 for each in kept):
        said.append(say("what_a_band_is"))
    if quantity == "loss" and look.half_life:
        said.append(say("is_smoothed", half_life=look.half_life))
    if absent:
        names = ", ".join(literal(each.tag) for each in absent)
        said.append(say(f"nothing_to_draw.{quantity}", names=names))
    if said:
        st.caption(" ".join(said))


def _floor(info: "RunInfo", quantity: str) -> float | None:
    unit = "bits_per_byte" if quantity == "bits_per_byte" else "nats"
    return reading.floor_of(resources.run_store().history(info.id), unit)


def _lines(each: RunSet, quantity: str, look: Look) -> list[RunLine]:
    """The line of a set, with its band and with thin lines for runs that did not get as far."""
    place = look_of(each)
    found = [line_of(info, quantity, look.axis, look.half_life) for info in each.infos]
    found = [line for line in found if len(line[0])]
    if not found:
        return []
    far = run_sets.furthest(found)
    band = run_sets.band([found[i] for i in far]) if look.bands else None
    if band is None:
        main, rest = found[far[0]], [line for i, line in enumerate(found) if i != far[0]]
        return [
            *(RunLine(each.tag, *line, place, faint=True) for line in rest),
            RunLine(each.tag, *main, place, letter=each.letter),
        ]
    rest = [line for i, line in enumerate(found) if i not in far]
    whole = RunLine(
        each.tag,
        band.x,
        band.mean,
        place,
        low=band.low,
        high=band.high,
        letter=each.letter,
        note=counted(band.n, "seed"),
    )
    return [*(RunLine(each.tag, *line, place, faint=True) for line in rest), whole]


def look_of(each: RunSet) -> int:
    """Which of the looks a set has: that of its letter."""
    return ord(each.letter) - ord("A")


def line_of(info: "RunInfo", quantity: str, axis: str, half_life: int) -> Line:
    """A quantity of a run along an axis; the training loss smoothed, over all its records."""
    records = resources.run_store().history(info.id)
    last = str(records[-1:])
    smoothing = half_life if quantity == "loss" else 0
    per_step = info.train.batch_size * info.train.longest_row(info.model.context_length)
    return _line_of(info.id, last, len(records), quantity, axis, smoothing, per_step, records)


@st.cache_resource(max_entries=256, show_spinner=False)
def _line_of(
    run_id: str, last: str, n_records: int, quantity: str, axis: str, half_life: int, per_step: int,
    _records: list[reading.Record],
) -> Line:  # fmt: skip
    steps, values = reading.quantity(_records, quantity)
    x = run_sets.along(_records, steps, axis, per_step)
    y = np.asarray(reading.smooth(values, half_life, steps))
    for array in (x, y):
        array.setflags(write=False)
    return x, y
