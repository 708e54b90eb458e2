"""Worked examples about writing: cropping to the context, and the loop that generation is."""

import math
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui import passes, resources, session
from ui.components import show, token_strip
from ui.example_sum import Number, typed
from ui.example_text import Chip
from ui.model_refs import ModelRef
from viz import distribution_bars, visible
from wording import words

if TYPE_CHECKING:
    from engine.sampling import Step

say = words("ui.example_write")
_TURNS = "_example_turns"
_MOST = 40  # turns
_DRAWN = 48  # tokens of a long text
_TABLE = (  # logits of what comes after each word, in the order of the words
    "-4, 2, -4, -4, 1.6, -4\n-4, -4, 2.5, 0.5, -4, 0\n0, -4, -4, 2.5, -4, 0.5\n"
    "3, 0, -4, -4, 0, -4\n-4, -4, 0, 0, -4, 2.5\n2, -1, -4, -4, -1, -4"
)


# ---- cropping


def crop() -> None:
    """A model sees the last T tokens, and nothing before them."""
    from engine.worked_text import crop as cropped

    ref = frame.real(None, needs_text=1)
    if ref is not None:
        tokens = resources.tokenizer(ref).tokens(session.text()[-20_000:])
        pieces, ids, text = [t.data for t in tokens], [t.id for t in tokens], session.text()
        before, after = resources.tokenizer(ref).frame
        limit = ref.context_length - len(before) - len(after)
        t = inputs.count("crop_real_t", say("context"), min(limit, 8), 1, limit)
    else:
        with frame.inputs():
            text = inputs.text("crop_text", say("prompt"), say("default.prompt"))
            t = inputs.count("crop_t", say("context"), 4, 1, 100)
        pieces = [word.encode() for word in text.split()]
        ids = list(range(len(pieces)))
    n = len(pieces)
    kept = len(cropped(ids, t))
    first = max(0, n - max(_DRAWN, 1))

    def picture() -> None:
        chips = [[Chip(i, piece)] for i, piece in zip(ids[first:], pieces[first:], strict=True)]
        token_strip(
            chips, key="example_crop_strip", greyed=range(max(0, n - kept - first)), label=say("crop_label")
        )
        st.caption(say("crop_pale"))

    def lines() -> None:
        frame.formula(
            rf"n &= {n},\quad T = {t}",
            rf"\min(n, T) &= \min({n}, {t}) = {kept}",
            rf"\mathbf{{s}} &: (1, {kept}),\qquad {n} - {kept} = {n - kept}",
        )
        st.caption(say("crop_note", n=t, text=frame.escaped([visible(text[-t:])])[0]))

    frame.beside(picture, lines)


# ---- the loop


def generation() -> None:
    """Predict, pick, append, repeat."""
    ref = frame.real(needs_text=1)
    if ref is not None:
        _real_loop(ref)
        return
    from engine.worked_text import write

    with st.expander(say("model"), icon=":material/table:"):
        called = inputs.names("write_words", say("words"), say("default.words"))
        rows = inputs.table("write_table", say("table"), _TABLE)
        if len(rows) != len(called) or {len(row) for row in rows} != {len(called)}:
            raise ValueError(say("square", n=len(called)))
    with frame.inputs():
        start = inputs.text("write_start", say("start"), called[0]).split()
        t, seed = _settings()
    table = dict(zip(called, rows, strict=True))
    n = _buttons()
    turns = write(table, start, n + 1, seed=seed, temperature=t)
    now = turns[n]
    read = [*start, *(called[turn.picked] for turn in turns[:n])]

    def picture() -> None:
        chips = [[Chip(called.index(word), word.encode())] for word in read]
        _text(chips, len(start))
        show(
            distribution_bars(
                called, now.probs, tail=0, n_tail=0, true_index=now.picked, true_note=say("picked")
            ),
            key="example_write_bars",
        )  # fmt: skip

    def lines() -> None:
        z = ",\\ ".join(typed(x) for x in table[now.read[-1]])
        _loop_lines([rf"\mathbf{{z}} &= ({z})"], now.probs[now.picked], now.u, now.picked, t)
        _cumulative(called, list(now.probs), now.u, now.picked)

    frame.beside(picture, lines)
    st.caption(say("loop_note"))


def _settings() -> tuple[float, int]:
    t = inputs.number("write_temperature", say("temperature"), 1.0, 0.0, 10.0, 0.1)
    return t, inputs.count("write_seed", say("seed"), 0, 0, 9999)


