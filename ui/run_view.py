"""A run on the screen: how far it is, how it reads, its curve and its numbers; anew each second."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import viz
from engine import reading, retention
from engine.parameter_parts import parameter_count
from engine.reading import Reading, Record
from engine.verdict import Verdict, verdict
from ui import model_refs, resources, run_curve, run_lesson, run_player, session
from ui.components import live_curve
from ui.run_seen import Seen, seen
from ui.vocabularies import called
from ui.words import STATES, day, duration, literal, objective_name, state_name
from ui.worked import tie
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo

say = words("ui.run_view")

POLL_SECONDS = {"queued": 1.0, "starting": 0.5, "running": 1.0, "paused": 1.0}
SLOWLY = 5.0  # seconds until what it writes and the worked numbers are drawn anew
HIGHER = 0.02  # nats of the training loss above the validation loss, from which on it is explained
SIGNS = {
    "overfitting": ":orange[:material/trending_up:]",
    "diverged": ":red[:material/warning:]",
    "not-finite": ":red[:material/warning:]",
    "floor": ":green[:material/flag:]",
    "plateau": ":material/trending_flat:",
    "learning": ":green[:material/trending_down:]",
}


def watch(info: "RunInfo", below: DeltaGenerator) -> None:
    """Draw a run: how far it is and its curve anew each second while it is active, the rest now and then.

    The controls stand outside of what is drawn anew: thirty people who watch cost a third less.

    Args:
        info: the run.
        below: place further down for what it writes and the worked numbers.
    """
    run_curve.prepare(info.id)
    head = st.container()
    picture, side = st.columns([5, 2], gap="medium")
    with picture:
        run_curve.choose()
    numbers = side.container()
    with side:
        run_curve.controls(info)
    now, lesson = run_curve.PARTS
    every = POLL_SECONDS.get(info.state)
    with picture:
        st.fragment(_draw, run_every=every, key=now)(info.id, _standing(info), head, numbers)
    with below:
        st.fragment(_below, run_every=every and SLOWLY, key=lesson)(info.id)


def _standing(info: "RunInfo") -> tuple[str, str, int | None]:
    return info.state, info.device, info.queue_place


def _draw(
    run_id: str, standing: tuple[str, str, int | None], head: DeltaGenerator, numbers: DeltaGenerator
) -> None:
    """What changes all the time. Places outside are written to in every run, else the next one has none."""
    info, records = _now(run_id)
    if _standing(info) != standing:
        st.rerun()  # other buttons, another pace, and the sidebar may have a new model
    found = seen(run_id, records, info.n_choices)
    with head:
        progress(info, records)
        _say(info, found)
    with numbers:
        _numbers(info, found.reading)
    run_curve.draw(
        info,
        found,
        run_curve.look(info),
        cursor=run_lesson.chosen(run_id),
        on_point=lambda step: run_lesson.choose(run_id, step),
    )


def _below(run_id: str) -> None:
    """What changes with each measurement at most."""
    info, records = _now(run_id)
    found = seen(run_id, records, info.n_choices)
    st.caption(_facts(info))
    if found.reading is not None and (why := _why_training_is_higher(info, found.reading)):
        st.caption(why)
    if info.may_read(session.owner()):
        run_lesson.samples(found.samples)
    else:
        st.caption(say("not_yours_to_read"))
    if found.reading is not None:
        run_lesson.worked(info, records, found.reading)


def _now(run_id: str) -> "tuple[RunInfo, list[Record]]":
    """How a run stands, and all of its records."""
    store = resources.run_store()
    try:
        return store.info(run_id), store.history(run_id)
    except ValueError:  # deleted in another window
        st.rerun()


def progress(info: "RunInfo", records: list[Record]) -> None:
    """What run this is and how far: a bar with the step, the time, the speed and the energy."""
    color, icon = STATES[info.state]
    facts = [f":{color}-badge[{icon} {state_name(info.state)}] **{literal(info.name)}**"]
    facts.append(say("step", step=viz.format_count(info.step), steps=viz.format_count(info.steps)))
    if info.active and info.eta_s is not None:
        facts.append(say("left", time=duration(info.eta_s)))
    elif spent := max((r["seconds"] for r in records if r["kind"] in ("step", "eval")), default=0.0):
        facts.append(say("of_training", time=duration(spent)))
    if info.tokens_per_second:
        facts.append(say("tokens_a_second", n=round(info.tokens_per_second)))
    if info.joules is not None:
        facts.append(f"{viz.format_number(info.joules / 3600)} Wh")
    st.progress(min(1.0, info.step / max(1, info.steps)), text=" · ".join(facts))


def _facts(info: "RunInfo") -> str:
    device = "GPU" if info.device.startswith("cuda") else info.device.upper()
    facts = [objective_name(info.measure), literal(called(info.tokenizer))]
    facts += [say("starts_from", name=literal(info.start))] if info.start else []
    facts.append(say("parameters", n=parameter_count(info.model)))
    facts += [say("mix_previous")] if info.model.mix_previous else []
    facts += ["bfloat16"] if info.train.precision == "bfloat16" else []
    facts += [device] if device else []
    facts += [say("energy")] if info.joules is not None else []
    return " · ".join(facts)


def _why_training_is_higher(info: "RunInfo", now: Reading) -> str:
    """Where validation below training comes from, as it looks like a mistake; "" where it needs no word."""
    anywhere = 1 - info.train.aligned_share
    if not 0 < anywhere < 1 or info.model.objective != "clm" or now.val_loss is None:
        return ""
    if now.train_loss < now.val_loss + HIGHER:
        return ""
    return say("why_training_is_higher", anywhere=anywhere)


def _numbers(info: "RunInfo", now: Reading | None) -> None:
    """The numbers of the newest evaluation."""
    masked = info.model.objective == "mlm"
    name = say(f"loss.{info.measure}")
    if now is not None and now.val_loss is None and not masked:
        name = say("training_loss")
    blank = "–"
    gap = blank if now is None or now.gap is None else viz.format_number(now.gap)
    with st.grid(1 if masked else 2, min_column_width=90, gap="small"):
        st.metric(name, blank if now is None else viz.format_number(now.loss, _digits(now)))
        if info.measure == "preferences":
            margin, right = (None, None) if now is None else (now.margin, now.accuracy)
            st.metric(say("margin"), blank if margin is None else viz.format_number(margin))
            st.metric(say("accuracy"), blank if right is None else f"{right:.0%}")
            return
        perplexity = blank if now is None else viz.format_perplexity(now.perplexity)
        st.metric(say("masked_perplexity") if masked else say("perplexity"), perplexity)
        if now is not None and now.gap is not None or info.corpus["kind"] == "stories":
            st.metric(say("above_floor"), gap)
        if info.measure == "clm":
            bits = None if now is None else now.bits_per_byte
            st.metric(say("bits_per_byte"), blank if bits is None else viz.format_number(bits))


def _digits(now: Reading) -> int:
    """Of the loss: so many that e to its power is the perplexity beside it."""
    return tie(math.exp, now.loss, digits=3) if math.isfinite(now.perplexity) else 3


def _say(info: "RunInfo", found: Seen) -> None:
    """The state in words: what happened, and how the curve reads."""
    now, bad = found.reading, found.bad_steps
    if info.state == "failed":
        st.error(literal(info.message))
    elif bad:
        steps = ", ".join(f"{step:,}" for step in bad[:5]) + (" …" if len(bad) > 5 else "")
        st.error(say("not_finite", steps=steps))
    standing = run_player.standing(info, resources.run_store().slots)
    if standing:
        st.markdown(standing)
    elif info.message and info.state != "failed":
        st.info(literal(info.message))
    if info.due is not None and (days := retention.keep_days()):
        st.caption(say("will_be_deleted", n=round(days), day=day(info.due)))
    notices = [r["message"] for r in found.notices if r["message"] != info.message]
    for notice in notices[-2:]:
        st.caption(literal(notice))
    if info.state in ("running", "paused", "stopped", "finished") and (now is not None or not info.active):
        st.markdown(_with_sign(_verdict(info, now)))


def _verdict(info: "RunInfo", now: Reading | None) -> Verdict:
    done = not info.active
    said = verdict(now, info.n_choices, done=done, objective=info.measure, start=info.start)
    if said.kind == "start" and info.step and not done:
        following = say("next_measurement", step=info.train.eval_every)
        return Verdict("learning", f"{said.words} {following}")
    return said


def _with_sign(said: Verdict) -> str:
    return f"{SIGNS.get(said.kind, '')} {said.words}".strip()


def before_the_first_run(objective: str) -> None:
    """Something to look at before there is a run: how the shipped model learned, and how far it came."""
    shipped = next((ref for ref in model_refs.shipped_models() if ref.objective == objective), None)
    records, vocab_size = ([], 512) if shipped is None else _how_it_learned(Path(shipped.folder))
    lines, now = reading.curves(records), reading.read(records, vocab_size)
    st.markdown(say("no_run_yet"))
    if shipped is not None and now is not None and now.gap is not None:
        st.caption(
            say(
                "until_then",
                name=literal(shipped.name),
                n_params=shipped.n_params,
                loss=now.loss,
                step=now.step,
                gap=now.gap,
            )
        )
    series = [viz.Series(say("loss_of_shipped"), lines.eval_steps, lines.val_losses, "valid")]
    marks = [viz.Reference(math.log(vocab_size), say("guessing"), "start")]
    if now is not None and now.floor:
        marks.append(viz.Reference(now.floor, say("floor"), "floor"))
    live_curve(
        series if records else [],
        marks,
        key="training_curve",
        objective=objective,
        y_title=run_curve.y_title("loss", objective),
        height=run_curve.HEIGHT,
    )


def _how_it_learned(folder: Path) -> tuple[list[Record], int]:
    """The records of a shipped model and its vocabulary size, from its folder."""
    from engine.checkpoint_files import read_description
    from engine.records import read_records

    try:
        vocab_size = int(read_description(folder)["model"]["vocab_size"])
    except ValueError:
        return [], 512
    return read_records(folder / "metrics.jsonl")[0], vocab_size
