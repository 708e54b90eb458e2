"""One run on the screen: its numbers, its curve, what it writes, and the buttons that stop it or go on."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import viz
from engine import reading
from engine.plan import parameter_count
from engine.reading import Reading, Record
from ui import nav, resources, session
from ui.components import live_curve
from ui.lesson import literal
from ui.words import STATES, duration
from ui.worked import rounded, tex, tie

if TYPE_CHECKING:
    from engine.runs import RunInfo

_SHOWN, _IN_ADDRESS, _PROBLEM = "_training_run", "_training_run_in_address", "_training_problem"
DIGITS = 4  # significant, of a worked result
POLL_SECONDS = {"queued": 1.0, "starting": 0.5, "running": 1.0}
LOSS_NAMES = {"clm": "Validation loss", "mlm": "Masked loss"}
UNITS = {"clm": "nats per token", "mlm": "nats per hidden token"}
OBJECTIVES = {"clm": "next token", "mlm": "hidden tokens"}


# ---- which run


def show(run_id: str | None) -> None:
    """Look at a run. For `on_click`."""
    st.session_state[_SHOWN] = run_id


def forget(run_id: str) -> None:
    """Don't look at a run any more that has been deleted."""
    if st.session_state.get(_SHOWN) == run_id:
        st.session_state[_SHOWN] = st.session_state[_IN_ADDRESS] = None
        st.query_params.pop("run", None)


def shown() -> "RunInfo | None":
    """The run to show: the one in the address, else the one looked at last, else this person's newest."""
    state, linked = st.session_state, st.query_params.get("run")
    if linked and linked != state.get(_IN_ADDRESS):
        state[_SHOWN] = linked  # opened from a link, after a reload, or with the browser's Back
    info = _find(state.get(_SHOWN))
    if info is None:
        mine = resources.run_store().list(session.owner())
        info = next((i for i in mine if i.active), mine[0] if mine else None)
    wanted = info.id if info else None
    if wanted and wanted != linked:
        st.query_params["run"] = wanted
    elif linked and not wanted:
        del st.query_params["run"]
    state[_IN_ADDRESS] = wanted
    return info


def _find(run_id: str | None) -> "RunInfo | None":
    if not run_id:
        return None
    try:
        return resources.run_store().info(run_id)
    except ValueError as error:
        show(None)
        problem(str(error))
        return None


def problem(message: str) -> None:
    """Remember a sentence that the page shows once, in its next run."""
    st.session_state[_PROBLEM] = message


def show_problem() -> None:
    """Draw the sentence of `problem`."""
    message = st.session_state.pop(_PROBLEM, "")
    if message:
        st.error(literal(message))


# ---- what can be done with it


def attempt(action: str, run_id: str, **options: Any) -> None:
    """Stop, resume or delete a run; what forbids it becomes a sentence on the page. For `on_click`."""
    try:
        getattr(resources.run_store(), action)(run_id, session.owner(), **options)
    except (ValueError, PermissionError) as error:
        problem(str(error))


def buttons(info: "RunInfo") -> None:
    """What its owner can do with a run; anybody else learns that they can only watch."""
    if not info.owned_by(session.owner()):
        st.caption("Somebody else’s run: watch only.")
        return
    if info.active:
        st.button("Stop", key="training_stop", icon=":material/stop:", on_click=attempt, args=("stop", info.id))
        return
    more = max(100, info.train.steps // 2)
    if info.state == "finished":
        st.button(
            f"{more} more steps",
            key="training_extend",
            icon=":material/fast_forward:",
            on_click=attempt,
            args=("resume", info.id),
            kwargs={"steps": info.steps + more},
        )
    elif info.can_resume:
        st.button("Resume", key="training_resume", icon=":material/play_arrow:", on_click=attempt, args=("resume", info.id))
    if info.has_checkpoint:
        use = f"run:{info.id}"
        chosen = session.model()
        if chosen is not None and chosen.id == use:
            nav.link("generation" if info.model.objective == "clm" else "masking", "Look inside it")
        else:
            st.button(
                "Look inside", key="training_use", icon=":material/search:", on_click=session.choose_model, args=(use,)
            )


# ---- what there is to see


def watch(info: "RunInfo", above: DeltaGenerator, below: DeltaGenerator) -> None:
    """Draw a run, anew each second while it is active.

    Args:
        above: place over the picture for the big numbers.
        below: place under the picture for its samples and the worked numbers.
    """
    st.fragment(_draw, run_every=POLL_SECONDS.get(info.state))(info.id, _standing(info), above, below)


def _standing(info: "RunInfo") -> tuple[str, int | None]:
    return info.state, info.queue_place


def _draw(run_id: str, standing: tuple[str, int | None], above: DeltaGenerator, below: DeltaGenerator) -> None:
    store = resources.run_store()
    try:
        info = store.info(run_id)
    except ValueError:  # deleted in another window
        st.rerun()
    if _standing(info) != standing:
        st.rerun()  # other buttons, another pace, and the sidebar may have a new model
    records = store.history(run_id)
    now = reading.read(records, info.model.vocab_size)
    for place in (above, below):
        place.empty()  # a place outside must be written to in every run, or it is lost to the next
    with above:
        _numbers(info, records, now)
    _say(info, records, now)
    _curve(info, records, now)
    _samples(records)
    if now is not None:
        with below:
            _worked(info, records, now)


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
        f" · {viz.format_count(parameter_count(info.model))} parameters]"
    )


