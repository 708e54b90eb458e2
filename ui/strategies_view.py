"""Ways to choose tokens, side by side from one prompt: their texts, and the same measures for all."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from engine.strategies import STRATEGIES, Strategy, Written, distinct, write
from ui import resources, sampling_form
from ui.possible import LONGEST
from ui.resources import ModelRef
from ui.words import duration
from ui.writing import literal_html, say_what_is_seen
from viz import TRUE, clip, format_number, visible
from wording import words

say = words("ui.strategies_view")

_STORE, _RUN = "_strategies", "_strategies_run"
_KEPT = 6  # prompts and settings whose texts are kept


@dataclass(frozen=True)
class Row:
    """What one strategy wrote, measured.

    Attributes:
        log_prob, per_token: natural log of the model's own probability, before temperature and cuts.
        repeated: share of the runs of 4 tokens that came before; NaN for fewer than 4 tokens.
        distinct_1, distinct_2: shares of different tokens and pairs.
        text: the continuation.
        n_legal: characters of it that a story can have; None if there is no grammar to ask.
        broke_at: the word at which it breaks; empty if it does not.
    """

    name: str
    n_tokens: int
    log_prob: float
    per_token: float
    repeated: float
    distinct_1: float
    distinct_2: float
    text: str
    n_legal: int | None
    broke_at: str
    seconds: float


@dataclass
class Results:
    """The rows that are there so far, by the strategy's name."""

    rows: dict[str, Row] = field(default_factory=dict)


def strategies_view(ref: ModelRef, prompt: str) -> None:
    """Settings, the button, and the table; what was written is kept until the person leaves."""
    ids = resources.tokenizer(ref).encode(prompt)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sampling_form.length()
        sampling_form.seed_box()
        sampling_form.stop_at_end(ref)
    how = sampling_form.settings(ref)
    say_what_is_seen(ref, len(ids))
    results = _results((ref.id + ref.identity, prompt, how.n, how.seed, how.stop_ids))
    missing = [strategy for strategy in STRATEGIES if strategy.name not in results.rows]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(_words(missing), key="strategies_run", type="primary", on_click=ask, args=(not missing,))
        st.caption(say("all_begin_after_text"))
    place = st.empty()
    board = st.empty()
    board.html(table(list(results.rows.values()), prompt))
    if st.session_state.pop(_RUN, False):
        _run(ref, prompt, ids, how, results, missing, place, board)
        st.rerun()
    if results.rows:
        st.caption(_legend(resources.oracle_for(ref) is not None))


def ask(anew: bool = False) -> None:
    """Ask this run to write, with another seed if `anew`. For `on_click`."""
    st.session_state[_RUN] = True
    if anew:
        sampling_form.new_seed()


def _words(missing: list[Strategy]) -> str:
    if not missing:
        return say("write_again_new_seed")
    return (
        say("write_all_ways", n_strategies=len(STRATEGIES))
        if len(missing) == len(STRATEGIES)
        else say("write_others")
    )


def _results(about: tuple[Any, ...]) -> Results:
    kept: dict[tuple[Any, ...], Results] = st.session_state.setdefault(_STORE, {})
    if about not in kept:
        kept[about] = Results()
        while len(kept) > _KEPT:
            del kept[next(iter(kept))]
    return kept[about]


def _run(
    ref: ModelRef,
    prompt: str,
    ids: list[int],
    how: sampling_form.Settings,
    results: Results,
    missing: list[Strategy],
    place: Any,
    board: Any,
) -> None:
    """Write in the ways that are missing, each shown as soon as it is there; a click keeps what is there."""
    began, model = time.perf_counter(), resources.load(ref).model
    for i, strategy in enumerate(missing):
        each = (time.perf_counter() - began) / i if i else 0
        left = (
            say("about_left", each=duration(each * (len(missing) - i)))
            if each * (len(missing) - i) > 3
            else ""
        )
        place.progress(i / len(missing), f"{strategy.name}: {i + 1} of {len(missing)}{left}")
        start = time.perf_counter()
        done = write(model, ids, strategy, n_tokens=how.n, seed=how.seed, stop_ids=how.stop_ids)
        results.rows[strategy.name] = measured(ref, prompt, strategy.name, done, time.perf_counter() - start)
        board.html(table(list(results.rows.values()), prompt))


