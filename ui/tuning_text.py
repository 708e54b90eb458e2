"""A trained model learns a new text: what it gains there, and what it forgets of what it knew."""

from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

import viz
from engine.corpus import Corpus, UnknownEncoding
from engine.plan import Plan
from ui import (
    lesson,
    resources,
    tuning_data,
    tuning_models,
    tuning_parts,
    tuning_run,
    tuning_samples,
    tuning_settings,
    tuning_spec,
    worked_tuning,
)
from ui.components import show
from ui.resources import ModelRef
from ui.text_choice import TextChoice, usable
from ui.words import counted, duration, literal
from viz.tuning import before_and_after
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo
    from engine.run_spec import RunSpec

say = words("ui.tuning_text")

AIM = "text"
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
    st.markdown(say("next_one"))
    st.caption(say("starts_from", name=literal(ref.label)))
    TEXT.draw()
    tuning_settings.draw(AIM, ref, tuning_models.config_of(ref).n_layer)
    if ready is None:
        if problem:
            st.warning(literal(problem))
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
    _losses(info, models.after)
    tuning_samples.two(models)


def _losses(info: "RunInfo", after: ModelRef) -> None:
    records = resources.run_store().history(info.id)
    measured = tuning_run.first_and_last(records)
    if measured is None:
        return
    first, last = measured
    key = "train_loss" if first.get("val_loss") is None else "val_loss"
    rows: list[tuple[str, float, float, float | None]] = [
        (say(f"row.{key}", text=tuning_run.title_of(info)), first[key], last[key], None)
    ]
    for name, evals in tuning_run.also_scored(records).items():
        floor = tuning_data.floor_of(after, info, name)
        rows.append((say("row.old", text=tuning_run.old_title(name)), evals[0][1], evals[-1][1], floor))
    names, before, now, floors = (list(column) for column in zip(*rows, strict=True))
    st.subheader(say("learned_and_forgot"))
    show(before_and_after(names, before, now, unit=say("unit"), floors=floors), key="tuning_losses")
    st.latex(worked_tuning.changes(before[0], now[0], before[-1], now[-1]))
    st.markdown(_in_words(before, now))
    st.caption(say("measured_at", step=last["step"]))


def _in_words(before: list[float], now: list[float]) -> str:
    gained, forgot = before[0] - now[0], now[-1] - before[-1]
    numbers = {"gained": viz.format_number(abs(gained)), "forgot": viz.format_number(abs(forgot))}
    if gained <= 0:
        return say("nothing_gained", **numbers)
    return say("gained_and_forgot" if forgot > 0 else "gained_only", **numbers)


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
