"""The buttons of a run: play, pause, one step, stop, more steps; what can't be pressed says why."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from ui import nav, run_choice, session
from ui.words import counted, literal
from viz import clip

if TYPE_CHECKING:
    from engine.runs import RunInfo

WAITING = ("queued", "starting")
AGAIN = "It would diverge again at the same step. Start a new run with a lower learning rate."
ALL_DONE = "All its steps are done. Add more."


@dataclass(frozen=True)
class Action:
    """A button: what `RunStore` does when it is pressed, and why it can't be, or ""."""

    key: str
    label: str
    icon: str
    does: str
    unless: str = ""
    steps: int | None = None


def actions(info: "RunInfo") -> list[Action]:
    """The buttons of one's own run in their order; always the same places, so that none jumps away."""
    more = max(100, info.train.steps // 2)
    waits = f"It is {info.state}." if info.state in WAITING else ""
    ended = AGAIN if info.diverged else ALL_DONE if info.state == "finished" else ""
    if info.state in ("running", *WAITING):
        play = Action("pause", "Pause", "pause", "pause", waits)
    else:
        play = Action("resume", "Play", "play_arrow", "resume", "" if info.can_resume else ended)
    step_unless = waits or ("Pause it first." if info.state == "running" else ended)
    return [
        play,
        Action("one_step", "One step", "skip_next", "step", "" if info.can_step else step_unless or ALL_DONE),
        Action("stop", "Stop", "stop", "stop", "" if info.active else "It has ended already."),
        Action(
            "extend",
            f"{more} more steps",
            "fast_forward",
            "resume",
            "When it has ended or is paused."
            if info.state in ("running", *WAITING)
            else AGAIN
            if info.diverged
            else "",
            info.steps + more,
        ),
    ]


def draw(info: "RunInfo") -> None:
    """What its owner can do with a run; anybody else learns that they can only watch."""
    if not info.owned_by(session.owner()):
        st.caption("Somebody else’s run: watch only.")
        return
    for action in actions(info):
        options: dict[str, Any] = {} if action.steps is None else {"steps": action.steps}
        st.button(
            action.label,
            key=f"training_{action.key}",
            icon=f":material/{action.icon}:",
            on_click=run_choice.attempt,
            args=(action.does, info.id),
            kwargs=options,
            disabled=bool(action.unless),
            help=action.unless or None,
        )
    if not info.active and info.has_checkpoint:
        _look_inside(info)


def _look_inside(info: "RunInfo") -> None:
    use = f"run:{info.id}"
    chosen = session.model()
    if chosen is not None and chosen.id == use:
        nav.link("generation" if info.model.objective == "clm" else "masking", "Look inside it")
        return
    st.button(
        "Look inside",
        key="training_use",
        icon=":material/search:",
        on_click=session.choose_model,
        args=(use,),
        help="All pages then use this model.",
    )


def time_machine(info: "RunInfo") -> None:
    """The way to the time machine of one's own run, once there is a moment to go back to."""
    if not (info.has_checkpoint and info.owned_by(session.owner())):
        return
    st.button(
        "Time machine of this run",
        key="training_time_machine",
        icon=":material/history:",
        type="tertiary",
        on_click=_go_back_in_time,
        args=(info.id,),
        help="Its kept moments, on the text of the sidebar. All pages then use this model.",
    )


def _go_back_in_time(run_id: str) -> None:
    session.choose_model(f"run:{run_id}")
    st.session_state["watch"] = "Time machine"


def offer() -> None:
    """Where another model is chosen than the run looked at: say whose this is, with a way to the run."""
    ref, info = session.model(), run_choice.shown()
    if ref is None or info is None or ref.id == f"run:{info.id}":
        return
    if not (info.has_checkpoint and info.owned_by(session.owner())):
        return
    st.markdown(f":small[This is {literal(clip(ref.name, 24))}.]", width="content")
    st.button(
        "Show my run instead",
        key="training_offer",
        type="tertiary",
        icon=":material/history:",
        on_click=session.choose_model,
        args=(f"run:{info.id}",),
        help=f"The run that you looked at: {literal(info.name)}. All pages then use this model.",
    )


def standing(info: "RunInfo", slots: int) -> str:
    """What the state means and how to go on; "" where the curve says enough.

    Args:
        info: the run.
        slots: how many runs this machine trains at a time.
    """
    if info.state == "queued":
        place = f" It is number {info.queue_place} in the queue." if info.queue_place else ""
        return f"Waiting for its turn: this machine trains {counted(slots, 'run')} at a time.{place}"
    if info.state == "starting":
        return "Starting: the first numbers come in a few seconds."
    if info.state == "paused":
        return (
            "Paused. **Play** goes on, **One step** takes a single step. After 30 s it stops with a "
            "checkpoint; both still work then."
        )
    if info.state == "stopped":
        return "Stopped. **Play** goes on from its last checkpoint, **One step** takes a single step."
    return ""
