"""Blanks and a causal model alone: candidates from the left, then each rescored by what comes after it."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import viz
from engine import infill
from ui import hiding, lesson, resources, worked_fill
from ui.components import show, token_strip
from ui.hiding import GapText
from ui.model_refs import ModelRef
from ui.words import duration, literal
from wording import words

say = words("ui.infill_view")

TRIED = "masking_infill_tried"
_DONE, _ASKED, _SPEED = "_masking_infill_done", "_masking_infill_asked", "_masking_infill_speed"
SIZES = (64, 256, 1024, 4096)
KEPT = 16  # of several blanks, how many fillings go on to the next one
SHOWN = 8
MOST_BLANKS = 8
MOST_WORK = 60_000  # tokens that are read at most: minutes with 135 million parameters
QUICK = 5.0  # seconds that are not asked for
SPEED = 3.2e10  # parameters times tokens a second of one core, before anything was measured
SCROLLS = 60  # tokens
CAPITAL = "The capital of [MASK] is Paris."
MILK = "She put the milk back in the [MASK] so that it would stay cold."
KEEP: dict[str, Any] = {"persist_state": "session"}


@dataclass(frozen=True, eq=False)
class Tried:
    """What was found in the blanks of one text.

    Attributes:
        found: the fillings that were read to the end.
        left: (N,) log-probabilities of the candidates of the first blank, from the left alone; NaN otherwise.
        seconds: how long it took.
    """

    found: infill.Rescored
    left: NDArray[np.float64]
    seconds: float


def draw(ref: ModelRef, whole: str) -> None:
    """Draw the view for a causal model and the text of all pages."""
    st.write(say("about"))
    text = hiding.read(ref, whole)
    hidden = hiding.hidden(ref, text, whole)
    _strip(ref, text, hidden)
    if not hidden:
        st.info(say("nothing_hidden"))
    elif len(hidden) > MOST_BLANKS:
        st.info(say("too_many", n=len(hidden), most=MOST_BLANKS))
    else:
        _fill(ref, text, hidden)
    lesson.try_this(
        lesson.Step(say("try_capital"), say("capital"), hiding.story, (CAPITAL, "", False)),
        lesson.Step(say("try_milk"), say("milk"), hiding.story, (MILK, "", False)),
        key="masking_infill_try",
    )


def _strip(ref: ModelRef, text: GapText, hidden: list[int]) -> None:
    if text.unused:
        st.caption(say("last", seen=len(text.seen), all=len(text.tokens)))
    hiding.look_at(hidden)
    long = len(text.seen) > SCROLLS
    with st.container(height=180 if long else "content", border=long):
        token_strip(
            text.segments, key=hiding.STRIP, hidden=hidden, on_press=hiding.press, label=say("strip")
        )  # fmt: skip


def _fill(ref: ModelRef, text: GapText, hidden: list[int]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        tried = int(
            st.select_slider(
                say("candidates"), SIZES, 256, key=TRIED, width=260, help=say("candidates_help"), **KEEP
            )  # fmt: skip
        )
        key = (ref, tuple(text.ids), tuple(hidden), tried)
        kept: dict[Any, Tried] = st.session_state.setdefault(_DONE, {})
        n_read = tried * (len(text.ids) - hidden[0])
        seconds = n_read * ref.n_params / float(st.session_state.get(_SPEED, SPEED))
        if n_read > MOST_WORK:
            st.caption(say("too_much", n=n_read, most=MOST_WORK))
            return
        st.button(say("try_all", n=tried), key="masking_infill_go", type="primary", disabled=key in kept,
                  on_click=_ask, args=(key,))  # fmt: skip
        estimate = st.empty()
        if key not in kept:
            estimate.caption(say("estimate", left=duration(seconds)))
    if key not in kept and seconds > QUICK and st.session_state.get(_ASKED) != key:
        return
    if key not in kept:
        kept[key] = _try(ref, text, hidden, tried)
        st.session_state[_SPEED] = n_read * ref.n_params / kept[key].seconds  # as busy as the machine is
        estimate.empty()
        while len(kept) > 8:
            del kept[next(iter(kept))]
    _picture(ref, text, hidden, kept[key])


def _ask(key: tuple[Any, ...]) -> None:
    """Remember what is to be tried, also if this run is started over. For `on_click`."""
    st.session_state[_ASKED] = key


def _stop() -> None:
    """Try no more. For `on_click`."""
    st.session_state[_ASKED] = None


def _try(ref: ModelRef, text: GapText, hidden: list[int], tried: int) -> Tried:
    """Read the candidates on, with progress; a click on anything ends it at the next part."""
    tokenizer, model = resources.tokenizer(ref), resources.load(ref).model
    before = tokenizer.frame[0]
    ids, places = [*before, *text.ids], [len(before) + place for place in hidden]
    bar, began = st.empty(), time.monotonic()
    stop = st.empty()
    stop.button(say("stop"), key="masking_infill_stop", on_click=_stop)

    def tell(done: int, n: int) -> None:
        spent = time.monotonic() - began
        left = say("left", left=duration(spent / done * (n - done))) if done and spent > 1 else ""
        bar.progress(done / n, f"{say('reading', done=done, n=n)} {left}")

    found = infill.rescore(model, ids, places, tried=tried, kept=KEPT, tell=tell)
    first = infill.left_log_probs(model, ids[: places[0]])
    left = first[found.tried[:, 0]] if len(places) == 1 else np.full(len(found.tried), np.nan)
    bar.empty()
    stop.empty()
    return Tried(found, left, time.monotonic() - began)


def _picture(ref: ModelRef, text: GapText, hidden: list[int], made: Tried) -> None:
    """Each candidate's probability from the left, and its share once the right has been read."""
    found, data_of = made.found, resources.tokenizer(ref).token_bytes
    shares, best = found.shares, int(np.argmax(made.left)) if len(hidden) == 1 else 0
    rows = list(range(min(SHOWN, len(shares))))
    if best not in rows:
        rows[-1] = best  # what the left alone would say
    names = [" … ".join(viz.visible(data_of(int(i))) for i in found.tried[row]) for row in rows]
    about = {"best": literal(names[0]), "share": viz.format_prob(float(shares[0])), "n": len(shares)}
    if len(hidden) > 1:
        st.markdown(say("answers", **about))
    else:
        left = viz.format_prob(float(np.exp(made.left[0])))
        first = literal(names[rows.index(best)])
        st.markdown(say("answer", **about, left=left, first=first))
        _bars(names, shares[rows], np.exp(made.left[rows]), len(shares) - len(rows))
    _table(names, made, rows)
    if len(hidden) == 1:
        _facts(ref, text, hidden[0], made)
    st.caption(say("took", seconds=viz.format_number(made.seconds)))


