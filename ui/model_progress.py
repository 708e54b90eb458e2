"""A model on its way to this machine: how far it is, on every page that looks, and what went wrong."""

from typing import Literal

import streamlit as st

from engine import hub_download, smollm2
from engine.hub_download import SMOLLM2, Fetch
from ui import model_refs, teacher_gate
from ui.words import literal
from wording import words

say = words("ui.model_progress")

POLL = 0.5  # seconds between two looks


def draw() -> None:
    """What is on its way, or how the last one ended. Looks again while one is on its way."""
    found = hub_download.latest(model_refs.models_folder())
    if found is not None:
        st.fragment(_draw, run_every=POLL if found.running else None)(found.running)


def running() -> bool:
    """Whether a model is on its way."""
    found = hub_download.latest(model_refs.models_folder())
    return found is not None and found.running


def _is_the_teachers() -> bool:
    """Whether only the teacher fetches models here, and this is somebody else."""
    return hub_download.allowed(teacher=True) and not hub_download.allowed(teacher=teacher_gate.is_teacher())


def _act(what: Literal["cancel", "forget"]) -> None:
    """For the buttons: a browser can send the click of a disabled one as well."""
    if not _is_the_teachers():
        getattr(hub_download, what)(model_refs.models_folder())


def name_of(what: str) -> str:
    """What the screen calls a model that was asked for."""
    return smollm2.NAME if what == SMOLLM2 else what


def _draw(polled: bool) -> None:
    found = hub_download.latest(model_refs.models_folder())
    if found is None or polled and not found.running:
        st.rerun()  # the page has a new model, or other buttons
        return
    name = literal(name_of(found.what))
    with st.container(border=True, key="models_progress"):
        if found.running:
            st.progress(found.share, text=f"**{name}** · {_how_far(found)}")
            st.button(
                say("stop"), key="models_stop", icon=":material/stop:", on_click=_act,
                args=("cancel",), disabled=_is_the_teachers(),
            )  # fmt: skip
        else:
            _ended(found, name)


def _how_far(found: Fetch) -> str:
    if found.what == SMOLLM2:
        if found.stage not in smollm2.STAGES:
            return say("starting")
        at = smollm2.STAGES.index(found.stage) + 1
        return say("stage", at=at, of=len(smollm2.STAGES), stage=smollm2.stage_words(found.stage))
    if not found.n_bytes:
        return say("starting")
    return say("bytes", done=found.n_bytes / 1e6, size=found.size / 1e6, file=literal(found.stage))


def _ended(found: Fetch, name: str) -> None:
    come = hub_download.come(model_refs.models_folder(), found.what) if found.what != SMOLLM2 else 0
    if found.state == "done":
        st.success(say("done", name=name))
    elif found.state == "cancelled":
        st.info(say("stopped", name=name))
    else:
        st.error(literal(found.message))
    if come:
        st.caption(say("kept", done=come / 1e6))
    with st.container(horizontal=True):
        st.button(
            say("delete") if come else say("close"), key="models_close", on_click=_act,
            args=("forget",), disabled=_is_the_teachers(),
        )  # fmt: skip
