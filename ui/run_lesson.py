"""Below the picture of a run: what it writes, and its numbers worked out."""

import math
from typing import TYPE_CHECKING

import streamlit as st

import viz
from engine import reading
from engine.reading import Reading, Record
from ui.worked import tex, tie

if TYPE_CHECKING:
    from engine.runs import RunInfo

DIGITS = 4  # significant, of a worked result


def samples(records: list[Record]) -> None:
    """What it wrote: now, half-way, at the start. Word for word, whatever signs are in it."""
    found = [r for r in records if r["kind"] == "sample"]
    if not found:
        return
    last = found[-1]
    causal = "prompt" in last
    st.subheader("What it writes" if causal else "What it fills in")
    if not causal:
        _line("asked", last["masked"])
    for index in sorted({0, len(found) // 2, len(found) - 1}, reverse=True):
        record = found[index]
        _line(f"step {viz.format_count(record['step'])}", record.get("prompt", "") + record["text"])
    if not causal:
        _line("the truth", last["truth"])


def _line(name: str, text: str) -> None:
    what, said = st.columns([1, 5])
    what.markdown(f"**{name}**")
    said.text(text.strip("\n").replace("\n", viz.visible("\n") + "\n"))


def worked(info: "RunInfo", records: list[Record], last: Reading) -> None:
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
    token = "token" if info.model.objective == "clm" else "hidden token"
    which = "validation text" if now.val_loss is not None else "training text"
    st.markdown(
        f"At step {now.step:,} a {token} of the {which} costs {tex(now.loss, digits)} nats on average."
    )
    name = viz.perplexity_name(info.model.objective)
    st.latex(rf"\text{{{name}}} = e^{{{tex(now.loss, digits)}}} = {tex(now.perplexity, DIGITS)}")
    if now.bits_per_byte and now.bytes_per_token:
        digits = tie(
            lambda loss, size: loss / math.log(2) / size, now.loss, now.bytes_per_token, digits=DIGITS
        )
        st.latex(
            rf"\text{{bits per byte}} = \frac{{{tex(now.loss, digits)}}}"
            rf"{{\ln 2 \cdot {tex(now.bytes_per_token, digits)}}}"
            rf" = {tex(now.bits_per_byte, DIGITS)}"
        )
        st.caption(
            f"A token of this vocabulary is {tex(now.bytes_per_token, DIGITS)} bytes long on average. "
            "Bits per byte is the number to compare runs with different vocabularies by."
        )


def _worked_start(info: "RunInfo", now: Reading) -> None:
    size = info.model.vocab_size
    st.markdown(
        "Why it starts there: a new model gives each token of the vocabulary about the same probability, 1/V."
    )
    st.latex(rf"-\ln \tfrac{{1}}{{V}} = \ln V = \ln {size} = {tex(now.start, DIGITS)}")
    if math.isfinite(now.first_loss):
        st.caption(f"Measured before the first step: {tex(now.first_loss, DIGITS)} nats.")
    if now.floor is not None and now.val_loss is not None:
        floor, loss = round(now.floor, 4), round(now.val_loss, 4)
        st.markdown(
            "Where it must stop: even the true source of the stories is surprised by its own choices."
        )
        st.latex(rf"\text{{loss}} - \text{{floor}} = {loss:.4f} - {floor:.4f} = {loss - floor:.4f}")
