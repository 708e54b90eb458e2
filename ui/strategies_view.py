"""Ways to choose tokens, side by side from one prompt: their texts, and the same measures for all."""

import html
import math
import time
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from engine.strategies import STRATEGIES, Strategy, Written, distinct, write
from ui import resources, sampling_form
from ui.model_refs import ModelRef
from ui.possible import LONGEST
from ui.prompt import Prompt
from ui.words import duration
from ui.written_text import literal_html, say_what_is_seen
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


def strategies_view(ref: ModelRef, given: Prompt) -> None:
    """Settings, the button, and the table; what was written is kept until the person leaves."""
    prompt, ids = given.text, given.ids
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sampling_form.length()
        sampling_form.seed_box()
        sampling_form.stop_at_end(ref)
    how = sampling_form.settings(ref)
    say_what_is_seen(ref, len(ids))
    results = _results((ref.id + ref.identity, tuple(ids), how.n, how.seed, how.stop_ids))
    missing = [strategy for strategy in STRATEGIES if strategy.name not in results.rows]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(_words(missing), key="strategies_run", type="primary", on_click=ask, args=(not missing,))
        st.caption(say("one_seed"))
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
        return say("again")
    return say("write_all", n=len(STRATEGIES)) if len(missing) == len(STRATEGIES) else say("write_others")


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
    what: dict[str, Any] = {"n_tokens": how.n, "stop_ids": how.stop_ids, "jump": ref.jump}
    for i, strategy in enumerate(missing):
        at = {"way": strategy.label, "i": i + 1, "n": len(missing)}

        def tell(done: int, n: int, i: int = i, at: dict[str, Any] = at) -> None:
            share = (i + done / n) / len(missing)
            spent = time.perf_counter() - began
            rest = spent / share * (1 - share) if share and spent > 1 else 0
            estimate = say("progress_with_estimate", **at, left=duration(rest)) if rest > 3 else None
            place.progress(share, estimate or say("progress", **at))

        start = time.perf_counter()
        done = write(model, ids, strategy, seed=how.seed, tell=tell, **what)
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


def table(rows: list[Row], prompt: str) -> str:
    """HTML: for each strategy a row of measures with small bars, then its text; all texts are literal."""
    if not rows:
        names = ", ".join(strategy.label for strategy in STRATEGIES)
        ways = html.escape(say("ways", n=len(STRATEGIES), ways=names))
        return f'<p style="margin:0.5rem 0">{ways}</p>'
    with_truth = any(row.n_legal is not None for row in rows)
    heads = list(say.table("column").values())[: None if with_truth else -1]
    head = "".join(
        f'<th scope="col" style="{_CELL}text-align:left;font-weight:600;vertical-align:bottom">'
        f"{html.escape(name)}</th>"
        for name in heads
    )
    worst = max((-row.per_token for row in rows if math.isfinite(row.per_token)), default=1.0) or 1.0
    body = "".join(_measures(row, worst, with_truth) + _text(row, len(heads)) for row in rows)
    return (
        f'<div role="region" tabindex="0" aria-label="{html.escape(say("region"))}" '
        'class="loupe-strategies" style="overflow-x:auto"><table style="width:100%;min-width:44rem;'
        f'border-collapse:collapse;font-size:0.9rem;font-variant-numeric:tabular-nums"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


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
        far = say("story_part", n=row.n_legal, all=len(row.text)) if row.broke_at else say("story_all")
        cells.append(_bar(html.escape(far) if row.n_legal is not None else "", share, TRUE))
    label = html.escape(next((way.label for way in STRATEGIES if way.name == row.name), row.name))
    name = f'<th scope="row" style="{_CELL}{_LINE}text-align:left;font-weight:600">{label}</th>'
    return f'<tr data-strategy="{row.name}">{name}' + "".join(cells) + "</tr>"


def _number(value: float, share: float | None) -> str:
    return _bar("" if math.isnan(value) else format_number(value), share, "#376EE0")


def _bar(said: str, share: float | None, color: str) -> str:
    """A cell with its number and under it a bar, 0 to 1."""
    drawn = ""
    if share is not None and math.isfinite(share) and said:
        width = 100 * min(max(share, 0.0), 1.0)
        drawn = (
            '<div style="height:4px;background:rgba(128,136,145,0.25)">'
            f'<div style="height:4px;width:{width:.1f}%;background:{color}"></div></div>'
        )
    return f'<td style="{_CELL}{_LINE}min-width:4.5rem">{said}{drawn}</td>'


def _text(row: Row, n_columns: int) -> str:
    legal = len(row.text) if row.n_legal is None else row.n_legal
    good, bad = row.text[:legal], row.text[legal:]
    line = f"border-bottom:2px solid {TRUE}" if row.n_legal is not None else ""
    broke = f'<span style="font-weight:600"> ✗ </span><span data-part="broken">{literal_html(bad)}</span>'
    return (
        f'<tr><td colspan="{n_columns}" dir="auto" style="{_CELL}white-space:pre-wrap;'
        f'overflow-wrap:anywhere;padding-bottom:10px"><span data-part="legal" style="{line}">'
        f"{literal_html(good)}</span>{broke if bad else ''}</td></tr>"
    )


def _legend(with_truth: bool) -> str:
    return f"{say('legend')} {say('legend_of_truth')}" if with_truth else say("legend")
