"""The buttons of a run: play, pause, one step, stop, more steps; what can't be pressed says why."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from ui import nav, run_choice, session
from ui.words import literal
from viz import clip
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo

say = words("ui.run_player")

WAITING = ("queued", "starting")


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
    waits = say(f"waits.{info.state}") if info.state in WAITING else ""
    again, all_done = say("would_diverge_again"), say("all_done")
    ended = again if info.diverged else all_done if info.state == "finished" else ""
    if info.state in ("running", *WAITING):
        play = Action("pause", say("pause"), "pause", "pause", waits)
    else:
        play = Action("resume", say("play"), "play_arrow", "resume", "" if info.can_resume else ended)
    step_unless = waits or (say("pause_first") if info.state == "running" else ended)
    return [
        play,
        Action(
            "one_step",
            say("one_step"),
            "skip_next",
            "step",
            "" if info.can_step else step_unless or all_done,
        ),
        Action("stop", say("stop"), "stop", "stop", "" if info.active else say("ended_already")),
        Action(
            "extend",
            say("more_steps", more=more),
            "fast_forward",
            "resume",
            say("when_ended_or_paused")
            if info.state in ("running", *WAITING)
            else again
            if info.diverged
            else "",
            info.steps + more,
        ),
    ]


def draw(info: "RunInfo") -> None:
    """What its owner can do with a run; anybody else learns that they can only watch."""
    if not info.owned_by(session.owner()):
        st.caption(say("watch_only"))
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
        nav.link("generation" if info.model.objective == "clm" else "masking", say("look_inside_it"))
        return
    st.button(
        say("look_inside"),
        key="training_use",
        icon=":material/search:",
        on_click=session.choose_model,
        args=(use,),
        help=say("look_inside_help"),
    )


def time_machine(info: "RunInfo") -> None:
    """The way to the time machine of one's own run, once there is a moment to go back to."""
    if not (info.has_checkpoint and info.owned_by(session.owner())):
        return
    st.button(
        say("time_machine"),
        key="training_time_machine",
        icon=":material/history:",
        type="tertiary",
        on_click=_go_back_in_time,
        args=(info.id,),
        help=say("time_machine_help"),
    )


def _go_back_in_time(run_id: str) -> None:
    session.choose_model(f"run:{run_id}")
    st.session_state["watch"] = "time-machine"


def offer() -> None:
    """Where another model is chosen than the run looked at: say whose this is, with a way to the run."""
    ref, info = session.model(), run_choice.shown()
    if ref is None or info is None or ref.id == f"run:{info.id}":
        return
    if not (info.has_checkpoint and info.owned_by(session.owner())):
        return
    st.markdown(say("this_is", name=literal(clip(ref.name, 24))), width="content")
    st.button(
        say("show_my_run"),
        key="training_offer",
        type="tertiary",
        icon=":material/history:",
        on_click=session.choose_model,
        args=(f"run:{info.id}",),
        help=say("show_my_run_help", name=literal(info.name)),
    )


def standing(info: "RunInfo", slots: int) -> str:
    """What the state means and how to go on; "" where the curve says enough.

    Args:
        info: the run.
        slots: how many runs this machine trains at a time.
    """
    if info.held:
        return say("held", place=info.queue_place or 1)
    if info.state == "queued":
        if info.queue_place:
            return say("queued_at", n=slots, place=info.queue_place)
        return say("queued", n=slots)
    if info.state == "starting":
        return say("starting")
    if info.state == "paused":
        return say("paused")
    if info.stopped_by_teacher:
        mine = info.owned_by(session.owner())
        return say("stopped_by_teacher", step=info.step) if mine else say("stopped_by_their_teacher")
    if info.state == "stopped":
        return say("stopped")
    return ""
