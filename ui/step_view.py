"""One training step taken apart: the batch, its loss, its gradients, the update, and what it changed."""

import streamlit as st

from ui import lesson, session, step_data, step_stages
from ui.model_refs import ModelRef
from ui.step_data import Lab
from ui.step_stages import Stage
from viz import format_number
from wording import words

say = words("ui.step_view")

STAGES = ("batch", "loss", "gradients", "update", "before-and-after")
KEY = "step_stage"


def draw() -> None:
    """One step of the chosen run or model, stage by stage."""
    ref, text = session.require_trained(), session.text()
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        start = _start(ref)
    try:
        lab = step_data.lab(ref, start)
    except ValueError as error:
        lesson.explain(error)
    with row:
        _buttons(lab, start)
    _numbers(ref, lab, start)
    stage = Stage(ref, lab.stepper, lab.taken)
    if st.session_state.get(KEY) not in STAGES:
        st.session_state[KEY] = STAGES[0]
    name = st.segmented_control(
        say("stage"), STAGES, format_func=lambda stage: say(f"stages.{stage}"), required=True,
        key=KEY, persist_state="session", wrap=True,
        label_visibility="collapsed",
    )  # fmt: skip
    if name in STAGES[:2]:
        step_stages.choose_row(stage)
    if name == STAGES[0]:
        step_stages.batch(stage)
    elif name == STAGES[1]:
        step_stages.losses(stage)
    elif name == STAGES[2]:
        step_stages.gradients(stage)
    elif name == STAGES[3]:
        step_stages.update(stage)
    else:
        step_stages.before_and_after(stage, text)
    _try(ref)


def _start(ref: ModelRef) -> ModelRef:
    """Where the step begins: one of the kept moments."""
    kept = step_data.moments_of(ref)
    by_step = {moment.step: moment for moment in kept}
    key = f"{step_data.START}_{ref.id}"
    if st.session_state.get(key) not in by_step:
        st.session_state[key] = step_data.default_start(ref, kept)

    def label(step: int) -> str:
        if step in by_step and step_data.has_optimizer(by_step[step]):
            return say("step_with_optimizer", step=step)
        return say("step", step=step)

    chosen = st.selectbox(
        say("from_the_weights_of"),
        list(by_step),
        format_func=label,
        key=key,
        persist_state="session",
        width=270,
    )
    return by_step.get(chosen, kept[-1])


def _buttons(lab: Lab, start: ModelRef) -> None:
    st.button(
        say("next_step"), key="step_next", icon=":material/skip_next:", type="primary",
        on_click=step_data.go_on, disabled=lab.stepper.done,
        help=say("next_step_help"),
    )  # fmt: skip
    moved = lab.taken.step > start.step + 1
    st.button(
        say("back_to_checkpoint"), key="step_back", icon=":material/undo:", on_click=step_data.back,
        disabled=not moved,
    )  # fmt: skip


def _numbers(ref: ModelRef, lab: Lab, start: ModelRef) -> None:
    taken = lab.taken
    st.markdown(
        say(
            "numbers",
            step=taken.step,
            loss=taken.loss,
            norm=format_number(taken.norm, 4),
            learning_rate=format_number(taken.learning_rate, 4),
        )
    )
    st.caption(" ".join([*_origin(ref, lab), *([say("kept_in_8_bits")] if start.dtype == "int8" else [])]))


def _origin(ref: ModelRef, lab: Lab) -> list[str]:
    """What this step is, in sentences: the run's own, or one like it."""
    if lab.stepper.exact:
        record = step_data.recorded(ref, lab.taken.step)
        if record is None:
            return [say("the_very_step")]
        same = record["loss"] == lab.taken.loss and record["grad_norm"] == lab.taken.norm
        norm = format_number(record["grad_norm"], 4)
        told = {"step": lab.taken.step, "loss": record["loss"], "norm": norm}
        return [say("own_record_same", **told) if same else say("own_record_differs", **told)]
    sentences = []
    if ref.kind == "shipped":
        sentences.append(say("stories_made_anew" if ref.corpus == "stories" else "other_stories"))
    elif not lab.stepper.extended:
        sentences.append(say("only_weights_were_kept"))
    if lab.stepper.extended:
        sentences.append(say("training_ended_here", steps=lab.stepper.config.steps))
    return sentences


def _choose(ref: ModelRef, step: int, stage: str) -> None:
    """Start elsewhere, at a stage. For `on_click`."""
    st.session_state[f"{step_data.START}_{ref.id}"] = step
    st.session_state[KEY] = stage


def _try(ref: ModelRef) -> None:
    kept = step_data.moments_of(ref)
    start = lesson.Step(
        say("try_first_step"),
        say("from_the_start"), _choose, (ref, kept[0].step, STAGES[2]),
    )  # fmt: skip
    lesson.try_this(
        *([start] if kept[0].step == 0 else []),  # of some models only the end was kept
        lesson.Step(
            say("try_ten_steps"),
            say("one_step_on"), step_data.go_on,
        ),
        lesson.Step(
            say("try_end"),
            say("from_the_end"), _choose, (ref, kept[-1].step, STAGES[4]),
        ),
        key="step_try",
    )  # fmt: skip
