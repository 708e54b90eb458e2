"""What a fine-tuning learned and what it forgot: losses before and after, from the records of the run."""

from typing import TYPE_CHECKING

import streamlit as st

import viz
from ui import resources, tuning_data, tuning_run, worked_tuning
from ui.components import show
from ui.model_refs import ModelRef
from viz.tuning import before_and_after
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.tuning_losses")

Row = tuple[str, float, float, float | None]  # name, before, after, floor


def draw(info: "RunInfo", after: ModelRef) -> None:
    """Bars, and the two differences worked out.

    Args:
        info: a run that has ended.
        after: what came of it.
    """
    records = resources.run_store().history(info.id)
    measured = tuning_run.first_and_last(records)
    if measured is None:
        return
    first, last = measured
    rows: list[Row] = []
    aim = info.train.aim
    if aim != "preferences":  # the loss of a preference is another quantity
        key = "train_loss" if first.get("val_loss") is None else "val_loss"
        name = say(f"new.{key}.{aim}", text=tuning_run.title_of(info))
        rows.append((name, first[key], last[key], None))
    known: list[int] = []  # rows of what the start knew
    for name, evals in tuning_run.also_scored(records).items():
        floor = tuning_data.floor_of(after, info, name)
        if knew := tuning_run.knew(info, name, evals[0][1]):
            known.append(len(rows))
        title = say("old" if knew else "other", text=tuning_run.old_title(name))
        rows.append((title, evals[0][1], evals[-1][1], floor))
    if not rows:
        return
    st.subheader(say(f"title.{aim}"))
    names, before, now, floors = (list(column) for column in zip(*rows, strict=True))
    show(before_and_after(names, before, now, unit=say("unit"), floors=floors), key=f"tuning_losses_{aim}")
    if aim == "preferences":
        st.markdown(say("cost", change=_signed(now[0] - before[0])))
    elif known:
        old = known[0]
        st.latex(worked_tuning.changes(before[0], now[0], before[old], now[old]))
        st.markdown(_in_words(before[0] - now[0], now[old] - before[old]))
    elif len(rows) > 1:
        st.markdown(_in_words(before[0] - now[0], None))
    st.caption(say("measured_at", step=last["step"]))


def _signed(x: float) -> str:
    return viz.format_number(x) if x < 0 else f"+{viz.format_number(x)}"


def _in_words(gained: float, forgot: float | None) -> str:
    """What the differences mean; `forgot` is None if nothing was measured that the start knew."""
    numbers = {"gained": viz.format_number(abs(gained))}
    if gained <= 0:
        return say("nothing_gained", **numbers)
    if forgot is None:
        return say("gained_other", **numbers)
    return say("gained_and_forgot" if forgot > 0 else "gained_only", **numbers,
               forgot=viz.format_number(abs(forgot)))  # fmt: skip