def measured(ref: ModelRef, prompt: str, name: str, done: Written, seconds: float) -> Row:
    """A strategy's text with its measures."""
    tokenizer, oracle = resources.tokenizer(ref), resources.oracle_for(ref)
    data = b"".join(tokenizer.token_bytes(i) for i in done.ids)
    text = data.decode("utf-8", "backslashreplace")
    n_legal, broke = None, ""
    if oracle is not None and len(prompt) + len(text) <= LONGEST:
        found = oracle.legal_prefix(prompt + text)
        n_legal = max(0, found.n_chars - len(prompt))
        if not found.complete:
            broke = _word_at(prompt + text, found.n_chars)
    return Row(
        name, len(done.ids), done.log_prob, done.per_token, 1 - distinct(done.ids, 4), distinct(done.ids, 1),
        distinct(done.ids, 2), text, n_legal, broke, seconds,
    )  # fmt: skip


def _word_at(text: str, at: int) -> str:
    """The word that holds a character."""
    begin = max(text.rfind(" ", 0, at + 1), text.rfind("\n", 0, at)) + 1
    rest = text[begin:] or text[at:]
    return visible(clip(rest.split()[0] if rest.split() else rest, 24))


_CELL = "padding:4px 8px;vertical-align:top;"
_LINE = "border-top:1px solid rgba(128,136,145,0.5);"
_HEADS = ("Way to choose", "log P (nats)", "per token", "repeated", "distinct-1", "distinct-2", "a story for")


def table(rows: list[Row], prompt: str) -> str:
    """HTML: for each strategy a row of measures with small bars, then its text; all texts are literal."""
    if not rows:
        names = ", ".join(strategy.name for strategy in STRATEGIES)
        return f'<p style="margin:0.5rem 0">{len(STRATEGIES)} ways: {names}.</p>'
    with_truth = any(row.n_legal is not None for row in rows)
    heads = _HEADS if with_truth else _HEADS[:-1]
    head = "".join(say("th_scope_col_style", cell=_CELL, name=name) for name in heads)
    worst = max((-row.per_token for row in rows if math.isfinite(row.per_token)), default=1.0) or 1.0
    body = "".join(_measures(row, worst, with_truth) + _text(row, len(heads)) for row in rows)
    return say("div_role_region_tabindex", head=head, body=body)


def _measures(row: Row, worst: float, with_truth: bool) -> str:
    cells = [
        _number(row.log_prob, None),
        _number(row.per_token, -row.per_token / worst),
        _number(row.repeated, row.repeated),
        _number(row.distinct_1, row.distinct_1),
        _number(row.distinct_2, row.distinct_2),
    ]
    if with_truth:
        share = (row.n_legal or 0) / max(len(row.text), 1)
        words = (
            say("all") if not row.broke_at else say("characters", n_legal=row.n_legal, n_text=len(row.text))
        )
        cells.append(_bar(words if row.n_legal is not None else "", share, TRUE))
    name = say("th_scope_row_style", cell=_CELL, line=_LINE, name=row.name)
    return say("tr_data_strategy", name=row.name, name_2=name) + "".join(cells) + "</tr>"


def _number(value: float, share: float | None) -> str:
    return _bar("" if math.isnan(value) else format_number(value), share, "#376EE0")


def _bar(words: str, share: float | None, color: str) -> str:
    """A cell with its number and under it a bar, 0 to 1."""
    drawn = ""
    if share is not None and math.isfinite(share) and words:
        width = 100 * min(max(share, 0.0), 1.0)
        drawn = say("div_style_height_4px", width=width, color=color)
    return say("td_style_min_width", cell=_CELL, line=_LINE, words=words, drawn=drawn)


def _text(row: Row, n_columns: int) -> str:
    legal = len(row.text) if row.n_legal is None else row.n_legal
    good, bad = row.text[:legal], row.text[legal:]
    line = say("border_bottom_2px_solid", true=TRUE) if row.n_legal is not None else ""
    broke = say("span_style_font_weight", literal_html=literal_html(bad))
    return say(
        "tr_td_colspan_dir",
        n_columns=n_columns,
        cell=_CELL,
        line=line,
        literal_html=literal_html(good),
        broke=broke if bad else "",
    )


def _legend(with_truth: bool) -> str:
    words = say("log_p_natural_log")
    truth = say("underlined_story_can_go") if with_truth else ""
    return words + truth