def _numbers(info: "RunInfo", records: list[Record], now: Reading | None) -> None:
    """The big numbers."""
    loss = math.nan if now is None else now.loss
    masked = info.model.objective == "mlm"
    name = LOSS_NAMES[info.model.objective] if now is None or now.val_loss is not None or masked else "Training loss"
    blank = "–"
    speed = f"{viz.format_number(info.tokens_per_second)}" if info.tokens_per_second else blank
    spent = max((r["seconds"] for r in records if r["kind"] in ("step", "eval")), default=0.0)
    left = duration(info.eta_s) if info.eta_s is not None else blank
    gap = blank if now is None or now.gap is None else viz.format_number(now.gap)
    with st.grid(6, min_column_width=104, gap="small"):
        st.metric(f"Step of {viz.format_count(info.steps)}", viz.format_count(info.step))
        st.metric(name, blank if now is None else viz.format_number(loss))
        perplexity = blank if now is None else viz.format_perplexity(now.perplexity)
        st.metric("Perplexity" if not masked else "Masked perplexity", perplexity)
        st.metric("Above the floor", gap)
        st.metric("Tokens a second", speed)
        st.metric(*("Time left", left) if info.active else ("Training time", duration(spent)))


def _say(info: "RunInfo", records: list[Record], now: Reading | None) -> None:
    """The state in words: what happened, and how the curve reads."""
    bad = reading.bad_steps(records)
    if info.state == "failed":
        st.error(literal(info.message))
    elif bad:
        steps = ", ".join(f"{step:,}" for step in bad[:5]) + (" …" if len(bad) > 5 else "")
        st.error(f"The loss was not a finite number at step {steps}: a gap in the curve. A smaller learning rate helps.")
    elif info.message:
        st.info(literal(info.message))
    for notice in [r["message"] for r in records if r["kind"] == "notice" and r["message"] != info.message][-2:]:
        st.caption(literal(notice))
    if info.state == "starting":
        st.markdown("Starting: the first numbers come in a few seconds.")
    elif info.state == "queued":
        st.markdown("Waiting for its turn: so many runs are training that this one would slow them all.")
    elif now is not None or not info.active:
        st.markdown(reading.verdict(now, info.model.vocab_size, done=not info.active))


def _curve(info: "RunInfo", records: list[Record], now: Reading | None) -> None:
    """The picture: losses, where guessing starts, and the floor."""
    objective = info.model.objective
    lines = reading.curves(records)
    series = [viz.Series("training loss, each step", lines.steps, lines.losses, "train")]
    if len(lines.eval_steps):
        series.append(viz.Series("validation loss", lines.eval_steps, lines.val_losses, "valid"))
    other = _compared(info)
    if other is not None:
        theirs = reading.curves(resources.run_store().history(other.id))
        series.append(viz.Series(other.name, theirs.eval_steps, theirs.val_losses, "other"))
    start = viz.Reference(math.log(info.model.vocab_size), "ln V: guessing uniformly", "start")
    floor = [viz.Reference(now.floor, "the floor: no model can beat this", "floor")] if now and now.floor else []
    live_curve(
        series,
        [start, *floor],
        key=f"training_curve_{info.id}",
        objective=objective,
        y_title=_y_title(objective),
        height=270,
    )


def _y_title(objective: str) -> str:
    return f"{'loss' if objective == 'clm' else 'masked-token loss'} ({UNITS[objective]})"


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
        placeholder="another run of the same text and vocabulary",
        label_visibility="collapsed",
    )
    return others.get(chosen or "")


def _label(info: "RunInfo") -> str:
    config = info.train
    return f"{info.name} · {config.optimizer} {config.learning_rate:g} · {info.steps} steps · seed {config.seed}"


