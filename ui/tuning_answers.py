"""A trained model learns to answer: only the answer counts, and fresh prompts say if it worked."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

import viz
from engine.config import Aim
from engine.mask_draws import UNSCORED
from engine.pair_files import Pair
from ui import (
    lesson,
    resources,
    tuning_data,
    tuning_form,
    tuning_losses,
    tuning_models,
    tuning_pairs,
    tuning_run,
    tuning_settings,
    tuning_shares,
    tuning_spec,
    worked_tuning,
)
from ui.cells import table_csv
from ui.components import token_strip
from ui.lesson import brief
from ui.model_refs import ModelRef
from ui.tuning_data import Read
from ui.tuning_pairs import Pairs
from ui.words import literal
from viz.masking import fate_color
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.tuning_answers")

AIM: Aim = "answers"
PAIRS = tuning_pairs.PairChoice("answers")
PAIR = "tuning_pair_answers"
SCROLLS = 120  # tokens
OWN = "\n".join(
    f'{{"prompt": "What does the {one} say?", "answer": "The {one} says {sound}."}}'
    for one, sound in (("cat", "meow"), ("dog", "woof"), ("cow", "moo"), ("duck", "quack"), ("owl", "hoot"))
)


def draw() -> None:
    """Draw the view."""
    ref = tuning_models.require_start()
    pairs, problem = tuning_form.read(PAIRS)
    info = tuning_run.head(AIM, lambda: tuning_form.spec(ref, PAIRS), ready=pairs is not None)
    left, right = st.columns([2, 1], gap="medium")
    with right:
        tuning_form.pairs(ref, PAIRS, pairs, problem)
    with left:
        _picture(ref, info, pairs)
    _try()


def _picture(ref: ModelRef, info: "RunInfo | None", pairs: Pairs | None) -> None:
    """The pair, with what the model makes of it; of a run that has ended, before and after."""
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
    before, after = (ref, ref) if models is None else models
    try:
        _pair(before, after, _chosen(pairs), kind)
    except ValueError as error:
        st.error(literal(str(error)))
        return
    if info is not None and models is not None:
        st.subheader(say("does_it_answer"))
        if pairs.kind != "stories":
            st.caption(say("nobody_can_tell"))
        tuning_shares.draw(AIM, models, pairs.shown, kind, judged=pairs.kind == "stories")
        tuning_losses.draw(info, models.after)


def _chosen(pairs: Pairs) -> Pair:
    """The pair that is looked at."""
    shown = pairs.shown
    last = len(shown) - 1
    if not 0 <= int(st.session_state.setdefault(PAIR, 0)) <= last:
        st.session_state[PAIR] = 0
    if last:
        st.number_input(say("which_pair", last=last), 0, last, key=PAIR, persist_state="session", width=260)
    found: Pair = shown[min(int(st.session_state[PAIR]), last)]
    return found


def _pair(before: ModelRef, after: ModelRef, pair: Pair, kind: str) -> None:
    found = tuning_data.read(before, after, pair, kind)
    changed = before != after
    st.markdown(say("one_pair"))
    for which in ("before", "after") if changed else ("before",):
        if changed:
            st.markdown(say(f"strip.{which}"))
        _strip(found, which, resources.tokenizer(before).vocab_size)
    st.caption(say("how_to_read"))
    n, left_out = found.n_counted, len(found.tokens) - found.n_counted
    totals = {which: found.loss(which) * n for which in (("before", "after") if changed else ("before",))}
    st.latex(worked_tuning.answer_loss(totals, n, left_out))
    st.caption(say("formula", n=n, left_out=left_out))
    _take_away(found, changed)


def _strip(found: Read, which: str, vocab_size: int) -> None:
    most = float(np.log(vocab_size))
    costs = [getattr(token, which) for token in found.tokens]
    colors = [
        viz.surprisal_color(cost, most) if token.counted else fate_color(UNSCORED)
        for token, cost in zip(found.tokens, costs, strict=True)
    ]
    values = [
        "–" if cost is None else brief(cost) if token.counted else f"({brief(cost)})"
        for token, cost in zip(found.tokens, costs, strict=True)
    ]
    long = len(costs) > SCROLLS
    with st.container(height=260 if long else "content", border=long):
        token_strip(
            [[chip] for chip in found.chips], key=f"tuning_strip_{which}", values=values, colors=colors,
            label=say(f"strip.{which}"),
        )  # fmt: skip


def _take_away(found: Read, changed: bool) -> None:
    told = {True: say("column.yes"), False: say("column.no")}
    columns: dict[str, Any] = {
        say("column.token"): [token.text for token in found.tokens],
        say("column.counted"): [told[token.counted] for token in found.tokens],
        say("column.before"): [token.before for token in found.tokens],
    }  # fmt: skip
    if changed:
        columns[say("column.after")] = [token.after for token in found.tokens]
    table = pd.DataFrame(columns)
    st.download_button(
        say("numbers"), lambda: table_csv(table), file_name="pair.csv", mime="text/csv",
        key="tuning_csv", icon=":material/download:", type="tertiary", on_click="ignore",
    )  # fmt: skip


def _own() -> None:
    """Five pairs of one's own. For `on_click`."""
    st.session_state[PAIRS.key("pairs")] = "pasted"
    st.session_state[PAIRS.key("paste")] = OWN


def _few() -> None:
    tuning_settings.fill(AIM, steps=20)


def _freeze() -> None:
    tuning_settings.fill(AIM, part="last", blocks=1)


def _try() -> None:
    lesson.try_this(
        lesson.Step(say("try_few"), say("twenty_steps"), _few),
        lesson.Step(say("try_freeze"), say("freeze"), _freeze),
        lesson.Step(say("try_own"), say("own_pairs"), _own),
        key="tuning_answers_try",
    )
