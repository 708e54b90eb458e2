"""One training step taken apart: the batch, its loss, its gradients, the update, and what it changed."""

import streamlit as st

from ui import lesson, session, step_data, step_stages
from ui.resources import ModelRef
from ui.step_data import Lab
from ui.step_stages import Stage
from viz import format_count, format_number

STAGES = ("1 Batch", "2 Loss", "3 Gradients", "4 Update", "5 Before and after")
KEY = "step_stage"


def draw() -> None:
    """One step of the chosen run or model, stage by stage."""
    ref, text = session.require_model(), session.text()
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
        "Stage", STAGES, required=True, key=KEY, persist_state="session", wrap=True,
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
        whole = " (with its optimizer)" if step in by_step and step_data.has_optimizer(by_step[step]) else ""
        return f"step {format_count(step)}{whole}"

    chosen = st.selectbox(
        "From the weights of", list(by_step), format_func=label, key=key, persist_state="session", width=270
    )
    return by_step.get(chosen, kept[-1])


def _buttons(lab: Lab, start: ModelRef) -> None:
    st.button(
        "Next step", key="step_next", icon=":material/skip_next:", type="primary",
        on_click=step_data.go_on, disabled=lab.stepper.done,
        help="One more step from here, on the next batch. The run itself is not touched.",
    )  # fmt: skip
    moved = lab.taken.step > start.step + 1
    st.button(
        "Back to the checkpoint", key="step_back", icon=":material/undo:", on_click=step_data.back,
        disabled=not moved,
    )  # fmt: skip


def _numbers(ref: ModelRef, lab: Lab, start: ModelRef) -> None:
    taken = lab.taken
    st.markdown(
        f"**Step {format_count(taken.step)}** · loss of the batch **{taken.loss:.4f}** nats · length of the "
        f"gradient **{format_number(taken.norm, 4)}** · learning rate "
        f"**{format_number(taken.learning_rate, 4)}**"
    )
    rounded = " These weights were kept in 8 bits." if start.dtype == "int8" else ""
    st.caption(_origin(ref, lab) + rounded)


def _origin(ref: ModelRef, lab: Lab) -> str:
    """What this step is: the run's own, or one like it."""
    if lab.stepper.exact:
        record = step_data.recorded(ref, lab.taken.step)
        if record is None:
            return "This is the very step that the run takes here: same batch, same optimizer. It is a copy."
        same = record["loss"] == lab.taken.loss and record["grad_norm"] == lab.taken.norm
        told = f"The run’s own record of step {format_count(lab.taken.step)}: loss {record['loss']:.4f}, "
        told += f"gradient {format_number(record['grad_norm'], 4)}"
        return f"{told}: {'the same, to the last bit.' if same else 'not the same, as it ran elsewhere.'}"
    words = []
    if ref.kind == "shipped":
        words.append(
            "The batch comes from stories made anew from the grammar that the model learned from. Only its "
            "weights were kept, so the optimizer starts fresh."
        )
    elif not lab.stepper.extended:
        words.append(
            "Only the weights of this moment were kept: the optimizer starts fresh, with another batch than "
            "the run’s."
        )
    if lab.stepper.extended:
        words.append(
            f"The training ended here: this is what its next step would be, in a schedule of "
            f"{format_count(lab.stepper.config.steps)} steps."
        )
    return " ".join(words)


def _choose(ref: ModelRef, step: int, stage: str) -> None:
    """Start elsewhere, at a stage. For `on_click`."""
    st.session_state[f"{step_data.START}_{ref.id}"] = step
    st.session_state[KEY] = stage


def _try(ref: ModelRef) -> None:
    kept = step_data.moments_of(ref)
    lesson.try_this(
        lesson.Step(
            "The first step of all: which part has the longest gradient, before anything is learned?",
            "From the start", _choose, (ref, kept[0].step, STAGES[2]),
        ),
        lesson.Step(
            "Take ten more steps with Next step. Does the loss of each new batch fall?",
            "One step on", step_data.go_on,
        ),
        lesson.Step(
            "At the end of training, how much does one more step still change?",
            "From the end", _choose, (ref, kept[-1].step, STAGES[4]),
        ),
        key="step_try",
    )  # fmt: skip