def before_the_first_run(objective: str) -> None:
    """Something to look at before there is a run: how far the shipped model has come, and where a run will begin."""
    shipped = next((ref for ref in resources.shipped_models() if ref.objective == objective), None)
    report, records = ({}, []) if shipped is None else _how_it_was_made(Path(shipped.folder))
    st.markdown("**No run yet.** Start training makes a small model of made-up stories, in about a minute.")
    marks = [viz.Reference(math.log(512), "ln V: guessing uniformly", "start")]
    if shipped is not None and report:
        marks.append(viz.Reference(report["floor"], "the floor: no model can beat this", "floor"))
        if not records:
            marks.append(viz.Reference(report["loss"], f"shipped model after {shipped.step:,} steps", "other"))
        st.caption(
            f"The shipped model {literal(shipped.name)}, {viz.format_count(shipped.n_params)} parameters, has come to "
            f"{report['loss']:.3f} nats, {report['loss'] - report['floor']:.3f} above the floor."
        )
    lines = reading.curves(records)
    series = [viz.Series("validation loss of the shipped model", lines.eval_steps, lines.val_losses, "valid")]
    live_curve(series if records else [], marks, key="training_curve", objective=objective, y_title=_y_title(objective), height=270)


def _how_it_was_made(folder: Path) -> tuple[dict[str, float], list[Record]]:
    """What a shipped model's folder says of its loss, and its curve if that is there."""
    from engine.checkpoints import read_description
    from engine.records import read_records

    try:
        report = read_description(folder)["info"].get("report") or {}
    except ValueError:
        report = {}
    complete = all(isinstance(report.get(name), float) for name in ("loss", "floor"))
    return report if complete else {}, read_records(folder / "metrics.jsonl")[0]


# ---- below the picture


def _samples(records: list[Record]) -> None:
    """What it wrote: now, half-way, at the start. Word for word, whatever signs are in it."""
    samples = [r for r in records if r["kind"] == "sample"]
    if not samples:
        return
    st.subheader("What it writes" if "prompt" in samples[-1] else "What it fills in")
    chosen = {len(samples) - 1: None, len(samples) // 2: None, 0: None}
    for index in chosen:
        record = samples[index]
        step, said = st.columns([1, 5])
        step.markdown(f"**step {viz.format_count(record['step'])}**")
        with said:
            _sample(record)


def _sample(record: Record) -> None:
    if "prompt" in record:
        prompt = record["prompt"]
        st.text(prompt + record["text"])
        return
    for name, what in (("asked", "masked"), ("filled in", "text"), ("true", "truth")):
        st.text(f"{name}: {record[what].strip()}")


def _worked(info: "RunInfo", records: list[Record], last: Reading) -> None:
    """Loss, perplexity and bits per byte with the run's numbers."""
    st.subheader("The numbers, worked out")
    now = last
    steps = [r["step"] for r in records if r["kind"] == "eval"]
    if not info.active and len(steps) > 1:
        chosen = st.select_slider("At step", steps, value=steps[-1], key=f"training_step_{info.id}")
        now = reading.read(records, info.model.vocab_size, chosen) or last
    if not math.isfinite(now.perplexity):
        st.markdown("The loss is not finite here, or too large: its perplexity is beyond all numbers.")
        return
    left, right = st.columns(2)
    with left:
        _worked_now(info, now)
    with right:
        _worked_start(info, now)


def _worked_now(info: "RunInfo", now: Reading) -> None:
    digits = tie(math.exp, now.loss, digits=DIGITS)
    which = "validation text" if now.val_loss is not None else "training text"
    st.markdown(f"At step {now.step:,} a token of the {which} costs {tex(now.loss, digits)} nats on average.")
    name = viz.perplexity_name(info.model.objective)
    st.latex(rf"\text{{{name}}} = e^{{{tex(now.loss, digits)}}} = {tex(now.perplexity, DIGITS)}")
    if now.bits_per_byte and now.bytes_per_token:
        digits = tie(lambda loss, size: loss / math.log(2) / size, now.loss, now.bytes_per_token, digits=DIGITS)
        st.latex(
            rf"\text{{bits per byte}} = \frac{{{tex(now.loss, digits)}}}{{\ln 2 \cdot {tex(now.bytes_per_token, digits)}}}"
            rf" = {tex(now.bits_per_byte, DIGITS)}"
        )
        st.caption(
            f"A token of this vocabulary is {tex(now.bytes_per_token, DIGITS)} bytes long on average. Bits per byte is the number "
            "to compare runs with different vocabularies by."
        )


def _worked_start(info: "RunInfo", now: Reading) -> None:
    size = info.model.vocab_size
    st.markdown("Why it starts there: a new model gives each token of the vocabulary about the same probability, 1/V.")
    st.latex(rf"-\ln \tfrac{{1}}{{V}} = \ln V = \ln {size} = {tex(now.start, DIGITS)}")
    if math.isfinite(now.first_loss):
        st.caption(f"Measured before the first step: {tex(now.first_loss, DIGITS)} nats.")
    if now.floor is not None and now.val_loss is not None:
        floor, loss = (rounded(x, 6) for x in (now.floor, now.val_loss))
        st.markdown("Where it must stop: even the true source of the stories is surprised by its own choices.")
        st.latex(rf"\text{{loss}} - \text{{floor}} = {loss:.4f} - {floor:.4f} = {round(loss, 4) - round(floor, 4):.4f}")
