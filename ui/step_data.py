"""The step that is taken apart: where it starts, and the private copy that takes it, one for each person."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from engine.one_step import OneStep, Stepper, step_of_model, step_of_run
from ui import resources, time_data
from ui.model_refs import ModelRef
from wording import words

say = words("ui.step_data")

_LAB = "_step_lab"
START = "step_start"


@dataclass(eq=False)
class Lab:
    """A model that takes single steps, and the last one it took."""

    about: tuple[str, str]
    stepper: Stepper
    taken: OneStep


def has_optimizer(moment: ModelRef) -> bool:
    """Whether a checkpoint holds all that its run needs to go on exactly."""
    return (Path(moment.folder) / "optimizer.safetensors").is_file()


def default_start(ref: ModelRef, kept: tuple[ModelRef, ...]) -> int:
    """The step to begin at: a run's newest exact one with a next step; else early, where a step does much."""
    whole = [moment for moment in kept if has_optimizer(moment)]
    if ref.kind == "run" and whole:
        end = _steps(ref)
        return next((m.step for m in reversed(whole) if m.step < end), whole[-1].step)
    return kept[min(len(kept) // 5 + 1, len(kept) - 1)].step


def _steps(ref: ModelRef) -> int:
    try:
        return int(resources.run_store().info(ref.id.removeprefix("run:")).steps)
    except ValueError:  # deleted in another window
        return 0


def lab(ref: ModelRef, start: ModelRef) -> Lab:
    """The private copy at a moment, with its first step taken; kept until another moment is chosen.

    Raises:
        ValueError: one sentence, if there is no such step.
    """
    about = (start.folder, start.identity)
    kept: Lab | None = st.session_state.get(_LAB)
    if kept is not None and kept.about == about:
        return kept
    with st.spinner(say("taking_one_step")):
        make = step_of_run if ref.kind == "run" else step_of_model
        stepper = make(start.folder)
        st.session_state[_LAB] = found = Lab(about, stepper, stepper.take())
    return found


def go_on() -> None:
    """Take the next step from there. For `on_click`."""
    kept: Lab | None = st.session_state.get(_LAB)
    if kept is not None and not kept.stepper.done:
        kept.taken = kept.stepper.take()


def back() -> None:
    """Forget the steps that were taken. For `on_click`."""
    st.session_state.pop(_LAB, None)


def moments_of(ref: ModelRef) -> tuple[ModelRef, ...]:
    """Where a step can start."""
    return time_data.moments_of(ref)


def recorded(ref: ModelRef, step: int) -> dict[str, Any] | None:
    """What the run itself wrote down of a step, if it did."""
    if ref.kind != "run":
        return None
    try:
        records = resources.run_store().history(ref.id.removeprefix("run:"))
    except ValueError:
        return None
    return next((r for r in reversed(records) if r["kind"] == "step" and r["step"] == step), None)
