"""What each objective pays for: the scored positions of the text, the training curves, the two cards."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

import viz
from engine.gaps import mean_surprisal
from engine.mask_draws import UNSCORED
from engine.metrics import log_softmax, next_token_scores
from engine.objectives import Learning, Price, learning_of, price, span_of
from ui import cards, gap_strip, hiding, lesson, nav, passes, resources
from ui.components import show, token_strip
from ui.hiding import Both
from ui.lesson import brief
from ui.model_refs import ModelRef
from ui.words import literal
from viz.masking import fate_color, paid_curve
from wording import words

say = words("ui.masking_paid")

SCROLLS = 60  # tokens
WAY = 0.95  # share of the way from the first loss to the floor


def draw(both: Both) -> None:
    """Draw the view."""
    gap_strip.draw(both)
    _scored(both)
    _trainings(both)
    lesson.try_this(
        lesson.Step(say("training_15_tokens_chance"), say("hide_15"), _usual, (both,)),
        lesson.Step(say("one_token_hidden_one"), say("hide_one"), hiding.hide, ((0,),)),
        lesson.Step(
            say("all_hidden_every_position"),
            say("hide_every_token"), hiding.hide, (range(len(both.text.seen)),),
        ),
        key="paid_try",
    )  # fmt: skip


def _usual(both: Both) -> None:
    st.session_state[hiding.SHARE] = hiding.USUAL
    hiding.by_chance(both.text.ids, both.mask_id)


# ---- this text ----


def _scored(both: Both) -> None:
    """The loss terms of both objectives on the strip; never one scale for the two losses."""
    st.markdown(say("causal_every_token_but"))
    _causal_terms(both)
    st.markdown(say("masked_only_hidden_tokens"))
    _masked_terms(both)
    st.caption(say("under_each_scored_token"))


def _causal_terms(both: Both) -> None:
    if both.causal is None:
        st.caption(say("there_no_causal_model"))
        return
    if both.text.typed:
        st.caption(say("causal_model_does_not"))
        return
    trace = passes.traced(both.causal, both.whole)
    n = len(trace.tokens)
    if n < 2:
        st.caption(say("one_token_no_question"))
        return
    found = next_token_scores(trace.logits, [token.id for token in trace.tokens])
    surprise = [float("nan"), *(-found.log_probs).tolist()]
    with _box(n):
        token_strip(
            [[token] for token in trace.tokens],
            key="masking_paid_clm",
            values=["–", *(brief(x) for x in surprise[1:])],
            colors=_colors(surprise, trace.logits.shape[-1]),
            label=say("what_causal_objective_scores"),
        )
    _totals(n - 1, n, -found.total, say("loss_nats_per_token"), found.loss)


def _masked_terms(both: Both) -> None:
    text, n = both.text, len(both.text.seen)
    known = [i for i in both.hidden if i not in text.typed]
    if not known:
        st.caption(say("nothing_hidden_whose_answer"))
        return
    logits = hiding.from_both_sides(both.masked, tuple(text.ids), tuple(both.hidden))
    log_probs = log_softmax(logits[known])[np.arange(len(known)), [text.ids[i] for i in known]]
    surprise = [float("nan")] * n
    for i, value in zip(known, log_probs.tolist(), strict=True):
        surprise[i] = -value
    with _box(n):
        token_strip(
            text.segments,
            key="masking_paid_mlm",
            values=["–" if x != x else brief(x) for x in surprise],
            colors=_colors(surprise, logits.shape[-1]),
            hidden=both.hidden,
            label=say("what_masked_objective_scores"),
        )
    loss = mean_surprisal(logits, text.ids, known)
    _totals(len(known), n, loss * len(known), say("masked_token_loss_nats"), loss)


def _box(n: int) -> Any:
    return st.container(height=170 if n > SCROLLS else "content", border=n > SCROLLS)


def _colors(surprise: list[float], vocab_size: int) -> list[str]:
    most = float(np.log(vocab_size))
    return [fate_color(UNSCORED) if x != x else viz.surprisal_color(x, most) for x in surprise]


def _totals(scored: int, n: int, nats: float, name: str, loss: float) -> None:
    with st.container(horizontal=True):
        st.metric(
            say("positions_scored_pass"),
            say("scored_of_all", scored=scored, n=n, share=scored / n),
            border=True,
        )
        st.metric(say("their_surprise_together"), viz.format_nats(nats), border=True)
        st.metric(name, viz.format_number(loss), border=True)


# ---- the two trainings ----


@st.cache_data(max_entries=16, show_spinner=False)
def _shipped_records(folder: str, identity: str) -> list[dict[str, Any]]:
    """The records of a shipped model; none if its file is gone."""
    path = Path(folder) / "metrics.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _learning(ref: ModelRef) -> Learning:
    if ref.kind == "shipped":
        return learning_of(_shipped_records(ref.folder, ref.identity))
    return learning_of(resources.run_store().history(ref.id.removeprefix("run:")))


def _trainings(both: Both) -> None:
    """The curves of both models, each on its own axes, and their numbers side by side."""
    st.subheader(say("how_two_them_learned"))
    refs = [ref for ref in (both.causal, both.masked) if ref is not None]
    loaded = {ref.id: resources.load(ref) for ref in refs}
    prices, learned = {}, {}
    for ref in refs:
        checkpoint = loaded[ref.id]
        if checkpoint.train_config is not None:
            prices[ref.id] = price(checkpoint.model.config, checkpoint.train_config)
            learned[ref.id] = _learning(ref)
    _curves([ref for ref in refs if ref.id in prices and learned[ref.id].steps], prices, learned)
    _side_by_side(refs, prices, learned)
    with st.container(horizontal=True):
        for ref in refs:
            cards.popover(ref)
    nav.link("training", say("train_one_yourself"))


def _curves(refs: list[ModelRef], prices: dict[str, Price], learned: dict[str, Learning]) -> None:
    if not refs:
        return
    units = say.table("unit")
    unit = st.segmented_control(
        say("against"), list(units), default="tokens-read", required=True, key="masking_against",
        format_func=units.__getitem__, persist_state="session", label_visibility="collapsed",
    )  # fmt: skip
    paid = {
        ref.id: [
            step * (prices[ref.id].tokens if unit == "tokens-read" else prices[ref.id].targets)
            for step in learned[ref.id].steps
        ]
        for ref in refs
    }
    span = span_of([x for row in paid.values() for x in row])
    for ref, column in zip(refs, st.columns(2, gap="medium"), strict=False):
        with column:
            st.markdown(f"**{literal(ref.label)}**")
            fig = paid_curve(
                paid[ref.id], learned[ref.id].losses, objective=ref.objective, x_title=say(f"axis.{unit}"),
                y_title=say(f"loss.{ref.objective}"), span=span, floor=learned[ref.id].floor,
            )  # fmt: skip
            show(fig, key=f"masking_curve_{ref.objective}")
    st.caption(say("two_heights_different_quantities"))


def _side_by_side(refs: list[ModelRef], prices: dict[str, Price], learned: dict[str, Learning]) -> None:
    """One column for each model; each objective's loss has a row of its own: they are not compared."""
    rows: dict[str, list[str]] = {}
    for i, ref in enumerate(refs):
        for name, value in _facts(ref, prices.get(ref.id), learned.get(ref.id)).items():
            rows.setdefault(name, ["–"] * len(refs))[i] = value
    st.table(
        {
            "": list(rows),
            **{literal(ref.label): [row[i] for row in rows.values()] for i, ref in enumerate(refs)},
        },
        hide_index=True,
    )
    if len(refs) == 2:
        st.caption(" ".join([_difference(refs), *_slower(refs, prices, learned)]))


