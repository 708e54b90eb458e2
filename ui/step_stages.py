"""The stages of one training step, each one picture and the numbers behind it."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import viz
from engine.metrics import IGNORED, most_likely, softmax, tail_of
from engine.model import Transformer
from engine.moments import look
from engine.one_step import OneStep, Part, Stepper, part_title
from engine.tokenizers import Token
from ui import choice, passes, worked_training
from ui.components import show, token_strip
from ui.lesson import literal
from ui.model_refs import ModelRef
from viz.one_step import part_bars
from viz.theme import surprisal_color
from wording import words

say = words("ui.step_stages")

ROWS, ROW_TOKENS = 3, 14  # of the batch, in the first picture
BARS = 8
ROW = "step_row"


@dataclass(frozen=True, eq=False)
class Stage:
    """What the stages look at: a step, the row of its batch that is chosen, and the model that took it."""

    ref: ModelRef
    stepper: Stepper
    taken: OneStep

    @property
    def causal(self) -> bool:
        """Whether the model predicts the next token."""
        return self.stepper.model.config.objective == "clm"

    @property
    def row(self) -> int:
        """The chosen row of the batch, from 0."""
        return min(int(st.session_state.get(ROW) or 1), len(self.taken.inputs)) - 1

    def token(self, token_id: int) -> Token:
        """A token by its id, for a strip."""
        return Token(token_id, self.stepper.tokenizer.token_bytes(token_id), "", 0, 0, 0)

    def name(self, token_id: int) -> str:
        """How a token is written."""
        return viz.visible(self.stepper.tokenizer.token_bytes(token_id))


def choose_row(stage: Stage) -> None:
    """Draw the choice of a row."""
    n = len(stage.taken.inputs)
    if st.session_state.get(ROW) not in range(1, n + 1):
        st.session_state[ROW] = 1
    st.segmented_control(
        say("row_of_the_batch"), list(range(1, n + 1)), required=True, key=ROW, persist_state="session",
        wrap=True, label_visibility="collapsed",
        format_func=lambda i: say("row", row=i) if i == 1 else str(i),
    )  # fmt: skip


def batch(stage: Stage) -> None:
    """Stage 1: a few rows, inputs above their targets."""
    n, length = stage.taken.inputs.shape
    rows = sorted({*range(min(ROWS, n)), stage.row} - ({ROWS - 1} if stage.row >= ROWS else set()))
    for row in rows:
        st.markdown(say(f"row_title.{'chosen' if row == stage.row else 'other'}", row=row + 1))
        _row(stage, row)
    drawn = say("drawn", rows=len(rows), tokens=min(ROW_TOKENS, length))
    if stage.causal:
        about = say("batch_of_causal", rows=n, length=length)
    else:
        share = viz.format_number(100 * stage.taken.n_scored / (n * length))
        scored = viz.format_count(stage.taken.n_scored)
        about = say("batch_of_masked", rows=n, length=length, scored=scored, share=share)
    st.caption(f"{about} {drawn}")


def _row(stage: Stage, row: int) -> None:
    inputs = stage.taken.inputs[row, :ROW_TOKENS].tolist()
    targets = stage.taken.targets[row, :ROW_TOKENS].tolist()
    mask_id = stage.stepper.tokenizer.mask_id
    if stage.causal:
        under, hidden = [viz.clip(stage.name(t), 12) for t in targets], []
    else:
        under = [_fate(stage, i, t) for i, t in zip(inputs, targets, strict=True)]
        hidden = [at for at, i in enumerate(inputs) if i == mask_id]
    token_strip(
        [[stage.token(i)] for i in inputs],
        key=f"step_batch_{row}",
        values=under,
        hidden=hidden,
        label=say("row_label", row=row + 1),
        on_press=lambda _: st.session_state.update({ROW: row + 1}),
    )


def _fate(stage: Stage, given: int, target: int) -> str:
    if target == IGNORED:
        return "–"
    fate = "mask" if given == stage.stepper.tokenizer.mask_id else ("kept" if given == target else "random")
    return say(f"fate.{fate}", token=viz.clip(stage.name(target), 10))


def losses(stage: Stage) -> None:
    """Stage 2: the loss of each target of the row, and the mean over the batch."""
    taken, row = stage.taken, stage.row
    targets, nats = taken.targets[row], taken.losses[row]
    scored = np.flatnonzero(targets != IGNORED)
    if not len(scored):
        st.info(say("nothing_scored"))
        return
    worst = int(scored[np.nanargmax(nats[scored])])
    shown = targets if stage.causal else np.where(targets == IGNORED, taken.inputs[row], targets)
    most = float(np.log(stage.stepper.model.config.vocab_size))
    choice.begin("step_losses", worst, about=(taken.step, row, stage.ref.id))
    with st.container(height=250 if len(shown) > 48 else "content", border=len(shown) > 48):
        chosen = token_strip(
            [[stage.token(int(i))] for i in shown],
            key="step_losses",
            selected=worst,
            values=["–" if np.isnan(x) else f"{x:.2f}" for x in nats],
            colors=[viz.NEUTRAL if np.isnan(x) else surprisal_color(float(x), most) for x in nats],
            label=say("losses_label"),
        )
    at = worst if chosen is None else int(chosen)
    st.caption(say("losses_of_row", row=row + 1, mean=float(np.nanmean(nats))))
    left, right = st.columns(2)
    with left:
        st.markdown(say("target", at=at, token=literal(stage.name(int(shown[at])))))
        if np.isnan(nats[at]):
            st.write(say("not_chosen_not_scored"))
        else:
            st.latex(worked_training.token_loss(-float(nats[at])))
    with right:
        st.markdown(say("all_targets"))
        total = float(np.nansum(taken.losses, dtype=np.float64))
        rows, length = taken.inputs.shape
        st.latex(worked_training.batch_loss(total, taken.n_scored, (rows, length)))


def gradients(stage: Stage) -> None:
    """Stage 3: how long the gradient is in each part, and clipping."""
    parts = stage.taken.parts
    left, right = st.columns([3, 2], gap="large")
    with left:
        fig = part_bars(
            [p.title for p in parts],
            [p.gradient for p in parts],
            title=say("gradient_axis"),
        )
        show(fig, key="step_gradients")
    with right:
        st.latex(worked_training.gradient_length([p.gradient for p in parts], stage.taken.limit))
    st.caption(say("gradient_says"))


def update(stage: Stage) -> None:
    """Stage 4: how far the weights move."""
    taken, names = stage.taken, [p.name for p in stage.taken.parts]
    left, right = st.columns([3, 2], gap="large")
    with right:
        name = st.selectbox(
            say("part"), names, format_func=part_title, key="step_part", persist_state="session"
        )
        part = next((p for p in taken.parts if p.name == name), taken.parts[0])
        _moved(part, taken.learning_rate)
    with left:
        percent = [100 * p.ratio if np.isfinite(p.ratio) else 0.0 for p in taken.parts]
        fig = part_bars([p.title for p in taken.parts], percent, title=say("update_axis"))
        show(fig, key="step_update")
    st.caption(say(f"optimizer.{stage.stepper.config.optimizer}"))


def _moved(part: Part, learning_rate: float) -> None:
    st.latex(worked_training.update_ratio(part.update, part.weights))
    st.latex(worked_training.mean_change(part.update, part.n, learning_rate))
    st.caption(say("mean_change", n=part.n))


def before_and_after(stage: Stage, text: str) -> None:
    """Stage 5: what the step changed, on its own batch and on the text of the sidebar."""
    taken = stage.taken
    left, right = st.columns([3, 2], gap="large")
    with right:
        st.markdown(say("on_this_batch"))
        st.latex(worked_training.loss_change(taken.loss, taken.loss_after))
        better = int((taken.after < taken.losses).sum())
        st.caption(say("targets_became_likelier", better=better, scored=taken.n_scored))
    with left:
        st.markdown(say("on_the_text"))
        if not text:
            st.info(say("text_is_empty"))
        else:
            _text(stage, text)


def _text(stage: Stage, text: str) -> None:
    """The probabilities at one place of the text, before and after."""
    window = passes.window(stage.ref, text)
    ids = [token.id for token in window.tokens]
    places = range(len(ids)) if stage.causal else stage.stepper.tokenizer.inner(len(ids))  # the frame stays
    choice.begin("step_place", places[-1], about=(stage.ref.id, text))
    with st.container(height=130 if len(ids) > 24 else "content", border=len(ids) > 24):
        chosen = token_strip(
            window.segments, key="step_place", selected=places[-1], label=say("text_choose_token")
        )
    if window.unused:
        st.caption(say("only_last_tokens", read=len(ids), all=window.n_tokens))
    at = min(max(places[-1] if chosen is None else int(chosen), places[0]), places[-1])
    previous = stage.stepper.previous
    assert previous is not None  # a step has been taken
    old, new = (_probs(stage, model, text, at) for model in (previous, stage.stepper.model))
    target = at + stage.causal
    came = ids[target] if target < len(ids) else None
    top = most_likely(old, BARS, also=came)
    shown = top.ids.tolist()
    fig = viz.distribution_bars(
        [stage.name(i) for i in shown],
        top.probs,
        tail=top.tail,
        n_tail=top.n_tail,
        true_index=None if came is None else shown.index(came),
        true_note=say("came_next") if stage.causal else say("hidden"),
        second=new[shown],
        second_tail=tail_of(new, shown),
        names=(say("before_step"), say("after_step")),
        colors=(viz.NEUTRAL, viz.MODEL),
    )
    where = "after" if stage.causal else "in_place_of"
    st.markdown(say(f"place.{where}", at=at, token=literal(stage.name(ids[at]))))
    show(fig, key="step_probs")


def _probs(stage: Stage, model: Transformer, text: str, at: int) -> NDArray[np.float64]:
    return softmax(look(model, stage.stepper.tokenizer, text, at).logits)
