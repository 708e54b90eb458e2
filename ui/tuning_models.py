"""The start of a fine-tuning, and what came of it: models before and after."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from engine.config import ModelConfig
from engine.folders import read_json
from ui import model_refs, resources, session
from ui.model_refs import ModelRef
from ui.words import literal
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.tuning_models")


def require_start() -> ModelRef:
    """The chosen model, opened, if it is causal; else a sentence, others to choose, and the page ends."""
    return session.require_model("clm")


def config_of(ref: ModelRef) -> ModelConfig:
    """The shape of a model."""
    return resources.load(ref).model.config


class Compared(NamedTuple):
    """A model before and after it learned further."""

    before: ModelRef
    after: ModelRef


def compared(info: "RunInfo") -> Compared | None:
    """The models of a run that has ended; or a sentence on why there is nothing to compare yet."""
    if info.active:
        st.caption(say("still_learning"))
        return None
    after = next(
        (ref for ref in model_refs.available_models(session.owner()) if ref.id == f"run:{info.id}"), None
    )
    if after is None or after.step == 0:
        st.caption(say("nothing_learned"))
        return None
    before = _start(info, after)
    if before is None:
        st.caption(say("start_is_gone", name=literal(info.start)))
        return None
    if info.state != "finished":
        st.caption(say("ended_early", step=after.step, steps=info.steps))
    found = Compared(before, after)
    try:
        resources.load(before), resources.load(after)
    except ValueError as error:
        st.error(literal(str(error)))
        return None
    return found


def _start(info: "RunInfo", after: ModelRef) -> ModelRef | None:
    """The model that a run began with: its copy in the run, or where a large one lies."""
    copy = model_refs.checkpoint_ref(after.id, info.start, info.folder / "start")
    if copy is not None:
        return replace(copy, device=after.device)
    folder = read_json(info.folder / "run.json").get("start", {}).get("folder")
    found = (ref for ref in model_refs.available_models(session.owner()) if ref.folder == folder)
    return next(found, None)
