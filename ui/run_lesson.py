"""Below the picture of a run: what it writes, and its numbers worked out."""

import math
import re
from typing import TYPE_CHECKING

import streamlit as st

import viz
from engine import reading
from engine.reading import Reading, Record
from ui import run_curve
from ui.worked import tex, tie
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo

say = words("ui.run_lesson")

DIGITS = 4  # significant, of a worked result
_CHOSEN = "_training_chosen"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and newline


def samples(records: list[Record]) -> None:
    """What it wrote: now, half-way, at the start. Word for word, whatever signs are in it."""
    found = [r for r in records if r["kind"] == "sample"]
    if not found:
        return
    last = found[-1]
    causal = "prompt" in last
    st.subheader(say("what_writes") if causal else say("what_fills"))
    if not causal:
        _line(say("asked"), last["masked"])
    for index in sorted({0, len(found) // 2, len(found) - 1}, reverse=True):
        record = found[index]
        _line(say("step", step=record["step"]), record.get("prompt", "") + record["text"])
    if not causal:
        _line(say("the_truth"), last["truth"])


def _line(name: str, text: str) -> None:
    what, said = st.columns([1, 5])
    what.markdown(f"**{name}**")
    said.text(_CONTROL.sub(_escaped, text.strip("\n")).replace("\n", viz.visible("\n") + "\n"))


def _escaped(sign: re.Match[str]) -> str:
    """A sign without a shape, spelled like the bytes that are not text."""
    return f"\\x{ord(sign.group()):02x}"


def chosen(run_id: str) -> int | None:
    """The step that was pressed on the curve; None: the newest."""
    steps: dict[str, int] = st.session_state.get(_CHOSEN, {})
    return steps.get(run_id)


def choose(run_id: str, step: int | None) -> None:
    """Work out the numbers at this step; None: at the newest. For callbacks."""
    steps = {key: at for key, at in st.session_state.get(_CHOSEN, {}).items() if key != run_id}
    st.session_state[_CHOSEN] = steps if step is None else {**steps, run_id: step}
    run_curve.again()


def worked(info: "RunInfo", records: list[Record], last: Reading) -> None:
    """Loss, perplexity and bits per byte with the run's numbers, at the newest or the chosen evaluation.

    A preference run has neither: its numbers are worked out where it was made.
    """
    if info.measure == "preferences":
        return
    st.subheader(say("numbers_worked_out"))
    step = chosen(info.id)
    now = last if step is None else reading.read(records, info.n_choices, step) or last
    with st.container(horizontal=True, vertical_alignment="center"):
        if now.step == last.step:
            st.caption(say("press_the_curve"))
        else:
            st.caption(say("as_pressed", step=now.step))
            st.button(
                say("back_to_newest"),
                key="training_newest",
                on_click=choose,
                args=(info.id, None),
                type="tertiary",
            )
    if not math.isfinite(now.perplexity):
        st.markdown(say("not_finite"))
        return
    _worked_now(info, now)
    _worked_start(info, now)


def _worked_now(info: "RunInfo", now: Reading) -> None:
    digits = tie(math.exp, now.loss, digits=DIGITS)
    which = "validation" if now.val_loss is not None else "training"
    st.markdown(say(f"costs.{info.measure}_{which}", step=now.step, loss=tex(now.loss, digits)))
    name = viz.perplexity_name(info.model.objective)
    st.latex(rf"\text{{{name}}} = e^{{{tex(now.loss, digits)}}} = {tex(now.perplexity, DIGITS)}")
    if now.bits_per_byte and now.bytes_per_token:
        digits = tie(
            lambda loss, size: loss / math.log(2) / size, now.loss, now.bytes_per_token, digits=DIGITS
        )
        st.latex(
            rf"\text{{{say('bits_per_byte')}}} = \frac{{{tex(now.loss, digits)}}}"
            rf"{{\ln 2 \cdot {tex(now.bytes_per_token, digits)}}}"
            rf" = {tex(now.bits_per_byte, DIGITS)}"
        )
        st.caption(say("bytes_per_token", bytes_per_token=tex(now.bytes_per_token, DIGITS)))


def _worked_start(info: "RunInfo", now: Reading) -> None:
    size = info.model.vocab_size
    st.markdown(say("why_it_starts_there"))
    st.latex(rf"-\ln \tfrac{{1}}{{V}} = \ln V = \ln {size} = {tex(now.start, DIGITS)}")
    if math.isfinite(now.first_loss):
        st.caption(say("measured_at_first", first_loss=tex(now.first_loss, DIGITS)))
    if now.floor is not None and now.val_loss is not None:
        floor, loss = round(now.floor, 4), round(now.val_loss, 4)
        st.markdown(say("where_it_must_stop"))
        st.latex(
            rf"\text{{{say('loss')}}} - \text{{{say('floor')}}} = {loss:.4f} - {floor:.4f}"
            rf" = {loss - floor:.4f}"
        )
