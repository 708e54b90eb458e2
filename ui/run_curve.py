"""The picture of a run: which quantity, on which axes, how smooth, with what other lines, and as a file."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
import streamlit as st

import viz
from engine import reading
from engine.reading import Line, Record
from ui import resources, session
from ui.cells import table_csv
from ui.components import live_curve
from ui.words import counted

if TYPE_CHECKING:
    from engine.runs import RunInfo

HEIGHT = 280
HALF_LIVES = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
_COUNTED = {
    "unigram": "unigram: how frequent each token is",
    "bigram": "bigram: counts of pairs",
    "trigram": "trigram: counts of triples",
}
FLOOR = "the floor: no model can beat this"


class Quantity(NamedTuple):
    """A choice of what is drawn: its name on the screen, title of the axis, unit, and its lines.

    A line is a name in `reading.quantity`, its name in the legend, its look, and whether it is noisy enough
    to be smoothed.
    """

    label: str
    title: str
    unit: str
    lines: tuple[tuple[str, str, str, bool], ...]


LOSS = (("loss", "training", "train", True), ("val_loss", "validation", "valid", False))
QUANTITIES = {
    "loss": Quantity("Loss", "loss (nats per token)", "nats", LOSS),
    "bits_per_byte": Quantity(
        "Bits per byte", "bits per byte", "bits per byte",
        (("bits_per_byte", "validation", "valid", False),),
    ),
    "grad_norm": Quantity(
        "Gradient norm", "gradient norm, before clipping", "",
        (("grad_norm", "gradient norm", "train", True),),
    ),
    "learning_rate": Quantity(
        "Learning rate", "learning rate", "", (("learning_rate", "learning rate", "valid", False),)
    ),
    "tokens_per_second": Quantity(
        "Speed", "tokens a second", "tokens a second",
        (("tokens_per_second", "tokens a second", "train", True),),
    ),
}  # fmt: skip


class Look(NamedTuple):
    """How a curve is drawn: half-life of the smoothing in steps, logarithmic axes, a run to compare with."""

    half_life: int
    log_x: bool
    log_y: bool
    other: "RunInfo | None"


def choose() -> str:
    """The control for the quantity; gives its name."""
    return str(
        st.segmented_control(
            "Quantity",
            list(QUANTITIES),
            format_func=lambda name: QUANTITIES[name].label,
            default="loss",
            required=True,
            key="training_quantity",
            persist_state="session",
            label_visibility="collapsed",
            wrap=True,
        )
    )


def draw(
    info: "RunInfo",
    records: list[Record],
    look: Look,
    *,
    marks: list[int],
    cursor: int | None,
    on_point: Callable[[int], None],
) -> None:
    """The curve of the chosen quantity.

    Args:
        info: the run.
        records: all of its records.
        look: what `controls` gave.
        marks: steps that can be pressed.
        cursor: the chosen one.
        on_point: called with the one that is pressed.
    """
    name = choose()
    series = _series(info.id, records, name, look.half_life)
    if look.other is not None:
        series += _series_of_other(look.other, name)
    if not series and name == "bits_per_byte":
        st.caption(_no_bits(info))
    live_curve(
        series,
        references(info, records, name),
        key=f"training_curve_{info.id}",
        objective=info.model.objective,
        y_title=y_title(name, info.model.objective),
        unit=QUANTITIES[name].unit,
        perplexity_axis=name == "loss",
        log_x=look.log_x,
        log_y=look.log_y,
        height=HEIGHT,
        marks=marks,
        cursor=cursor,
        on_point=on_point,
    )


def y_title(name: str, objective: str) -> str:
    """Title of the axis with its unit; a masked loss is another quantity and has another name."""
    masked = name == "loss" and objective == "mlm"
    return "masked-token loss (nats per hidden token)" if masked else QUANTITIES[name].title


def _no_bits(info: "RunInfo") -> str:
    if info.model.objective == "mlm":
        return "A masked model has no bits per byte: it is asked for some tokens only, and sees those around."
    return "No bits per byte yet: they are measured on the validation text, at each evaluation."


def controls(info: "RunInfo") -> Look:
    """Smoothing, logarithmic axes, and another run to compare with."""
    half_life = st.select_slider(
        "Smoothing",
        HALF_LIVES,
        value=0,
        format_func=lambda steps: counted(steps, "step") if steps else "none",
        key="training_smoothing",
        persist_state="session",
        help="Half-life: each point becomes a mean of those before it, in which a step counts half as much "
        "after so many more, so it lags behind a curve that falls. The faint line is what was measured.",
    )
    with st.container(horizontal=True, gap="medium"):
        log_x = st.toggle("Log steps", key="training_log_x", persist_state="session")
        log_y = st.toggle("Log values", key="training_log_y", persist_state="session")
    return Look(int(half_life), log_x, log_y, _compared(info))


def _series(run_id: str, records: list[Record], name: str, half_life: int) -> list[viz.Series]:
    lines = []
    for quantity, label, role, noisy in QUANTITIES[name].lines:
        found = _line(run_id, str(records[-1:]), len(records), quantity, half_life if noisy else 0, records)
        raw, smoothed = found
        if smoothed is not None:
            lines += [
                viz.Series(f"{label}, each step", *raw, "raw"),
                viz.Series(f"{label}, smoothed", *smoothed, "smooth"),
            ]
        elif len(raw[0]) or role == "train":
            lines.append(viz.Series(f"{label}, each step" if noisy else label, *raw, role))
    return lines


@st.cache_resource(max_entries=128, show_spinner=False)
def _line(
    run_id: str, last: str, n_records: int, name: str, half_life: int, _records: list[Record]
) -> tuple[Line, Line | None]:
    """A line as measured, and smoothed over all its records; computed once for all who watch."""
    steps, values = reading.quantity(_records, name)
    if not half_life or len(steps) < 3:
        return (steps, values), None
    return (steps, values), (steps, reading.smooth(values, half_life, steps))


def _series_of_other(other: "RunInfo", name: str) -> list[viz.Series]:
    records = resources.run_store().history(other.id)
    lines = [reading.quantity(records, quantity) for quantity, _, _, _ in reversed(QUANTITIES[name].lines)]
    found = next((line for line in lines if len(line[0])), None)
    return [] if found is None else [viz.Series(other.name, *found, "other")]


def references(info: "RunInfo", records: list[Record], name: str) -> list[viz.Reference]:
    """Horizontal lines: guessing, counting and the floor for a loss, the clip for the gradient."""
    if name == "grad_norm" and info.train.grad_clip:
        return [viz.Reference(info.train.grad_clip, "clipped above this")]
    if name not in ("loss", "bits_per_byte"):
        return []
    unit = "nats" if name == "loss" else "bits_per_byte"
    found = reading.baselines(records, unit)
    if name == "loss":
        found["uniform"] = math.log(info.model.vocab_size)  # the same line, known from the first moment on
    lines = []
    if "uniform" in found:
        label = "ln V: guessing uniformly" if name == "loss" else "guessing uniformly"
        lines.append(viz.Reference(found["uniform"], label, "start"))
    lines += [viz.Reference(found[key], label, key) for key, label in _COUNTED.items() if key in found]
    floor = reading.floor_of(records, unit)
    return lines if floor is None else [*lines, viz.Reference(floor, FLOOR, "floor")]


def take_away(run_id: str) -> None:
    """All numbers of the run up to now as a file, made when it is asked for.

    Not for a part of the page that is drawn anew each second: by the time of the press the file that was
    offered there would be forgotten.
    """
    st.download_button(
        "Numbers (CSV)",
        lambda: table_csv(pd.DataFrame(reading.table(resources.run_store().history(run_id)))),
        file_name=f"{run_id}.csv",
        mime="text/csv",
        key="training_csv",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
        help="Every recorded step and every quantity, none left out.",
    )


def _compared(info: "RunInfo") -> "RunInfo | None":
    """Another run on the same axes: only one with the same text, vocabulary and objective can be compared."""
    others = {
        o.id: o
        for o in resources.run_store().list(session.owner())
        if o.id != info.id
        and o.step
        and (o.corpus["sha256"], o.tokenizer, o.model.vocab_size, o.model.objective)
        == (info.corpus["sha256"], info.tokenizer, info.model.vocab_size, info.model.objective)
    }
    if not others:
        return None
    chosen = st.selectbox(
        "Compare with",
        list(others),
        index=None,
        format_func=lambda run_id: _label(others[run_id]) if run_id in others else "",
        key="training_compare",
        placeholder="compare with",
        label_visibility="collapsed",
        help="Runs of the same text, vocabulary and objective. The view Runs shows what differs.",
    )
    return others.get(chosen or "")


def _label(info: "RunInfo") -> str:
    config = info.train
    return (
        f"{info.name} · {config.optimizer} {config.learning_rate:g} · {info.steps} steps · seed {config.seed}"
    )
