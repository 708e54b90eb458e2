"""Filling, one step after the other: the text as it grows, a table of the choices, and their product."""

from collections import Counter
from contextlib import suppress

import numpy as np
import streamlit as st

import viz
from engine.fill import Fill
from engine.fill_scores import GIBBS, RESCORED
from engine.infill import Rescored
from ui import fill_data, hiding, resources, worked_fill
from ui.components import show, token_strip
from ui.fill_data import WAYS, Fills
from ui.hiding import Both
from ui.lesson import literal
from ui.player import Player
from ui.words import counted
from viz.fill import gibbs_shares
from wording import words

say = words("ui.fill_steps")

WAY = "masking_fill_way"
_ABOUT = "_masking_fill_about"
PLAYER = Player("masking_fill", "masking_fill_step", width=260)
_SHOWN = 6  # tokens of one place that are drawn, and fillings in the table


def choose(way: str) -> None:
    """Choose a way before it is drawn. For callbacks."""
    st.session_state[WAY] = way


def draw(both: Both, made: Fills) -> None:
    """Draw one way, step by step."""
    ways = list(made.found)
    if st.session_state.get(WAY) not in ways:
        st.session_state[WAY] = ways[0]
    way = str(
        st.segmented_control(
            say("way_filling"), ways, format_func=lambda way: WAYS[way].name, key=WAY, required=True,
            persist_state="session", label_visibility="collapsed", wrap=True,
        )
    )  # fmt: skip
    st.caption(WAYS[way].how)
    fill = made.found[way]
    about = (both.masked.identity, way, fill.choices)
    if st.session_state.get(_ABOUT) != about:  # another filling: all of it is shown at first
        st.session_state[_ABOUT] = about
        PLAYER.go(len(fill.choices))
        PLAYER.rest()
    PLAYER.draw(len(fill.choices), lambda n, playing: _picture(both, way, fill, n), len(fill.choices))
    if way == GIBBS:
        _gibbs(both, fill)
    elif way == RESCORED and made.rescored is not None:
        _rescored(both, made.rescored)
    else:
        st.latex(worked_fill.product([fill_data.probability(choice) for choice in fill.choices]))


def _picture(both: Both, way: str, fill: Fill, n: int) -> None:
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _text(both, way, fill, n)
    with right:
        _table(both, way, fill, n)


def _text(both: Both, way: str, fill: Fill, n: int) -> None:
    """The text after `n` steps; blanks that are still open are drawn as hidden."""
    tokenizer = resources.tokenizer(both.masked)
    now = fill.after(n)
    if way == GIBBS:
        seed = int(st.session_state["masking_fill_seed"])
        start = fill_data.start_of(both.masked, tuple(both.text.ids), tuple(both.hidden), seed)
        now = {**start, **now}
    newest = fill.choices[n - 1].place if n else -1
    tokens = [
        token._replace(id=now[i], data=tokenizer.token_bytes(now[i])) if i in now else token
        for i, token in enumerate(both.text.seen)
    ]
    notes = [say("new") if i == newest else say("filled") if i in now else "" for i in range(len(tokens))]
    with st.container(height=320 if len(tokens) > 60 else "content", border=False):
        token_strip(
            [[token] for token in tokens],
            key="masking_fill_strip",
            hidden=[i for i in both.hidden if i not in now],
            values=notes,
            label=say("text_after", n=counted(n, "step")),
        )
    if way == GIBBS and n == 0:
        st.caption(say("step_0_any_tokens"))


