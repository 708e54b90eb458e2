"""From logits to the distribution that is drawn from, step by step, live while a setting moves."""

import math
from typing import Any

import streamlit as st

from engine.metrics import MostLikely, most_likely, softmax
from engine.stages import Stage, sampling_stages, worked_out
from engine.waterfall import CUTS, Column, waterfall
from ui import resources, sampling_form
from ui.components import stage_bars
from ui.model_refs import ModelRef
from ui.token_choice import KEY, begin, token_choice
from ui.worked_sampling import sampled
from ui.writing import logits_after, seen
from ui.written_text import say_what_is_seen
from viz import format_count, format_number, format_prob
from viz.sampling import BarColumn
from wording import words

say = words("ui.waterfall_view")

SHOWN = 9  # rows; all other tokens together are one row more
UNITS = {"nats": 1.0, "bits": math.log(2)}


def look_at(token_id: int) -> None:
    """Choose the token that is worked out. For `on_press`."""
    st.session_state[KEY] = token_id


def bar_columns(columns: list[Column], ids: list[int], notes: dict[str, str], unit: str) -> list[BarColumn]:
    """The steps as the table of bars draws them, with the facts under each."""
    return [
        BarColumn(
            say(f"step.{column.name}"),
            column.values[ids],
            column.kept[ids],
            None if column.of_logits else column.rest(ids),
            notes.get(column.name, "") if column.on else say("off"),
            column.on,
            _facts(column, unit),
        )
        for column in columns
    ]


def _facts(column: Column, unit: str) -> tuple[str, ...]:
    removes = column.name in CUTS and column.on
    return (
        format_prob(column.removed_mass) if removes else "",
        format_count(column.n_left),
        format_number(column.entropy / UNITS[unit]),
        format_number(column.choices),
    )


def notes_of(draw: dict[str, Any]) -> dict[str, str]:
    """What stands under each step's name."""
    return {
        "logits": "z",
        "penalty": f"θ = {draw['repetition_penalty']:g}",
        "temperature": f"z ÷ {draw['temperature']:g}" if draw["temperature"] else "T = 0",
        "softmax": "p",
        "top-k": f"k = {draw['top_k']}",
        "top-p": f"p = {draw['top_p']:g}",
        "min-p": f"m = {draw['min_p'] or 0:g}",
        "drawn": say("scaled"),
    }


@st.fragment
def live(ref: ModelRef, ids: list[int]) -> None:
    """Sliders and picture; moving one draws nothing else again."""
    say_what_is_seen(ref, len(ids))
    logits = logits_after(ref, ids)
    sampling_form.in_a_row(len(logits))
    how, previous = sampling_form.settings(ref), seen(ref, ids)
    columns = waterfall(logits, **how.draw, previous=previous)
    top = most_likely(softmax(logits), SHOWN)
    shown = top.ids.tolist()
    unit = str(st.session_state.get("generation_unit", "nats"))
    begin(ref, ids)
    stage_bars(
        _tokens(ref, top),
        bar_columns(columns, shown, notes_of(how.draw), unit),
        key="generation_waterfall",
        n_tail=top.n_tail,
        label=say("table"),
        facts=(say("fact.removed"), say("fact.left"), say("fact.entropy", unit=unit), say("fact.choices")),
        verb=say("work_out"),
        on_press=look_at,
        chosen=st.session_state.get(KEY, shown[0]),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(say("unit"), list(UNITS), default="nats", required=True,
                             key="generation_unit", persist_state="session",
                             label_visibility="collapsed")  # fmt: skip
        st.caption(in_words(columns))
    work_out(ref, ids, logits, how.draw, previous)


def in_words(columns: list[Column]) -> str:
    """What the way did, in one sentence or two."""
    before, last = columns[0], columns[-1]
    kept = math.prod(1 - column.removed_mass for column in columns)
    cut = say("cut", share=format_prob(1 - kept)) + " " if kept < 1 else ""
    choices = {"before": format_number(before.choices), "after": format_number(last.choices)}
    return cut + say("choices", **choices)


def work_out(ref: ModelRef, ids: list[int], logits: Any, draw: dict[str, Any], previous: Any) -> None:
    """One token of the vocabulary, worked out."""
    chosen = token_choice(ref, ids, softmax(logits), say("worked"))
    st.latex(formula(logits, sampling_stages(logits, **draw, previous=previous), chosen, draw, previous))


def formula(logits: Any, stages: list[Stage], token: int, draw: dict[str, Any], previous: Any) -> str:
    """From a token's logit to the probability that it is drawn with."""
    penalty, heat = draw["repetition_penalty"], draw["temperature"]
    w = worked_out(logits, stages, token, heat, repetition_penalty=penalty, previous=previous)
    raw = float(logits[token]) if penalty > 1 and token in previous else None
    return sampled(w.logit, w.top, heat, w.total, w.kept, w.final == 0, raw=raw, penalty=penalty)


def _tokens(ref: ModelRef, top: MostLikely) -> list[tuple[int, bytes]]:
    data_of = resources.tokenizer(ref).token_bytes
    return [(i, data_of(i)) for i in top.ids.tolist()]
