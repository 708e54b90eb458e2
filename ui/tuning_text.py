"""A trained model learns a new text: what it gains there, and what it forgets of what it knew."""

from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

import viz
from engine.config import Aim
from engine.corpus import Corpus, UnknownEncoding
from engine.plan import Plan
from ui import (
    lesson,
    tuning_form,
    tuning_losses,
    tuning_models,
    tuning_parts,
    tuning_run,
    tuning_samples,
    tuning_settings,
    tuning_spec,
)
from ui.model_refs import ModelRef
from ui.text_choice import TextChoice, usable
from ui.words import counted, duration, literal
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo
    from engine.run_spec import RunSpec

say = words("ui.tuning_text")

AIM: Aim = "text"
TEXT = TextChoice("tuning", ("python-docs", "pasted", "uploaded", "stories"))
RHYME = (
    "Seven grey goats went up the stair. Seven grey goats had bells to wear. The first goat rang, the second "
    "sang, and the third goat combed her hair. Six grey goats came down again. Six grey goats stood in the "
    "rain. One stayed behind, for she had a mind to wait for the morning train. "
) * 8


class Ready(NamedTuple):
    """A text that can be learned: how it is split, and how long its rows are."""

    text: Corpus
    plan: Plan
    length: int


def draw() -> None:
    """Draw the view."""
    ref = tuning_models.require_start()
    ready, problem = _ready(ref)
    info = tuning_run.head(AIM, lambda: _spec(ref), ready=ready is not None)
    left, right = st.columns([2, 1], gap="medium")
    with right:
        _settings(ref, ready, problem)
    with left:
        if info is None:
            _before_the_first(ref)
        else:
            tuning_run.watch(info)
            _result(info)
    if info is not None:
        with right:
            _stack(ref)
    _try(ref)


def _ready(ref: ModelRef) -> tuple[Ready | None, str]:
    """What can be learned as the settings stand, or why nothing can."""
    try:
        text = TEXT.corpus()
        usable(text)
        return Ready(text, *tuning_spec.plan_of(text, ref)), ""
    except UnknownEncoding:
        return None, ""  # asked beside the file
    except ValueError as error:
        return None, str(error)


def _spec(ref: ModelRef) -> "RunSpec":
    text = TEXT.corpus()
    usable(text)
    plan, length = tuning_spec.plan_of(text, ref)
    return tuning_spec.spec(AIM, ref, text, length, plan.val_share)


def _settings(ref: ModelRef, ready: Ready | None, problem: str) -> None:
    tuning_form.source(ref, TEXT.draw, problem)
    tuning_settings.draw(AIM, ref, tuning_models.config_of(ref).n_layer)
    if ready is None:
        return
    plan = ready.plan
    try:
        time = duration(tuning_spec.seconds(AIM, ref, ready.length))
    except ValueError as error:
        st.warning(literal(str(error)))
        return
    st.caption(
        say(
            "what_is_learned", train=counted(plan.train_tokens, "token"),
            val=viz.format_count(plan.val_tokens), length=ready.length, rows=tuning_settings.ROWS, time=time,
        )
    )  # fmt: skip
    tuning_spec.tell_memory(AIM, ref, ready.length)
    if plan.notice:
        st.caption(literal(plan.notice))


def _stack(ref: ModelRef) -> None:
    shape = tuning_models.config_of(ref)
    tuning_parts.draw(shape, tuning_settings.last_blocks(AIM, ref, shape.n_layer), key="tuning_stack_text")


def _before_the_first(ref: ModelRef) -> None:
    st.markdown(say("no_run_yet", name=literal(ref.label)))
    _stack(ref)
    tuning_samples.one(ref)


def _result(info: "RunInfo") -> None:
    """After it has ended: losses before and after, and what both write."""
    models = tuning_models.compared(info)
    if models is None:
        return
    tuning_losses.draw(info, models.after)
    tuning_samples.two(models)


def _with(**settings: object) -> None:
    """Change settings. For `on_click`."""
    tuning_settings.fill(AIM, **settings)


def _rhyme() -> None:
    """A short text of goats, by heart. For `on_click`."""
    st.session_state[TEXT.key("text")] = "pasted"
    st.session_state[TEXT.key("paste")] = RHYME


def _try(ref: ModelRef) -> None:
    lesson.try_this(
        lesson.Step(say("try_rhyme"), say("take_rhyme"), _rhyme),
        lesson.Step(say("try_last_block"), say("freeze"), _freeze),
        lesson.Step(say("try_fast"), say("ten_times"), _faster),
        key="tuning_text_try",
    )


def _freeze() -> None:
    _with(part="last", blocks=1)


def _faster() -> None:
    _with(rate=min(1.0, 10 * float(tuning_settings.DEFAULTS[AIM]["rate"])))