def _table(both: Both, way: str, fill: Fill, n: int) -> None:
    """Step, place, token, probability; of a long row the steps around this one."""
    data_of = resources.tokenizer(both.masked).token_bytes
    if not n:
        st.info(say("nothing_filled_yet_press"))
        return
    done = fill.choices[:n]
    rows: dict[str, list[object]] = {say("column.step"): list(range(1, n + 1))}
    if way == GIBBS:
        rows[say("column.sweep")] = [choice.sweep for choice in done]
    rows[say("column.position")] = [choice.place for choice in done]
    rows[say("column.token")] = [viz.visible(data_of(choice.id)) for choice in done]
    rows["p"] = [fill_data.probability(choice) for choice in done]
    newest_first = {name: values[::-1] for name, values in rows.items()} if len(fill.choices) > 8 else rows
    st.dataframe(
        newest_first, hide_index=True, height=min(36 * (n + 1) + 3, 320), key="masking_fill_steps",
        column_config={"p": st.column_config.NumberColumn(format="%.4g")},
    )  # fmt: skip


def _gibbs(both: Both, fill: Fill) -> None:
    """How often each token was drawn in the place that is looked at, beside the exact posterior."""
    place = st.session_state.get(hiding.PLACE)
    if place not in both.hidden:
        place = both.hidden[0]
    draws = [choice.id for choice in fill.choices if choice.place == place]
    top = [token for token, _ in Counter(draws).most_common(_SHOWN)]
    exact = None
    with suppress(ValueError):  # the exact answer is not known for this text: the draws are shown alone
        where = tuple(both.text.unused + i for i in both.hidden)
        ids = tuple(token.id for token in both.text.tokens)
        true = hiding.true_in_gap(both.masked, ids, where, both.text.unused + place)
        top += [int(i) for i in np.argsort(-true)[:3] if true[i] > 0.005 and int(i) not in top]
        exact = [float(true[i]) for i in top]
    data_of = resources.tokenizer(both.masked).token_bytes
    st.markdown(say("position_over_all_sweeps", place=place))
    show(
        gibbs_shares(
            [viz.visible(data_of(i)) for i in top],
            [draws.count(i) / len(draws) for i in top],
            len(draws),
            exact=exact,
        ),
        key="masking_fill_gibbs",
    )
    st.caption(say("long_run_draws_follow"))


def _rescored(both: Both, found: Rescored) -> None:
    """The fillings that were tried, the best first; of one blank Bayes' rule with its numbers."""
    data_of = resources.tokenizer(both.masked).token_bytes
    n = len(found.log_probs)
    shares = found.shares
    names = [" … ".join(viz.visible(data_of(int(i))) for i in row) for row in found.tried[:_SHOWN]]
    table: dict[str, list[object]] = {say("column.filling"): list(names)}
    logs = [say("column.left"), say("column.right"), say("column.both")]
    first, rest = list[float](), list[float]()
    if len(found.places) == 1 and both.causal is not None:
        left = fill_data.log_left(both.causal, tuple(both.text.ids[: found.places[0]]))
        first = [float(left[int(row[0])]) for row in found.tried[:_SHOWN]]
        rest = [float(total) - log for total, log in zip(found.log_probs, first, strict=False)]
        table |= {logs[0]: list(first), logs[1]: list(rest)}
    table[logs[2]] = [float(x) for x in found.log_probs[:_SHOWN]]
    table[say("column.share")] = [float(x) for x in shares[:_SHOWN]]
    config = {name: st.column_config.NumberColumn(format="%.4g") for name in logs}
    config[say("column.share")] = st.column_config.NumberColumn(format="%.4g")
    st.dataframe(table, hide_index=True, column_config=config, key="masking_fill_tried")
    if found.exact:
        st.caption(say("all_fillings_were_tried", n=n))
    else:
        st.caption(say("tried_end_were_fillings", n=n))
        if first:
            st.toggle(
                say("try_all_tokens", n=both.n_ids), key="masking_fill_every", persist_state="session",
                help=say("takes_some_seconds_right"),
            )  # fmt: skip
    if first and rest:
        total = float(found.log_probs[0] - np.log(shares[0]))
        st.markdown(f"**“{literal(names[0])}”**")
        st.latex(worked_fill.bayes(first[0], rest[0], total, n))