def _slower(refs: list[ModelRef], prices: dict[str, Price], learned: dict[str, Learning]) -> list[str]:
    """How much longer the masked model took to go most of its way, counted in both ways; or nothing."""
    if any(ref.id not in prices for ref in refs):
        return []
    steps = [learned[ref.id].step_of(WAY) for ref in refs]
    if not steps[0] or not steps[1]:
        return []
    tokens, targets = (
        steps[1] * getattr(prices[refs[1].id], what) / (steps[0] * getattr(prices[refs[0].id], what))
        for what in ("tokens", "targets")
    )
    return [
        say(
            "go_way_first_loss", way=WAY, tokens=viz.format_number(tokens), targets=viz.format_number(targets)
        )
    ]


def _difference(refs: list[ModelRef]) -> str:
    """How far the two sizes are apart, and why."""
    apart = refs[1].n_params - refs[0].n_params
    width = resources.load(refs[1]).model.config.d_model
    if apart == width:
        return say("equal_size_they_differ", apart=apart, width=width)
    return say("masked_has_more", apart=apart) if apart > 0 else say("masked_has_fewer", apart=-apart)


def _facts(ref: ModelRef, cost: Price | None, learning: Learning | None) -> dict[str, str]:
    checkpoint = resources.load(ref)
    shape = checkpoint.model.config
    facts = {
        say("fact.parameters"): f"{ref.n_params:,}",
        say("fact.shape"): say(
            "layers_heads_width", n_layer=shape.n_layer, n_head=shape.n_head, d_model=shape.d_model
        ),
        say("fact.steps"): f"{ref.step:,}",
    }
    if cost is not None:
        facts |= {
            say("fact.tokens"): f"{ref.step * cost.tokens:,}",
            say("fact.targets"): say("expected", n=ref.step * cost.targets)
            if cost.share < 1
            else f"{ref.step * cost.targets:,.0f}",
            say("fact.signal"): say("positions", targets=cost.targets, tokens=cost.tokens, share=cost.share),
        }
    if cost is not None and learning is not None and (step := learning.step_of(WAY)) is not None:
        facts[say("fact.way_tokens", way=WAY)] = f"{step * cost.tokens:,}"
        facts[say("fact.way_targets", way=WAY)] = f"{step * cost.targets:,.0f}"
    report = checkpoint.info.get("report") or {}
    kind = ref.objective
    for key, label in (
        ("loss", say(f"fact_loss.{kind}")),
        ("floor", say(f"fact_floor.{kind}")),
        ("kl", say(f"fact_kl.{kind}")),
    ):
        if isinstance(report.get(key), int | float):
            facts[label] = f"{report[key]:.4f}"
    return facts
