"""A trained model learns what is preferred: of two answers the chosen one becomes likelier (DPO)."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import viz
from engine.config import Aim
from engine.pair_files import Preference
from engine.tuning_plan import AFTER_ANSWERS, RATES
from ui import (
    lesson,
    session,
    tuning_data,
    tuning_form,
    tuning_losses,
    tuning_models,
    tuning_pairs,
    tuning_run,
    tuning_samples,
    tuning_settings,
    tuning_shares,
    tuning_spec,
    worked_tuning,
)
from ui.components import show
from ui.model_refs import ModelRef
from ui.tuning_models import Compared
from ui.tuning_pairs import Pairs
from ui.words import literal
from viz.tuning import reward_margins
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.tuning_preferences")

AIM: Aim = "preferences"
PAIRS = tuning_pairs.PairChoice("preferences")
PAIR = "tuning_pair_preferences"
OWN = "\n".join(
    f'{{"prompt": "{prompt}", "chosen": "{polite}", "rejected": "{rude}"}}'
    for prompt, polite, rude in (
        ("May I come in?", "Please do.", "No."),
        ("Can you help me?", "Of course.", "Not now."),
        ("Is this seat free?", "It is, please sit down.", "Go away."),
        ("Do you know the way?", "I will show you.", "Look it up."),
        ("Was it you who called?", "Yes, thank you for coming.", "So what?"),
    )
)


def draw() -> None:
    """Draw the view."""
    ref = tuning_models.require_start()
    pairs, problem = tuning_form.read(PAIRS)
    info = tuning_run.head(AIM, lambda: tuning_form.spec(ref, PAIRS), ready=pairs is not None)
    left, right = st.columns([2, 1], gap="medium")
    with right:
        tuning_form.pairs(ref, PAIRS, pairs, problem, _careful)
    with left:
        _picture(ref, info, pairs)
    _try(ref)


def _careful(ref: ModelRef) -> None:
    """A lower rate, offered where the usual one would wipe out the answers that the start has learned."""
    if ref.kind == "run" and ref.corpus == "answers" and tuning_settings.value(AIM, "rate") > AFTER_ANSWERS:
        st.warning(say("too_fast", usual=f"{RATES[AIM]:g}", lower=f"{AFTER_ANSWERS:g}"))
        st.button(
            say("slower", rate=f"{AFTER_ANSWERS:g}"), key="tuning_slower", on_click=_set,
            args=("rate", AFTER_ANSWERS),
        )  # fmt: skip


def _picture(ref: ModelRef, info: "RunInfo | None", pairs: Pairs | None) -> None:
    """The margins of the held-out pairs; of a run that has ended, those that it reached."""
    models = None
    if info is not None:
        tuning_run.watch(info)
        models = tuning_models.compared(info)
        try:
            pairs = tuning_pairs.of_run(PAIRS.aim, info.folder)
        except ValueError as error:
            st.error(literal(str(error)))
            return
    if pairs is None:
        return
    kind = tuning_spec.framing_of(ref) if info is None else info.train.framing
    beta = float(tuning_settings.value(AIM, "beta")) if info is None else info.train.beta
    before, after = (ref, ref) if models is None else models
    try:
        _margins(before, after, pairs.shown, kind, beta)
    except ValueError as error:
        st.error(literal(str(error)))
        return
    if info is not None and models is not None:
        _share(models, pairs, kind)
        tuning_losses.draw(info, models.after)


def _margins(before: ModelRef, after: ModelRef, pairs: list[Preference], kind: str, beta: float) -> None:
    """The bars, the chosen pair, and its numbers worked out."""
    from engine.tuning_view import Share

    trained = before != after
    ours, start = (tuning_data.log_probs(ref, pairs, kind) for ref in (after, before))
    gains = ours - start
    margins = beta * (gains[:, 0] - gains[:, 1])
    order = np.argsort(-margins, kind="stable")
    st.markdown(say("margins_after") if trained else say("margins_before"))
    chosen = _chosen(len(pairs))
    show(
        reward_margins(margins[order], trained=trained, chosen=chosen), key="tuning_margins",
        on_press=lambda column, _: st.session_state.update({PAIR: column}),
    )  # fmt: skip
    if trained:
        right = Share(len(margins), int((margins > 0).sum()))
        st.markdown(
            say("accuracy", yes=right.yes, n=right.n, share=right.share, error=100 * right.error,
                mean=viz.format_number(float(margins.mean())))
        )  # fmt: skip
    if len(pairs) > 1:
        st.number_input(
            say("which_pair", last=len(pairs) - 1), 0, len(pairs) - 1, key=PAIR, persist_state="session",
            width=260,
        )  # fmt: skip
    at = int(order[chosen])
    _one(pairs[at], ours[at], start[at], trained)
    st.latex(worked_tuning.margin(_two(ours[at]), _two(start[at]), beta))
    st.latex(worked_tuning.preference_loss(float(margins[at])))
    st.caption(say("meaning", beta=f"{beta:g}"))


def _two(row: NDArray[np.float64]) -> tuple[float, float]:
    return float(row[0]), float(row[1])


def _chosen(n: int) -> int:
    """The pair that is looked at, counted in the picture's order."""
    if not 0 <= int(st.session_state.setdefault(PAIR, 0)) < n:
        st.session_state[PAIR] = 0
    return int(st.session_state[PAIR])


def _one(pair: Preference, ours: NDArray[np.float64], start: NDArray[np.float64], trained: bool) -> None:
    """The two answers of a pair, and how likely each is."""
    st.text(pair.prompt)
    for k, (place, which) in enumerate(zip(st.columns(2), ("chosen", "rejected"), strict=True)):
        with place.container(border=True, height="stretch"):
            st.markdown(say(f"answer.{which}"))
            tuning_samples.shown(pair.chosen if which == "chosen" else pair.rejected)
            numbers = {"before": viz.format_number(start[k], 4), "after": viz.format_number(ours[k], 4)}
            st.caption(say("log_prob_both" if trained else "log_prob", **numbers))


def _share(models: Compared, pairs: Pairs, kind: str) -> None:
    st.subheader(say("does_it_do_it"))
    if pairs.kind != "stories":
        st.caption(say("nobody_can_tell"))
    tuning_shares.draw(AIM, models, pairs.shown, kind, judged=pairs.kind == "stories")


def _own() -> None:
    """Five polite answers. For `on_click`."""
    st.session_state[PAIRS.key("pairs")] = "pasted"
    st.session_state[PAIRS.key("paste")] = OWN


def _set(name: str, new: float) -> None:
    tuning_settings.fill(AIM, **{name: new})


def _go_on_from(model_id: str) -> None:
    """Start from a model that answers, at a rate that leaves its answers whole. For `on_click`."""
    session.choose_model(model_id)
    _set("rate", AFTER_ANSWERS)


def _try(ref: ModelRef) -> None:
    second = lesson.Step(say("try_fast"), say("ten_times"), _set, ("rate", 10 * RATES[AIM]))
    answers = next((info for info in tuning_run.mine("answers") if info.has_checkpoint), None)
    if answers is not None and ref.id != f"run:{answers.id}":
        second = lesson.Step(say("try_chain"), say("from_answers"), _go_on_from, (f"run:{answers.id}",))
    lesson.try_this(
        lesson.Step(say("try_beta"), say("large_beta"), _set, ("beta", 1.0)),
        second,
        lesson.Step(say("try_own"), say("own_pairs"), _own),
        key="tuning_preferences_try",
    )
