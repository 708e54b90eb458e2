"""Writing step by step: what can come next, a token drawn or forced, and the numbers behind the picture."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.metrics import most_likely, softmax
from engine.sampling import Stage, sampling_stages
from ui import lesson, resources, sampling_form, writing, written_text
from ui.branch_view import keep
from ui.branches import Writing, as_json
from ui.components import show, stage_bars
from ui.dice import look_at_last
from ui.model_refs import ModelRef
from ui.part import part
from ui.prompt import Prompt
from ui.token_choice import token_choice
from ui.waterfall_view import formula
from viz import distribution_bars, visible
from viz.sampling import BarColumn
from wording import words

say = words("ui.write_view")

SHOWN = 9  # bars; all other tokens together are one bar more
ASKED = "_generation_asked"
STRIP = "generation_strip"
ERROR = "_generation_error"


def draw_one(text: Writing, ref: ModelRef, prompt: list[int]) -> None:
    """Draw a token. For `on_click`: the page below it is then drawn once, with the token."""
    _try(writing.draw_one, text, ref, prompt, sampling_form.settings(ref))
    look_at_last(text, key=STRIP)


def force(text: Writing, ref: ModelRef, prompt: list[int], token_id: int) -> None:
    """Force a token. For `on_click`."""
    _try(writing.force, text, ref, prompt, token_id, sampling_form.settings(ref))
    look_at_last(text, key=STRIP)


def _try(action: Any, *args: Any) -> None:
    """Do it, or keep the sentence that says why not, for the page to show."""
    try:
        action(*args)
    except ValueError as error:
        st.session_state[ERROR] = str(error)


def ask_many() -> None:
    """Ask this run to write; `on_click`, so that a run that starts over does not forget it."""
    st.session_state[ASKED] = True


def buttons(text: Writing, ref: ModelRef, prompt: list[int], n: int, busy: bool) -> None:
    """Draw, write, stop, and back again."""
    with st.container(horizontal=True):
        st.button(say("draw"), key="generation_draw", type="primary", on_click=draw_one,
                  args=(text, ref, prompt))  # fmt: skip
        st.button(say("write", n=n), key="generation_write", on_click=ask_many)
        st.button(say("stop"), key="generation_stop", disabled=not busy)
        st.button(say("undo"), key="generation_undo", on_click=text.undo, disabled=not text.draws)
        st.button(say("restart"), key="generation_restart", on_click=text.restart, disabled=not text.draws)


def live(ref: ModelRef, given: Prompt, text: Writing, end: DeltaGenerator, *, alone: bool) -> None:
    """The settings beside the picture that they make, and what else says them.

    Args:
        ref: the model.
        given: the prompt.
        text: what was written after it.
        end: where to draw what can be kept.
        alone: whether moving a slider draws nothing else again. While the page writes it has to: any click
            ends the writing.
    """
    left, right = st.columns([2, 5], gap="medium")
    often, more = left.container(), left.container()
    with more:
        sampling_form.rarer(ref)
    about = (ref, given, text, text.ids, right, end)
    with often:
        if alone:
            part(_live)(*about)
        else:
            with st.container():  # as a part has one: the sliders stay where they are on the screen
                _live(*about)


def _live(
    ref: ModelRef, given: Prompt, text: Writing, ids: list[int], right: DeltaGenerator, end: DeltaGenerator
) -> None:
    if text.ids != ids or ERROR in st.session_state:  # a token was forced: all of the page shows it
        st.rerun()
    sampling_form.usual(resources.tokenizer(ref).vocab_size)
    how = sampling_form.settings(ref)
    with right:
        picture(ref, given.ids, text, how.draw)
    about = {"model": ref.id, "checkpoint": ref.identity, "bits": ref.bits, "seed": how.seed,
             "settings": how.draw}  # fmt: skip
    with end:
        keep(text, given.text, sampling_form.link(), lambda: as_json(text, given.ids, about))


def picture(ref: ModelRef, prompt: list[int], text: Writing, draw: dict[str, Any]) -> None:
    """What can come next: the model's distribution, and what the settings make of it. Bars can be pressed."""
    ids = [*prompt, *text.ids]
    logits, previous = writing.logits_after(ref, ids), writing.seen(ref, ids)
    stages = sampling_stages(logits, **draw, previous=previous)
    views = ["before-after", *(["truth"] if resources.oracle_for(ref) else [])]
    if st.session_state.get("generation_view") not in views:
        st.session_state["generation_view"] = views[0]
    if len(views) > 1:
        st.segmented_control(say("next"), views, required=True, key="generation_view",
                             persist_state="session", label_visibility="collapsed",
                             format_func=say.table("view").__getitem__)  # fmt: skip
    if st.session_state["generation_view"] == "truth":
        _against_truth(ref, ids, stages)
    else:
        _before_after(ref, prompt, text, stages)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = token_choice(ref, ids, softmax(logits), say("any"))
        name = lesson.literal(visible(resources.tokenizer(ref).token_bytes(chosen)))
        st.button(
            say("force", token=name), key="generation_force", on_click=force, args=(text, ref, prompt, chosen)
        )
    st.latex(formula(logits, stages, chosen, draw, previous))


def _before_after(ref: ModelRef, prompt: list[int], text: Writing, stages: list[Stage]) -> None:
    first, last = stages[0], stages[-1]
    top = most_likely(first.probs, SHOWN)
    shown = top.ids.tolist()
    data_of = resources.tokenizer(ref).token_bytes
    stays = float(last.rest(shown))
    columns = [
        BarColumn(say("model"), first.probs[shown], [True] * len(shown), (top.tail, 0.0)),
        BarColumn(
            say("drawn"), last.probs[shown], last.probs[shown] > 0, (stays, 0.0),
            say("left", n=last.n_kept),
        ),
    ]  # fmt: skip
    stage_bars(
        [(i, data_of(i)) for i in shown],
        columns,
        key="generation_stages",
        n_tail=top.n_tail,
        label=say("next"),
        verb=say("verb"),
        on_press=lambda token_id: force(text, ref, prompt, token_id),
    )
    st.caption(f"{say('press')} {written_text.cuts_in_words(stages)}")


def _against_truth(ref: ModelRef, ids: list[int], stages: list[Stage]) -> None:
    probs = stages[0].probs
    top = most_likely(probs, SHOWN)
    labels = [visible(resources.tokenizer(ref).token_bytes(i)) for i in top.ids.tolist()]
    truth = writing.truth_after(ref, tuple(ids))
    second = None if truth is None else truth[top.ids]
    show(
        distribution_bars(labels, top.probs, tail=top.tail, n_tail=top.n_tail, second=second),
        key="generation_truth",
    )
    st.caption(written_text.cost_in_words(truth, probs))
