"""A run on the screen: its numbers, its curve, and how they read; anew each second while it learns."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import viz
from engine import reading
from engine.plan import parameter_count
from engine.reading import Curves, Reading, Record
from ui import resources, run_lesson, session
from ui.components import live_curve
from ui.lesson import literal
from ui.words import LOSS_NAMES, OBJECTIVES, STATES, duration

if TYPE_CHECKING:
    from engine.runs import RunInfo

POLL_SECONDS = {"queued": 1.0, "starting": 0.5, "running": 1.0}


def watch(info: "RunInfo", above: DeltaGenerator, below: DeltaGenerator) -> None:
    """Draw a run, anew each second while it is active.

    Args:
        info: the run.
        above: place over the picture for the big numbers.
        below: place under the picture for its samples and the worked numbers.
    """
    st.fragment(_draw, run_every=POLL_SECONDS.get(info.state))(info.id, _standing(info), above, below)


def _standing(info: "RunInfo") -> tuple[str, str, int | None]:
    return info.state, info.device, info.queue_place


def _draw(
    run_id: str, standing: tuple[str, str, int | None], above: DeltaGenerator, below: DeltaGenerator
) -> None:
    store = resources.run_store()
    try:
        info = store.info(run_id)
    except ValueError:  # deleted in another window
        st.rerun()
    if _standing(info) != standing:
        st.rerun()  # other buttons, another pace, and the sidebar may have a new model
    records = store.history(run_id)
    lines, now, bad = _read(run_id, str(records[-1:]), len(records), records, info.model.vocab_size)
    for place in (above, below):
        place.empty()  # a place outside must be written to in every run, or it is lost to the next
    with above:
        _numbers(info, records, now)
    _say(info, records, now, bad)
    _curve(info, lines, now)
    run_lesson.samples(records)
    if now is not None:
        with below:
            run_lesson.worked(info, records, now)


@st.cache_resource(max_entries=64, show_spinner=False)
def _read(
    run_id: str, last: str, n_records: int, _records: list[Record], vocab_size: int
) -> tuple[Curves, Reading | None, list[int]]:
    """What the records say: computed once for all who watch."""
    return reading.curves(_records), reading.read(_records, vocab_size), reading.bad_steps(_records)


def headline(info: "RunInfo") -> None:
    """What run this is, and how it stands."""
    color, icon = STATES[info.state]
    word = info.state
    if info.state == "queued" and info.queue_place:
        waiting = sum(other.state == "queued" for other in resources.run_store().list())
        word = f"queued: place {info.queue_place} of {waiting}"
    st.markdown(
        f":{color}-badge[{icon} {word}] **{literal(info.name)}**  \n"
        f":small[{OBJECTIVES[info.model.objective]} · {literal(info.tokenizer)}"
        f" · {viz.format_count(parameter_count(info.model))} parameters{_device(info.device)}]"
    )


def _device(name: str) -> str:
    return f" · {'GPU' if name.startswith('cuda') else name.upper()}" if name else ""


def _numbers(info: "RunInfo", records: list[Record], now: Reading | None) -> None:
    """The big numbers."""
    loss = math.nan if now is None else now.loss
    masked = info.model.objective == "mlm"
    name = (
        LOSS_NAMES[info.model.objective]
        if now is None or now.val_loss is not None or masked
        else "Training loss"
    )
    blank = "–"
    speed = f"{viz.format_number(info.tokens_per_second)}" if info.tokens_per_second else blank
    spent = max((r["seconds"] for r in records if r["kind"] in ("step", "eval")), default=0.0)
    left = duration(info.eta_s) if info.eta_s is not None else blank
    gap = blank if now is None or now.gap is None else viz.format_number(now.gap)
    with st.grid(6, min_column_width=120, gap="small"):
        st.metric(f"Step of {viz.format_count(info.steps)}", viz.format_count(info.step))
        st.metric(name, blank if now is None else viz.format_number(loss))
        perplexity = blank if now is None else viz.format_perplexity(now.perplexity)
        st.metric("Perplexity" if not masked else "Masked perplexity", perplexity)
        st.metric("Above the floor", gap)
        st.metric("Tokens a second", speed)
        st.metric(
            *("Time left", left) if info.active else ("Training time", duration(spent) if spent else blank)
        )


def _say(info: "RunInfo", records: list[Record], now: Reading | None, bad: list[int]) -> None:
    """The state in words: what happened, and how the curve reads."""
    if info.state == "failed":
        st.error(literal(info.message))
    elif bad:
        steps = ", ".join(f"{step:,}" for step in bad[:5]) + (" …" if len(bad) > 5 else "")
        st.error(
            f"The loss was not a finite number at step {steps}: a gap in the curve. "
            "A smaller learning rate helps."
        )
    elif info.message:
        st.info(literal(info.message))
    for notice in [r["message"] for r in records if r["kind"] == "notice" and r["message"] != info.message][
        -2:
    ]:
        st.caption(literal(notice))
    if info.state == "starting":
        st.markdown("Starting: the first numbers come in a few seconds.")
    elif info.state == "queued":
        st.markdown("Waiting for its turn: so many runs are training that this one would slow them all.")
    elif info.state != "failed" and (now is not None or not info.active):
        st.markdown(reading.verdict(now, info.model.vocab_size, done=not info.active))


def _curve(info: "RunInfo", lines: Curves, now: Reading | None) -> None:
    """The picture: losses, where guessing starts, and the floor."""
    objective = info.model.objective
    series = [viz.Series("training loss, each step", lines.steps, lines.losses, "train")]
    if len(lines.eval_steps):
        series.append(viz.Series("validation loss", lines.eval_steps, lines.val_losses, "valid"))
    picture = st.container()
    other = _compared(info)
    if other is not None:
        theirs = reading.curves(resources.run_store().history(other.id))
        both = (
            (theirs.eval_steps, theirs.val_losses)
            if len(theirs.eval_steps)
            else (theirs.steps, theirs.losses)
        )
        series.append(viz.Series(other.name, *both, "other"))
    with picture:
        _draw_curve(f"training_curve_{info.id}", objective, series, info.model.vocab_size, now)


def _draw_curve(
    key: str, objective: str, series: list[viz.Series], vocab_size: int, now: Reading | None
) -> None:
    marks = [viz.Reference(math.log(vocab_size), "ln V: guessing uniformly", "start")]
    if now is not None and now.floor:
        marks.append(viz.Reference(now.floor, "the floor: no model can beat this", "floor"))
    y_title = "loss (nats per token)" if objective == "clm" else "masked-token loss (nats)"
    live_curve(series, marks, key=key, objective=objective, y_title=y_title, height=310)


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
        placeholder="compare with another run of the same text",
        label_visibility="collapsed",
    )
    return others.get(chosen or "")


def _label(info: "RunInfo") -> str:
    config = info.train
    return (
        f"{info.name} · {config.optimizer} {config.learning_rate:g} · {info.steps} steps · seed {config.seed}"
    )


def before_the_first_run(objective: str) -> None:
    """Something to look at before there is a run: how the shipped model learned, and how far it came."""
    shipped = next((ref for ref in resources.shipped_models() if ref.objective == objective), None)
    records, vocab_size = ([], 512) if shipped is None else _how_it_learned(Path(shipped.folder))
    lines, now = reading.curves(records), reading.read(records, vocab_size)
    st.markdown("**No run yet.** Start training makes a small model of made-up stories, in about a minute.")
    if shipped is not None and now is not None and now.gap is not None:
        st.caption(
            f"Until then, the shipped model {literal(shipped.name)} ({viz.format_count(shipped.n_params)} "
            f"parameters): {now.loss:.3f} nats at step {now.step:,}, {now.gap:.3f} above the floor."
        )
    series = [viz.Series("validation loss of the shipped model", lines.eval_steps, lines.val_losses, "valid")]
    _draw_curve("training_curve", objective, series if records else [], vocab_size, now)


def _how_it_learned(folder: Path) -> tuple[list[Record], int]:
    """The records of a shipped model and its vocabulary size, from its folder."""
    from engine.checkpoints import read_description
    from engine.records import read_records

    try:
        vocab_size = int(read_description(folder)["model"]["vocab_size"])
    except ValueError:
        return [], 512
    return read_records(folder / "metrics.jsonl")[0], vocab_size
