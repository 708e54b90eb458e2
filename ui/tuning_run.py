"""A fine-tuning on its way: start it, choose among one's own, watch its loss, stop it and go on."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

import viz
from engine import corpus as texts
from engine import reading
from engine.reading import Record
from ui import nav, resources, run_choice, run_curve, run_player, run_view, session
from ui.components import curve_code, live_curve
from ui.words import literal, state_name
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo
    from engine.run_spec import RunSpec

say = words("ui.tuning_run")

HEIGHT = 260
OTHERS = ("run 3", "run 1", "run 2")  # looks of the lines of other texts


def mine(aim: str) -> "list[RunInfo]":
    """This person's runs of one aim that began with a trained model, newest first."""
    found = resources.run_store().list(session.owner())
    return [info for info in found if info.train.aim == aim and info.start]


def _key(aim: str) -> str:
    return f"tuning_run_{aim}"


def choose(aim: str) -> "RunInfo | None":
    """The run that is looked at; a control where there are several, the newest at first."""
    runs = {info.id: info for info in mine(aim)}
    if not runs:
        return None
    if st.session_state.get(_key(aim)) not in runs:
        st.session_state[_key(aim)] = next(iter(runs))
    if len(runs) == 1:
        return next(iter(runs.values()))
    chosen = st.selectbox(
        say("which"), list(runs), format_func=lambda run_id: _label(runs[run_id]) if run_id in runs else "",
        key=_key(aim), persist_state="session", width=420, label_visibility="collapsed",
    )  # fmt: skip
    return runs.get(chosen) or next(iter(runs.values()))


def _label(info: "RunInfo") -> str:
    return say("label", name=info.name, rate=f"{info.train.learning_rate:g}", steps=info.steps,
               seed=info.train.seed, state=state_name(info.state))  # fmt: skip


def start(aim: str, make: "Callable[[], RunSpec]") -> None:
    """Start the run that the settings describe. For `on_click`; pressed twice it is one run."""
    try:
        st.session_state[_key(aim)] = resources.run_store().start(make(), session.owner())
    except ValueError as error:
        run_choice.problem(str(error))


def head(aim: str, make: "Callable[[], RunSpec]", *, ready: bool) -> "RunInfo | None":
    """The row on top: Start, what can be done with the run that is looked at, and which that is.

    Args:
        aim: of the view.
        make: gives the run of the settings; asked when Start is pressed.
        ready: whether there can be such a run.

    Returns:
        The run that is looked at.
    """
    row = st.container(horizontal=True, vertical_alignment="center")
    info = choose(aim)
    idle = info is None or not info.active
    with row:
        st.button(
            say("start") if info is None else say("start_another"),
            key=f"tuning_start_{aim}",
            icon=":material/rocket_launch:",
            type="primary" if idle else "secondary",
            on_click=start,
            args=(aim, make),
            disabled=not ready,
        )
        if info is not None:
            run_player.draw(info)
    run_choice.show_problem()
    return info


def watch(info: "RunInfo") -> None:
    """Draw the run, anew each second while it is active."""
    curve_code(_curve_key(info.id))
    st.fragment(_draw, run_every=run_view.POLL_SECONDS.get(info.state))(info.id, _standing(info))
    with st.container(horizontal=True, vertical_alignment="center"):
        run_curve.take_away(info.id)
        nav.link("training", say("on_training_page"), run=info.id)


def _curve_key(run_id: str) -> str:
    return f"tuning_curve_{run_id}"


def _standing(info: "RunInfo") -> tuple[str, str, int | None]:
    return info.state, info.device, info.queue_place


def _draw(run_id: str, standing: tuple[str, str, int | None]) -> None:
    store = resources.run_store()
    try:
        info = store.info(run_id)
    except ValueError:  # deleted in another window
        st.rerun()
    if _standing(info) != standing:
        st.rerun()  # the comparison, and other buttons
    records = store.history(run_id)
    run_view.progress(info, records)
    if info.state == "failed":
        st.error(literal(info.message))
    elif info.diverged:
        st.error(say("diverged"))
    elif said := run_player.standing(info, store.slots):
        st.markdown(said)
    elif info.message:
        st.info(literal(info.message))
    live_curve(
        _series(info, records),
        references(info),
        key=_curve_key(run_id),
        with_code=False,
        y_title=say("axis.preferences") if info.train.aim == "preferences" else say("axis.tokens"),
        perplexity_axis=info.train.aim != "preferences",
        height=HEIGHT,
    )


def references(info: "RunInfo") -> list[viz.Reference]:
    """Where a preference starts, and the floor of the stories."""
    if info.train.aim == "preferences":
        return [viz.Reference(math.log(2), say("ln_2"), "start")]
    return []


def _series(info: "RunInfo", records: list[Record]) -> list[viz.Series]:
    """The loss of what is learned, each step and held out; of texts, also that of what was known before."""
    aim = info.train.aim
    steps, losses = reading.quantity(records, "loss")
    lines = [viz.Series(say(f"line.{aim}.train"), steps, losses, "train")]
    at, held_out = reading.quantity(records, "val_loss")
    if len(at):
        lines.append(viz.Series(say(f"line.{aim}.held_out"), at, held_out, "valid"))
    if aim == "preferences":
        return lines
    for look, name in zip(OTHERS, also_scored(records), strict=False):
        evals = also_scored(records)[name]
        title = say("line_old" if knew(info, name, evals[0][1]) else "line_other", text=old_title(name))
        lines.append(viz.Series(title, [step for step, _ in evals], [loss for _, loss in evals], look))
    return lines


def also_scored(records: list[Record]) -> dict[str, list[tuple[int, float]]]:
    """Texts that the model knew before, by name: steps and losses, in nats per token."""
    found: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        for name, loss in (record.get("also") or {}).items() if record["kind"] == "eval" else ():
            found.setdefault(name, []).append((record["step"], reading.number(loss)))
    return found


def knew(info: "RunInfo", name: str, loss: float) -> bool:
    """Whether a start knew a text: its own, or stories that cost it less than half of a blind guess.

    Args:
        info: the run.
        name: of the text.
        loss: of the start on it, nats per token.
    """
    return name != texts.NAMES["stories"] or loss < math.log(info.model.vocab_size) / 2


def old_title(name: str) -> str:
    """What a text that was known before is called."""
    return texts.title(name, "stories") if name == texts.NAMES["stories"] else name


def title_of(info: "RunInfo") -> str:
    """What the text of a run is called."""
    return texts.title(str(info.corpus["name"]), str(info.corpus["kind"]))


def first_and_last(records: list[Record]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The measurement before the first step, and the newest; None before there are two."""
    evals = [record for record in records if record["kind"] == "eval"]
    return (evals[0], evals[-1]) if len(evals) > 1 and evals[0]["step"] == 0 else None