def _buttons() -> int:
    """How many turns have been made: one more at each press, none after "again"."""
    state = st.session_state

    def step() -> None:
        state[_TURNS] = min(state.get(_TURNS, 0) + 1, _MOST)

    def again() -> None:
        state[_TURNS] = 0

    with st.container(horizontal=True):
        full = state.get(_TURNS, 0) >= _MOST
        st.button(
            say("step"), key="example_write_step", on_click=step, type="primary", disabled=full,
            icon=":material/skip_next:",
        )  # fmt: skip
        st.button(say("again"), key="example_write_again", on_click=again, icon=":material/replay:")
    return int(state.get(_TURNS, 0))


def _text(chips: list[list[Chip]], n_start: int) -> None:
    values = ["" if i < n_start else f"+{i - n_start + 1}" for i in range(len(chips))]
    shown = max(0, len(chips) - _DRAWN)
    token_strip(chips[shown:], key="example_write_strip", values=values[shown:], label=say("written"))


def _loop_lines(first: list[str], p: float, u: float, picked: int, t: float) -> None:
    pick = rf"u &= {Number(u, 4)}" if t > 0 else r"\arg\max_i p_i &"
    frame.formula(
        *first,
        rf"\mathbf{{p}} &= \mathrm{{softmax}}(\mathbf{{z}} / {t:g})" if t > 0 else r"\tau &= 0",
        pick if t > 0 else rf"\arg\max_i p_i &= {picked}",
        rf"p_{{{picked}}} &= {Number(float(p), 4)}",
    )


def _cumulative(names: list[str], probs: list[float], u: float, picked: int) -> None:
    """The line from 0 to 1 on which u falls."""
    ends = np.cumsum(probs).tolist()
    marked = [f"**{name}** ◀" if i == picked else name for i, name in enumerate(frame.escaped(names))]
    frame.grid({
        say("column.word"): marked,
        "$p$": [Number(p, 3) for p in probs],
        "$\\sum p$": [f"{end:.4f}" for end in ends],
    })  # fmt: skip
    if not math.isnan(u):
        st.caption(say("line_note", u=f"{u:.4f}"))


@st.cache_resource(max_entries=64, show_spinner=False)
def _turn(
    ref: ModelRef, prompt: tuple[int, ...], t: float, seed: int, n: int
) -> "tuple[tuple[int, ...], Step]":
    """Ids of the first n turns, and the turn after them: what was drawn before is remembered."""
    from engine.sampling import generate

    drawn: tuple[int, ...] = ()
    if n:
        before, last = _turn(ref, prompt, t, seed, n - 1)
        drawn = (*before, last.id)
    model = resources.load(ref).model
    return drawn, next(generate(model, [*prompt, *drawn], n_tokens=1, temperature=t, seed=seed, skip=n))


def _real_loop(ref: ModelRef) -> None:
    """The same loop with the chosen model and the text of the sidebar."""
    from engine.metrics import tail_of

    with frame.inputs():
        t, seed = _settings()
    n = _buttons()
    window = passes.window(ref, session.text())
    prompt = [token.id for token in window.tokens]
    drawn, now = _turn(ref, tuple(prompt), t, seed, n)
    names, ids, n_rest = frame.likeliest(ref, np.log(np.maximum(now.probs, 1e-300)), also=now.id)
    probs = [float(now.probs[i]) for i in ids]
    at = ids.index(now.id)

    def picture() -> None:
        written = [*prompt, *drawn]
        data = [token.data for token in window.tokens]
        data += [resources.tokenizer(ref).token_bytes(i) for i in drawn]
        _text([[Chip(i, piece)] for i, piece in zip(written, data, strict=True)], len(prompt))
        fig = distribution_bars(
            names, probs, tail=tail_of(now.probs, ids), n_tail=n_rest, true_index=at, true_note=say("picked")
        )
        show(fig, key="example_write_bars")

    def lines() -> None:
        seen = min(len(prompt) + n, ref.context_length)
        first = [rf"\mathbf{{s}} &: (1, {seen}),\quad \mathbf{{z}} : {len(now.probs)}"]
        low = float(np.cumsum(now.probs)[now.id] - now.probs[now.id])
        _loop_lines(first, now.probs[now.id], now.u, now.id, t)
        if t > 0:
            st.caption(
                say(
                    "stretch",
                    low=f"{low:.4f}",
                    high=f"{low + float(now.probs[now.id]):.4f}",
                    u=f"{now.u:.4f}",
                )
            )

    frame.beside(picture, lines)
    st.caption(say("loop_note"))
