"""How often a model does what is wanted, before and after, on prompts that it never learned from."""

import time
from typing import Any

import streamlit as st

import viz
from engine.pair_files import Pair, Preference
from ui import tuning_data, tuning_samples
from ui.components import show
from ui.tuning_data import Answers
from ui.tuning_models import Compared
from viz.tuning import share_bars
from wording import words

say = words("ui.tuning_shares")

SHOWN = 3  # answers side by side
PIECE = 0.8  # seconds of writing in one run of the fragment, so that the page stays quick
POLL = 0.2
HEIGHT = 190  # pixels of an answer; a long one scrolls


def draw(
    aim: str, models: Compared, pairs: list[Pair] | list[Preference], kind: str, *, judged: bool
) -> None:
    """The share of all prompts whose answer is good, and three answers side by side.

    Args:
        aim: "answers" or "preferences".
        models: before and after.
        pairs: held out; whose prompts are used.
        kind: of framing.
        judged: whether it can be told if an answer is good.
    """
    seed = tuning_samples.dice()
    n = len(pairs) if judged else min(SHOWN, len(pairs))
    both = [tuning_data.answers(ref, aim, pairs[:n], kind, 100_000 * seed, judged=judged) for ref in models]
    asked = f"_tuning_write_{aim}"
    if models.after.large and not _done(both) and not st.session_state.get(asked):
        st.button(say("write", n=2 * n), key=f"tuning_write_{aim}", on_click=_ask, args=(asked,))
        st.caption(say("slow"))
        return
    waiting = not _done(both)
    st.fragment(_draw, run_every=POLL if waiting else None)(aim, models, both, judged, waiting)


def _ask(key: str) -> None:
    st.session_state[key] = True


def _done(both: list[Answers]) -> bool:
    return all(len(answers.done) == answers.n for answers in both)


def _draw(aim: str, models: Compared, both: list[Answers], judged: bool, waiting: bool) -> None:
    at = min(len(answers.done) for answers in both)
    if judged:
        _shares(aim, both, at)
    _answers(aim, models, both, min(at, SHOWN), judged)
    _work(both)  # last: what is drawn already does not turn pale meanwhile
    if waiting and _done(both):
        st.rerun()  # no more polls


def _work(both: list[Answers]) -> None:
    """Write for a moment, the same prompts with both models."""
    ends = time.monotonic() + PIECE
    while not _done(both) and time.monotonic() < ends:
        at = min(len(answers.done) for answers in both)
        for answers in both:
            answers.work(at + 1)


def _shares(aim: str, both: list[Answers], at: int) -> None:
    from engine.tuning_view import share_of

    n = both[0].n
    if at < n:
        st.progress(at / n, text=say("writing", at=at, n=n))
    if not at:
        return
    found = [share_of(answers.done[:at]) for answers in both]
    names = [say("before"), say("after")]
    fig = share_bars(names, [one.share for one in found], [one.error for one in found],
                     unit=say(f"unit.{aim}"))  # fmt: skip
    show(fig, key=f"tuning_shares_{aim}")
    numbers: dict[str, Any] = {}
    for which, one in zip(("before", "after"), found, strict=True):
        numbers |= {
            f"{which}_yes": one.yes, f"{which}_low": one.interval[0], f"{which}_high": one.interval[1]
        }  # fmt: skip
    st.caption(say(f"counted.{aim}", n=at, **numbers))
    last = found[1]
    st.latex(
        r"\text{" + say("error") + r"} = \sqrt{\frac{p\,(1-p)}{n}} = "
        rf"\sqrt{{\frac{{{last.yes}/{last.n} \cdot {last.n - last.yes}/{last.n}}}{{{last.n}}}}}"
        rf" = {viz.format_number(last.error)}"
    )
    if last.yes in (0, last.n):
        st.caption(say("all_or_none"))


def _answers(aim: str, models: Compared, both: list[Answers], n: int, judged: bool) -> None:
    if n:
        st.subheader(say("side_by_side"))
    for k in range(n):
        tuning_samples.shown(both[0].done[k].prompt)
        columns = st.columns(2)
        for ref, answers, place, which in zip(models, both, columns, ("before", "after"), strict=True):
            answer = answers.done[k]
            with place.container(border=True, height=HEIGHT):
                mark = (say(f"good.{aim}") if answer.good else say(f"not_good.{aim}")) if judged else ""
                st.caption(f"{tuning_samples.title(ref, which)}{mark}")
                tuning_samples.shown(answer.text or say("nothing_written"))
