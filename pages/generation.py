"""Generation: the model writes one token after the other, and every draw can be seen."""

from typing import Any

import streamlit as st

import viz
from engine.metrics import most_likely
from engine.stages import Stage, sampling_stages, worked_out
from ui import lesson, nav, resources, session, writing
from ui.components import show
from ui.dice import dice, look_at_last
from ui.possible import possible_story
from ui.resources import ModelRef
from ui.sampling_form import DEFAULTS, controls
from ui.worked_sampling import sampled

nav.require_app()

SHOWN = 9  # bars; all other tokens together are one bar more
ASKED, ONE, MANY = "_generation_asked", "one", "many"
BEFORE_AFTER, EVERY_STAGE, TRUTH = "Before → after", "Every stage", "Truth"
KEEP: dict[str, Any] = {"persist_state": "session"}
TRY = (
    (
        "Always the likeliest token. Restart and write again: the very same text.",
        "Temperature 0",
        (0.0, 1.0, 0),
    ),
    ("Give unlikely tokens a fair chance and watch the story fall apart.", "Temperature 2.5", (2.5, 1.0, 0)),
    (
        "The same heat, but only 3 tokens may come: the cut mends it.",
        "Temperature 2.5, top-k 3",
        (2.5, 1.0, 3),
    ),
)


def buttons(text: writing.Writing, n: int, busy: bool) -> None:
    """Draw, write, stop, and back again."""
    with st.container(horizontal=True):
        st.button("Draw one token", key="generation_draw", type="primary", on_click=ask, args=(ONE,))
        st.button(f"Write {n} tokens", key="generation_write", on_click=ask, args=(MANY,))
        st.button("Stop", key="generation_stop", disabled=not busy)
        st.button("Undo", key="generation_undo", on_click=text.undo, disabled=not text.draws)
        st.button("Restart", key="generation_restart", on_click=text.restart, disabled=not text.draws)


def ask(for_what: str) -> None:
    """Note what to do in this run; `on_click`, so that a run that starts over does not forget it."""
    st.session_state[ASKED] = for_what


def picture(ref: ModelRef, ids: tuple[int, ...], settings: dict[str, Any]) -> None:
    """What can come next: the model's distribution, and what temperature and cuts make of it."""
    logits = writing.logits_after(ref, ids)
    stages = sampling_stages(logits, **settings)
    top = most_likely(stages[0].probs, SHOWN)
    shown = top.ids.tolist()
    labels = [viz.visible(resources.tokenizer(ref).token_bytes(i)) for i in shown]
    views = [BEFORE_AFTER, EVERY_STAGE, *([TRUTH] if resources.oracle_for(ref) else [])]
    if st.session_state.get("generation_view") not in views:
        st.session_state["generation_view"] = BEFORE_AFTER
    view = st.segmented_control("What can come next", views, required=True, key="generation_view", **KEEP)
    if view == TRUTH:
        truth = writing.truth_after(ref, ids)
        second = None if truth is None else truth[top.ids]
        fig = viz.distribution_bars(labels, top.probs, tail=top.tail, n_tail=top.n_tail, second=second)
        show(fig, key="generation_truth")
        st.caption(writing.cost_in_words(truth, stages[0].probs))
    else:
        both = [("The model", stages[0]), ("What is drawn from", stages[-1])]
        chain = both if view == BEFORE_AFTER else [(stage.name, stage) for stage in stages]
        panels = [(name, stage.probs[top.ids]) for name, stage in chain]
        tails = [stage.rest(shown) for _, stage in chain]
        show(viz.sampling_stages(labels, panels, tails=tails, n_tail=top.n_tail), key="generation_stages")
        st.caption(writing.cuts_in_words(stages))
    worked_bar(dict(zip(shown, labels, strict=True)), logits, stages, settings["temperature"])


def worked_bar(labels: dict[int, str], logits: Any, stages: list[Stage], temperature: float) -> None:
    """One bar of the picture, worked out."""
    if st.session_state.get("generation_token") not in labels:
        st.session_state["generation_token"] = next(iter(labels))
    chosen = st.selectbox(
        "Worked out for",
        list(labels),
        format_func=lambda i: labels.get(i, ""),
        key="generation_token",
        **KEEP,
    )
    w = worked_out(logits, stages, chosen, temperature)
    st.latex(sampled(w.logit, w.top, temperature, w.total, w.kept, w.final == 0))


def page(ref: ModelRef, prompt: str) -> None:
    """From the prompt to the text; a ValueError says why not."""
    tokenizer = resources.tokenizer(ref)
    tokens = tokenizer.tokens(prompt)
    ids, text = [token.id for token in tokens], writing.writing(ref, prompt)
    top = st.container()
    left, right = st.columns([2, 5], gap="medium")
    with left:
        settings, seed, n = controls(tokenizer.vocab_size)
    asked = st.session_state.pop(ASKED, None)
    if asked == ONE:
        text.draw_one(ref, ids, seed, settings)
        look_at_last(text, key="generation_strip")
    with top:
        panel = st.empty()
        buttons(text, n, busy=asked == MANY)
        parts = writing.halves(ref, prompt, tokens, text)
        panel.html(writing.written(*parts, text.text()))
        writing.notes(ref, prompt, len(ids), text)
        possible_story(ref, prompt + text.text(ended=False))
    with right:
        picture(ref, (*ids, *text.ids), settings)
    dice(ref, ids, text, key="generation_strip")
    with st.expander("Copy or download the text"):
        whole = prompt + text.text()
        st.code(whole, language=None, wrap_lines=True)
        st.download_button(
            "Download", whole, "loupe.txt", "text/plain", key="generation_save", on_click="ignore"
        )
    if asked == MANY:
        writing.write(panel, text, parts, (ref, ids, n, seed, settings))
        look_at_last(text, key="generation_strip")
        st.rerun()


def experiment(temperature: float, top_p: float, top_k: int) -> None:
    """Set everything, go back to the prompt and write."""
    writing.forget()
    ask(MANY)
    settings = {"temperature": temperature, "generation_p": top_p, "generation_k": top_k}
    st.session_state.update({**DEFAULTS, **settings})


st.title("Generation")
st.write("Let the model write, one token at a time, and see how chance picks each of them.")
model_ref, start = session.require_model("clm"), session.text()
lesson.need_text(start)
try:
    page(model_ref, start)
except ValueError as error:
    st.error(lesson.literal(str(error)))
lesson.try_this(*(lesson.Step(words, label, experiment, args) for words, label, args in TRY))