def _bars(names: list[str], shares: NDArray[Any], left: NDArray[Any], n_tail: int) -> None:
    fig = viz.distribution_bars(
        names, shares, tail=max(0.0, 1 - float(shares.sum())), n_tail=n_tail, second=left,
        second_tail=max(0.0, 1 - float(left.sum())), names=(say("both_sides"), say("left_alone")),
        colors=(viz.objective_color("mlm"), viz.objective_color("clm")),
    )  # fmt: skip
    show(fig, key="masking_infill_bars")


def _table(names: list[str], made: Tried, rows: list[int]) -> None:
    columns: dict[str, list[Any]] = {say("column.filling"): list(names)}
    total, left, shares = made.found.log_probs, made.left, made.found.shares
    logs = [say("column.left"), say("column.right"), say("column.both")]
    one = bool(np.isfinite(left).all())
    if one:
        columns |= {logs[0]: left[rows].tolist(), logs[1]: (total - left)[rows].tolist()}
    columns |= {logs[2]: total[rows].tolist(), say("column.share"): shares[rows].tolist()}
    config = {name: st.column_config.NumberColumn(format="%.4g") for name in logs}
    config[say("column.share")] = st.column_config.NumberColumn(format="%.4g")
    st.dataframe(columns, hide_index=True, column_config=config, key="masking_infill_table")
    if one:
        with st.expander(say("worked")):
            all_ = float(total[0] - np.log(shares[0]))
            st.markdown(f"**“{literal(names[0])}”**")
            st.latex(worked_fill.bayes(float(left[0]), float((total - left)[0]), all_, len(total)))


def _facts(ref: ModelRef, text: GapText, place: int, made: Tried) -> None:
    """How much the candidates cover, and what became of the token that was hidden."""
    if made.found.exact:
        st.caption(say("exact", n=len(made.left)))
    else:
        covered = viz.format_prob(float(np.exp(made.left).sum()))
        st.caption(say("covered", n=len(made.left), covered=covered))
    if place not in text.typed:
        _hidden_one(ref, text.ids[place], made)


def _hidden_one(ref: ModelRef, token_id: int, made: Tried) -> None:
    """Where the token that was hidden stands."""
    name = literal(viz.visible(resources.tokenizer(ref).token_bytes(token_id)))
    at = np.flatnonzero(made.found.tried[:, 0] == token_id)
    if len(at):
        share = viz.format_prob(float(made.found.shares[at[0]]))
        st.caption(say("hidden_was", token=name, rank=int(at[0]) + 1, share=share))
    else:
        st.caption(say("hidden_left_out", token=name))
