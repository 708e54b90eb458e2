"""One's own runs of a study: start them, stop them, go on, and watch them learn."""

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

import viz
from engine import experiments
from engine.outcomes import Outcome, label_name, newest, outcomes
from engine.plan import Timing
from ui import resources, session
from ui.components import curve_code, live_curve
from ui.experiment_words import words_of
from ui.words import STATES, duration, literal, state_name
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo, RunSpec

say = words("ui.experiment_runs")

_PROBLEM = "_experiments_problem"
POLL_SECONDS = 1.0


def mine(study: str) -> "list[RunInfo]":
    """This person's newest runs of a study, in the order of its labels; none that came out of a zip."""
    infos = resources.run_store().list(session.owner())
    infos = [info for info in infos if experiments.study_of(info.group) == study and not info.imported]
    if not infos:
        return []
    return newest([i for i in infos if i.group == infos[0].group], experiments.labels(study))


def seconds(specs: "list[RunSpec]") -> float:
    """How long runs will take here, judged by the runs on this machine."""
    store = resources.run_store()
    timed = [info for info in store.list() if info.tokens_per_second][:5]
    timings = [Timing(info.model, info.train, info.tokens_per_second or 1.0) for info in timed]
    return experiments.study_seconds(specs, store.slots, timings)


def problem(message: str) -> None:
    """Remember a sentence that the page shows once, in its next run."""
    st.session_state[_PROBLEM] = message


def _start(specs: "list[RunSpec]") -> None:
    named = [replace(spec, name=_name(spec)) for spec in specs]
    try:
        resources.run_store().start_many(named, session.owner())
    except ValueError as error:
        problem(str(error))


def _name(spec: "RunSpec") -> str:
    """What the run is called in the list of runs."""
    study = words_of(experiments.study_of(spec.group)).title
    return say("run", study=study, run=label_name(spec.label))


def start(study: str, seed: int) -> None:
    """Start all runs of a study. For `on_click`; pressed twice it is one study."""
    _start(list(experiments.study_specs(study, seed)))


def start_larger(study: str, seed: int) -> None:
    """Start the run that was foretold. For `on_click`."""
    spec = experiments.larger_spec(study, seed)
    assert spec is not None  # only a study with one has the button
    _start([spec])


def stop(group: str) -> None:
    """Stop the runs of a study; each keeps what it has learned. For `on_click`."""
    try:
        resources.run_store().stop_group(group, session.owner())
    except ValueError as error:  # the disk is full
        problem(str(error))


def done(info: "RunInfo") -> bool:
    """Whether a run is a result. One that diverged is one; one that was killed is not."""
    return info.state == "finished" or info.diverged


def unfinished(study: str, own: "list[RunInfo]") -> bool:
    """Whether a study was begun and neither runs nor is done."""
    waits = any(info.can_resume for info in own) or not _all_there(study, own)
    return bool(own) and waits and not any(info.active for info in own)


def _all_there(study: str, own: "list[RunInfo]") -> bool:
    there = {info.label for info in own} | {experiments.LARGER}
    return there >= set(experiments.labels(study))


def go_on(study: str) -> None:
    """Resume what was stopped or killed, and make again what was deleted. For `on_click`."""
    own, store = mine(study), resources.run_store()
    try:
        for info in own:
            if info.can_resume:
                store.resume(info.id, session.owner())
    except ValueError as error:
        problem(str(error))
    there = {info.label for info in own}
    specs = experiments.study_specs(study, own[0].train.seed)
    if missing := [spec for spec in specs if spec.label not in there]:
        _start(missing)


def show_problem() -> None:
    """Draw what kept a run from starting, or a prediction from being kept."""
    if message := st.session_state.pop(_PROBLEM, ""):
        st.error(literal(message))


def watch(study: str, own: "list[RunInfo]", *, curves: bool) -> None:
    """The runs as they learn, anew each second; without curves they give nothing away."""
    for name in ("clm", "mlm") if study == "objectives" else (study,):
        curve_code(_curve_key(name))
    st.fragment(_live, run_every=POLL_SECONDS)(study, _standing(own), curves)


