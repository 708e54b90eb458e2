"""The picture of a run: which quantity, on which axes, how smooth, with what other lines, and as a file."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
import streamlit as st
from streamlit.errors import StreamlitAPIException

import viz
import wording
from engine import reading
from engine.reading import Record
from ui import resources, session
from ui.cells import table_csv
from ui.components import curve_code, live_curve
from ui.run_seen import Seen, seen
from ui.words import counted
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo

say = words("ui.run_curve")

PARTS = ("training_now", "training_below")  # of the page: what is drawn anew each second, and now and then
HEIGHT = 280
_QUANTITY, _SMOOTHING, _OTHER = "training_quantity", "training_smoothing", "training_compare"
_LOG_X, _LOG_Y = "training_log_x", "training_log_y"
HALF_LIVES = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
COUNTED = ("unigram", "bigram", "trigram")
# What can be drawn: its lines, each a name in `reading.quantity`, its look, and whether it is noisy enough to
# be smoothed.
QUANTITIES: dict[str, tuple[tuple[str, str, bool], ...]] = {
    "loss": (("loss", "train", True), ("val_loss", "valid", False)),
    "bits_per_byte": (("bits_per_byte", "valid", False),),
    "grad_norm": (("grad_norm", "train", True),),
    "learning_rate": (("learning_rate", "valid", False),),
    "tokens_per_second": (("tokens_per_second", "train", True),),
}


class Look(NamedTuple):
    """How a curve is drawn: what, half-life of the smoothing in steps, logarithmic axes, a run to compare."""

    quantity: str
    half_life: int
    log_x: bool
    log_y: bool
    other: "RunInfo | None"


def again() -> None:
    """Draw the parts of the page that show the run, and nothing else. For callbacks."""
    with suppress(StreamlitAPIException):  # where whole pages run, as in a test, there are no parts
        st.rerun(PARTS)


def choose() -> None:
    """The control for the quantity."""
    st.segmented_control(
        say("quantity"),
        list(QUANTITIES),
        format_func=lambda name: say(f"choice.{name}"),
        default="loss",
        required=True,
        key=_QUANTITY,
        persist_state="session",
        label_visibility="collapsed",
        wrap=True,
        on_change=again,
    )


def look(info: "RunInfo") -> Look:
    """What `choose` and `controls` stand at."""
    state = st.session_state
    name = state.get(_QUANTITY)
    other = state.get(_OTHER)
    return Look(
        name if name in QUANTITIES else "loss",
        int(state.get(_SMOOTHING, 0)),
        bool(state.get(_LOG_X)),
        bool(state.get(_LOG_Y)),
        _comparable(info).get(other) if other else None,
    )


def prepare(run_id: str) -> None:
    """Put what draws the curve on the page, before the part that is drawn anew each second."""
    curve_code(_curve_key(run_id))


def _curve_key(run_id: str) -> str:
    return f"training_curve_{run_id}"


def draw(
    info: "RunInfo",
    now: Seen,
    look: Look,
    *,
    cursor: int | None,
    on_point: Callable[[int], None],
) -> None:
    """The curve of the chosen quantity.

    Args:
        info: the run.
        now: what its records say; the steps at which it was measured can be pressed.
        look: how it is drawn.
        cursor: the chosen step.
        on_point: called with the one that is pressed.
    """
    name = look.quantity
    series = _series(now, name, look.half_life)
    if look.other is not None:
        series += _series_of_other(look.other, name)
    if not series and name == "bits_per_byte":
        st.caption(_no_bits(info))
    live_curve(
        series,
        references(info, now.floors, name),
        key=_curve_key(info.id),
        with_code=False,
        objective=info.model.objective,
        y_title=y_title(name, info.measure),
        unit=say(f"unit.{name}"),
        perplexity_axis=name == "loss" and info.measure != "preferences",
        log_x=look.log_x,
        log_y=look.log_y,
        height=HEIGHT,
        marks=now.measured,
        cursor=cursor,
        on_point=on_point,
    )


def y_title(name: str, objective: str) -> str:
    """Title of the axis with its unit; a masked loss is another quantity and has another name."""
    if name != "loss" or objective == "clm":
        return say(f"axis.{name}")
    return {
        "mlm": say("axis_of_masked_loss"),
        "answers": say("axis_of_answers_loss"),
        "preferences": say("axis_of_preferences_loss"),
    }[objective]


def _no_bits(info: "RunInfo") -> str:
    if info.model.objective == "mlm":
        return say("no_bits_of_masked")
    if info.measure != "clm":
        return say("no_bits_of_pairs")
    return say("no_bits_yet")


def controls(info: "RunInfo") -> None:
    """Smoothing, logarithmic axes, and another run to compare with."""
    st.select_slider(
        say("smoothing"),
        HALF_LIVES,
        value=0,
        format_func=_half_lives(wording.language()).__getitem__,
        key=_SMOOTHING,
        persist_state="session",
        help=say("half_life"),
        on_change=again,
    )
    with st.container(horizontal=True, gap="medium"):
        st.toggle(say("log_steps"), key=_LOG_X, persist_state="session", on_change=again)
        st.toggle(say("log_values"), key=_LOG_Y, persist_state="session", on_change=again)
    if others := _comparable(info):
        st.selectbox(
            say("compare"),
            list(others),
            index=None,
            format_func=lambda run_id: _label(others[run_id]) if run_id in others else "",
            key=_OTHER,
            placeholder=say("compare_placeholder"),
            label_visibility="collapsed",
            help=say("compare_help"),
            on_change=again,
        )


@cache
def _half_lives(language: str) -> dict[int, str]:
    """What the slider shows for each half-life."""
    return {steps: counted(steps, "step") if steps else say("no_smoothing") for steps in HALF_LIVES}


def _series(now: Seen, name: str, half_life: int) -> list[viz.Series]:
    lines = []
    for quantity, role, noisy in QUANTITIES[name]:
        label = say(f"line.{quantity}")
        raw, smoothed = now.lines(quantity, half_life if noisy else 0)
        if smoothed is not None:
            lines += [
                viz.Series(say("each_step", label=label), *raw, "raw"),
                viz.Series(say("smoothed", label=label), *smoothed, "smooth"),
            ]
        elif len(raw[0]) or role == "train":
            lines.append(viz.Series(say("each_step", label=label) if noisy else label, *raw, role))
    return lines


def _series_of_other(other: "RunInfo", name: str) -> list[viz.Series]:
    its = seen(other.id, resources.run_store().history(other.id), other.n_choices)
    lines = [its.lines(quantity, 0)[0] for quantity, _, _ in reversed(QUANTITIES[name])]
    found = next((line for line in lines if len(line[0])), None)
    return [] if found is None else [viz.Series(other.name, *found, "other")]


def references(info: "RunInfo", records: list[Record], name: str) -> list[viz.Reference]:
    """Horizontal lines: guessing, counting and the floor for a loss, the clip for the gradient."""
    if name == "grad_norm" and info.train.grad_clip:
        return [viz.Reference(info.train.grad_clip, say("clipped"))]
    if name not in ("loss", "bits_per_byte"):
        return []
    unit = "nats" if name == "loss" else "bits_per_byte"
    found = reading.baselines(records, unit)
    if name == "loss":
        found["uniform"] = math.log(info.n_choices)  # the same line, known from the first moment on
    lines = []
    if "uniform" in found:
        label = say("guessing_ln_v") if name == "loss" else say("guessing")
        if info.measure == "preferences":
            label = say("not_knowing")
        lines.append(viz.Reference(found["uniform"], label, "start"))
    lines += [viz.Reference(found[key], say(f"counted.{key}"), key) for key in COUNTED if key in found]
    floor = reading.floor_of(records, unit)
    return lines if floor is None else [*lines, viz.Reference(floor, say("floor"), "floor")]


def take_away(run_id: str) -> None:
    """All numbers of the run up to now as a file, made when it is asked for.

    Not for a part of the page that is drawn anew each second: by the time of the press the file that was
    offered there would be forgotten.
    """
    st.download_button(
        say("numbers_csv"),
        lambda: table_csv(pd.DataFrame(reading.table(resources.run_store().history(run_id)))),
        file_name=f"{run_id}.csv",
        mime="text/csv",
        key="training_csv",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
        help=say("numbers_help"),
    )


def _comparable(info: "RunInfo") -> "dict[str, RunInfo]":
    """Runs for the same axes: only one with the same text, vocabulary and objective can be compared."""
    return {
        o.id: o
        for o in _runs_of(session.owner())
        if o.id != info.id
        and o.step
        and (o.corpus["sha256"], o.tokenizer, o.model.vocab_size, o.measure)
        == (info.corpus["sha256"], info.tokenizer, info.model.vocab_size, info.measure)
    }


def _runs_of(owner: str) -> "list[RunInfo]":
    """A person's runs, looked up once a second for all who watch one: new ones are seen at once."""
    store = resources.run_store()
    return _listed(str(store.root), store.root.stat().st_mtime_ns, owner, int(time.monotonic()))


@lru_cache(maxsize=64)
def _listed(folder: str, changed: int, owner: str, second: int) -> "list[RunInfo]":
    return resources.run_store().list(owner)


def _label(info: "RunInfo") -> str:
    config = info.train
    return say(
        "run",
        name=info.name,
        optimizer=config.optimizer,
        rate=f"{config.learning_rate:g}",
        steps=info.steps,
        seed=config.seed,
    )
