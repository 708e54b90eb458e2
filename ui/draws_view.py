"""A thousand draws of the next token, against the distribution that they were drawn from."""

import math
from typing import Any

import numpy as np
import streamlit as st

from engine.dice import Fit, count_error, draw_many, fit
from engine.metrics import most_likely
from engine.stages import sampling_stages
from ui import resources, sampling_form
from ui.components import show
from ui.lesson import literal
from ui.model_refs import ModelRef
from ui.worked_sampling import chi_square
from ui.writing import logits_after, seen
from ui.written_text import say_what_is_seen
from viz import format_prob, visible
from viz.draws import count_bars
from wording import words

say = words("ui.draws_view")

SHOWN = 9
MANY = (100, 1000, 10_000)
DRAWN, PLAIN = "drawn", "model"  # the distribution that is drawn from, the model's own
KEEP: dict[str, Any] = {"persist_state": "session"}


@st.fragment
def draws_view(ref: ModelRef, ids: list[int]) -> None:
    """Settings, counts and the test; moving a slider draws nothing else again."""
    say_what_is_seen(ref, len(ids))
    left, right = st.columns([2, 5], gap="medium")
    logits = logits_after(ref, ids)
    with left:
        sampling_form.temperature()
        sampling_form.top_k(len(logits))
        sampling_form.top_p()
        with st.expander(say("more")):
            sampling_form.min_p()
            sampling_form.penalty()
        sampling_form.seed_box()
    with right, st.container(horizontal=True, vertical_alignment="center"):
        n = int(st.segmented_control(say("how_many"), MANY, default=1000, required=True,
                                     key="generation_n_draws", format_func=lambda n: say("draws", n=n),
                                     label_visibility="collapsed", **KEEP))  # fmt: skip
        plain = st.toggle(say("against"), key="generation_against", **KEEP)
    against = PLAIN if plain else DRAWN
    how = sampling_form.settings(ref)
    stages = sampling_stages(logits, **how.draw, previous=seen(ref, ids))
    claimed = stages[-1 if against == DRAWN else 0].probs
    counts = draw_many(stages[-1].probs, n, how.seed)
    with right:
        _picture(ref, counts, claimed, n)
    _test(ref, fit(counts, claimed), counts, claimed, n, against)


def _picture(ref: ModelRef, counts: Any, probs: Any, n: int) -> None:
    top = most_likely(probs, min(SHOWN, int((probs > 0).sum())))
    labels = [visible(resources.tokenizer(ref).token_bytes(i)) for i in top.ids.tolist()]
    share, came = top.probs, counts[top.ids]
    if top.n_tail:
        share, came = np.append(share, top.tail), np.append(came, n - came.sum())
    show(
        count_bars(labels, came, n * share, count_error(share, n), n=n, n_tail=top.n_tail),
        key="generation_counts",
    )


def _test(ref: ModelRef, found: Fit, counts: Any, probs: Any, n: int, against: str) -> None:
    """The chi-square test in a formula and in words."""
    if math.isnan(found.p_value):
        st.caption(say("no_test"))
        return
    best = int(np.argmax(probs))
    name = literal(visible(resources.tokenizer(ref).token_bytes(best)))
    left, right = st.columns([3, 2], gap="medium")
    count, p = int(counts[best]), float(probs[best])
    left.latex(chi_square(count, p, n, found.chi_square, found.degrees))
    right.markdown(say("p_value", p=format_prob(found.p_value)))
    right.caption(in_words(found, against))
    right.caption(say("bins", token=name, n=found.n_bins))


def in_words(found: Fit, against: str) -> str:
    """What the p-value says, and what it does not."""
    share = format_prob(100 * found.p_value)
    if found.p_value >= 0.01:
        return say(f"honest.{against}", share=share)
    return say(f"off.{against}", share=share)