def _standing(own: "list[RunInfo]") -> tuple[tuple[str, str], ...]:
    return tuple((info.id, info.state) for info in own)


def _live(study: str, standing: tuple[tuple[str, str], ...], curves: bool) -> None:
    own = mine(study)
    if _standing(own) != standing:
        st.rerun()  # a run ended or began: other buttons, or the result
    _progress(own)
    if curves:
        draw_curves(study, outcomes(resources.run_store(), own), with_code=False)


def _progress(own: "list[RunInfo]") -> None:
    """A bar for each run, and how long it will be."""
    waiting = sum(info.state == "queued" for info in own)
    at_work = [info.eta_s for info in own if info.active and info.state != "queued"]
    left = max((eta for eta in at_work if eta is not None), default=0.0) if None not in at_work else 0.0
    said = [say("runs_done", done=sum(map(done, own)), n=len(own))]
    if broken := sum(info.state == "failed" and not done(info) for info in own):
        said.append(say("broke_off", n=broken))
    if waiting:
        said.append(say("waiting", n=waiting))
    sentences = [", ".join(said) + "."]
    if left:
        sentences.append(say("need_more", time=duration(left)))
    st.caption(" ".join(sentences))
    with st.grid(3, min_column_width=200, gap="small"):
        for info in own:
            word = state_name(info.state)
            if info.state == "queued" and info.queue_place:
                word = say("place_in_queue", place=info.queue_place)
            icon = STATES[info.state][1]
            share = min(1.0, info.step / info.steps)
            told = say("step", state=word, step=info.step, steps=info.steps)
            st.progress(share, text=f"{icon} {literal(label_name(info.label))}: {told}")


def curve_lines(study: str, runs: list[Outcome]) -> tuple[list[tuple[str, list[int], list[float]]], str]:
    """The lines of a study's curves with their names, and the title of their values."""
    if study == "tokenizer":
        return [(run.name, *run.line("bits_per_byte")) for run in runs], say("bits_per_byte")
    title = say("loss_on_fresh_axis")
    lines = [(run.name, *run.line("val_loss")) for run in runs]
    if study == "held-out":
        counts = [run.label.split()[0] for run in runs]
        names = [say("on_training", n=n) for n in counts]
        lines = [(say("on_fresh", n=n), *run.line("val_loss")) for n, run in zip(counts, runs, strict=True)]
        lines += [(name, *run.line("train_loss")) for name, run in zip(names, runs, strict=True)]
        title = say("loss_per_token")
    return lines, title


def _curve_key(name: str) -> str:
    """Of the curve of a study, or of an objective."""
    return f"experiments_live_{name}"


def draw_curves(study: str, runs: list[Outcome], *, with_code: bool = True) -> None:
    """How the runs learn; the two objectives each on axes of their own."""
    if study == "objectives":
        for column, run in zip(st.columns(2), runs, strict=False):
            with column:
                _one_curve(run, with_code)
        return
    lines, title = curve_lines(study, runs)
    floor = next((run.floor for run in runs if run.floor == run.floor), None)
    marks = [viz.Reference(floor, say("the_floor"), "floor")] if floor and study != "tokenizer" else []
    series = [viz.Series(name, x, y, f"run {i}") for i, (name, x, y) in enumerate(lines)]
    live_curve(
        series, marks, key=_curve_key(study), y_title=title, height=300, with_code=with_code,
        log_y=study == "learning-rate", perplexity_axis=False,
        unit=say("bits_per_byte") if study == "tokenizer" else None,
    )  # fmt: skip


def _one_curve(run: Outcome, with_code: bool) -> None:
    objective = run.model.objective
    marks = [viz.Reference(run.floor, say("its_floor"), "floor")] if run.floor == run.floor else []
    st.markdown(f"**{literal(run.name)}**")
    live_curve(
        [viz.Series(say("loss_on_fresh"), *run.line("val_loss"), role="valid")], marks,
        key=_curve_key(objective), objective=objective, height=280, with_code=with_code,
        y_title=say("loss_per_token") if objective == "clm" else say("loss_per_hidden_token"),
    )  # fmt: skip
