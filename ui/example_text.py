"""Worked examples about texts: vocabularies and ids, the chain rule, how many sentences there are."""

import math
from collections.abc import Sequence
from string import ascii_lowercase
from typing import NamedTuple

import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui import model_refs, passes, resources, session
from ui.components import show, token_strip
from ui.example_sum import Number, Sum
from ui.words import counted
from viz import format_count, surprisal_bars, visible
from viz.examples import power_bars
from wording import words

say = words("ui.example_text")
_CHIPS = 60  # tokens of the sidebar's text that are drawn
_SCORED = 6  # of its last tokens are multiplied


class Chip(NamedTuple):
    """A token to draw."""

    id: int
    data: bytes


def strip(pieces: Sequence[str], ids: Sequence[int], *, key: str, label: str, values: bool = True) -> None:
    """Draw pieces as chips, each with its id below it."""
    chips = [[Chip(i, piece.encode())] for piece, i in zip(pieces, ids, strict=True)]
    token_strip(chips, key=key, label=label, values=[str(i) for i in ids] if values else None)


# ---- vocabularies and ids


def vocabulary() -> None:
    """Three vocabularies cut one text, and number the pieces."""
    ref = frame.real(None)
    if ref is not None:
        _real_vocabulary(ref)
        return
    from engine.worked_text import pieces

    with frame.inputs():
        text = inputs.text("vocabulary_text", say("text"), say("default.text"), most=60)
        whole = inputs.names("vocabulary_words", say("words"), say("default.words"))
        parts = inputs.names("vocabulary_parts", say("parts"), say("default.parts"))
    letters = sorted(set(ascii_lowercase) | {" "} | set(text), key=lambda c: (c not in ascii_lowercase, c))
    known: list[str] = []
    rows: list[tuple[str, int, int]] = []
    for name, more in (("letters", letters), ("words", whole), ("parts", parts)):
        known += [piece for piece in dict.fromkeys(more) if piece not in known]
        cut = pieces(text, known)
        rows.append((name, len(known), len(cut)))
        st.markdown(say(f"level.{name}", size=len(known), n=len(cut)))
        strip(cut, [known.index(piece) for piece in cut], key=f"example_cut_{name}", label=text)
    n = len(text)
    s = Sum()
    lines = [
        rf"|V_{i}| &= {size},\quad T = {used},\quad \tfrac{{{n}}}{{{used}}} ="
        rf" {s.of(n / used, lambda a, b: a / b, Number(n, None), Number(used, None))}"
        for i, (_, size, used) in enumerate(rows, 1)
    ]
    frame.formula(*lines)
    st.caption(say("vocabulary_note", n=counted(n, "character")))


def _real_vocabulary(ref: model_refs.ModelRef) -> None:
    window = passes.window(ref, session.text())
    segments, drawn = [], 0
    for segment in window.segments:
        if drawn + len(segment) > _CHIPS:
            break
        segments.append(segment)
        drawn += len(segment)
    ids = [token.id for segment in segments for token in segment]
    own = [window.tokens[t] for t in window.inner]  # without what the model wants around a text
    token_strip(segments, key="example_vocabulary_real", label=say("your_text"), values=[str(i) for i in ids])
    size = resources.tokenizer(ref).vocab_size
    n = own[-1].byte_end - own[0].byte_start
    used = len(own)
    frame.formula(
        rf"|V| &= {size},\quad s_t \in \{{0, \dots, {size - 1}\}}",
        rf"T &= {used},\quad \tfrac{{{n}}}{{{used}}} = {Number(n / used, 4)}",
    )
    st.caption(say("real_vocabulary_note", n=counted(n, "byte")))


# ---- the chain rule


class Sentence(NamedTuple):
    """Tokens, and the probability of each but the first.

    Attributes:
        before: how many tokens stand before them, and are given like the first.
        computed: by a model, and not typed.
    """

    tokens: list[str]
    probs: list[float]
    before: int = 0
    computed: bool = False

    @property
    def places(self) -> list[str]:
        """Of all tokens but the first, counted from 1."""
        return [str(t + self.before) for t in range(2, len(self.tokens) + 1)]


def sentence() -> Sentence:
    """The sentence of the chain rule: typed, or the beginning of the sidebar's text under the model.

    Raises:
        ValueError: for what is no probability, or another number of them than needed.
    """
    ref = frame.real(needs_text=2)
    if ref is not None:
        return real_sentence(ref)
    with frame.inputs():
        tokens = inputs.names("chain_tokens", say("tokens"), say("default.sentence"))
        probs = inputs.numbers("chain_probs", say("probs"), "0.9, 0.8", most=11)
    if len(probs) != len(tokens) - 1:
        raise ValueError(say("probs_count", tokens=len(tokens), probs=len(probs), needed=len(tokens) - 1))
    return Sentence(tokens, probs)


def real_sentence(ref: model_refs.ModelRef) -> Sentence:
    """The end of the sidebar's text under the model."""
    from engine.metrics import next_token_scores

    trace = frame.looked(ref)
    ids = trace.ids[-_SCORED - 1 :]
    tokens = [visible(token.data) for token in trace.tokens[-_SCORED - 1 :]]
    probs = next_token_scores(trace.logits[-_SCORED - 1 :], ids.tolist()).probs.tolist()
    return Sentence(tokens, probs, len(trace.tokens) - len(tokens), computed=True)


def surprise_picture(
    read: Sentence, surprisals: Sequence[float], *, key: str, mean: float | None = None
) -> None:
    """The surprise of each token but the first."""
    show(surprisal_bars(read.tokens, [math.nan, *surprisals], mean=mean), key=key)
    if read.before:
        st.caption(say("before", shown=len(read.probs), n=read.before))


def chain_rule() -> None:
    """The probability of a sentence is a product; its logarithm is a sum."""
    from engine.worked_sums import chain

    read = sentence()
    found = chain(read.probs)
    s = Sum()
    p = [s.read(x) if read.computed else s.given(x) for x in found.probs]
    logs = [s.of(x, math.log, q, places=6) for x, q in zip(found.log_probs, p, strict=True)]
    product = s.of(found.product, lambda *x: math.prod(x), *p)
    total = s.of(-found.total, lambda *x: math.fsum(x), *logs)
    s.of(found.product, math.exp, total, digits=product.digits)
    s.alike(logs, p)
    s.settle()

    def lines() -> None:
        frame.formula(
            r"P &= \prod_t p(w_t \mid w_1 \dots w_{t-1})",
            rf"&= {frame.times(p, most=3)} = {product}",
            r"\ln P &= \sum_t \ln p(w_t \mid w_1 \dots w_{t-1})",
            rf"&= {frame.added(logs, most=3)} = {total}",
            rf"e^{{{total}}} &= {product}",
        )
        frame.grid({"$t$": read.places, say("column.token"): frame.escaped(read.tokens[1:]),
                    "$p$": p, "$\\ln p$": logs})  # fmt: skip

    frame.beside(
        lambda: surprise_picture(read, [-x for x in found.log_probs], key="example_chain_bars"), lines
    )
    if not read.before:
        st.caption(say("chain_note", first=_plain(read.tokens[0])))


def _plain(token: str) -> str:
    return frame.escaped([token])[0]


def sentence_loss() -> None:
    """-ln 0.9 - ln 0.8: the surprisals, their sum, their mean, and what comes of rounding too early."""
    from engine.worked_sums import chain, rounded_first

    read = sentence()
    found = chain(read.probs)
    s = Sum()
    p = [s.read(x) if read.computed else s.given(x) for x in found.probs]
    parts = [
        s.of(0.0 - x, lambda v: -math.log(v), q, places=6) for x, q in zip(found.log_probs, p, strict=True)
    ]
    total = s.of(found.total, lambda *x: math.fsum(x), *parts)
    n = len(parts)
    loss = s.of(found.loss, lambda x: x / n, total)
    perplexity = s.of(found.perplexity, math.exp, loss)
    s.alike(parts, p)
    s.settle()
    early, rows = rounded_first(found.probs, 3)

    def lines() -> None:
        frame.formula(
            rf"-\ln P &= {frame.added(parts, most=3)}",
            rf"&= {total}",
            rf"\mathcal{{L}} &= \frac{{{total}}}{{{n}}} = {loss}",
            rf"\mathrm{{PPL}} &= e^{{{loss}}} = {perplexity}",
        )
        frame.grid({say("column.token"): frame.escaped(read.tokens[1:]), "$p$": p, "$-\\ln p$": parts})
        if round(early, 3) != round(found.total, 3) and n <= 4:
            written = " + ".join(f"{x:.3f}" for x in rows)
            st.caption(say("rounded_early", sum=f"{written} = {early:.3f}", right=f"{found.total:.3f}"))

    frame.beside(
        lambda: surprise_picture(
            read, [-x for x in found.log_probs], key="example_loss_bars", mean=found.loss
        ),
        lines,
    )


# ---- the size of the joint space


def joint_space() -> None:
    """V^T sentences, against the numbers that the factors of one of them need."""
    from engine.worked_sums import joint_size

    ref = frame.real(None)
    if ref is not None:
        v, t = resources.tokenizer(ref).vocab_size, len(passes.window(ref, session.text()).tokens)
    else:
        with frame.inputs():
            v = inputs.count("joint_v", say("vocab_size"), 50_000, 1, 1_000_000, step=1000)
            t = inputs.count("joint_t", say("length"), 10, 1, 2000)
    found = joint_size(v, t)
    log = math.log10(found.mantissa) + found.exponent
    mantissa = Number(found.mantissa, 4)

    def picture() -> None:
        fig = power_bars(
            [say("joint"), say("factors")], [log, math.log10(found.by_factors)], x_title=say("powers"),
            alt=say("joint_alt", joint=f"{log:.1f}", factors=format_count(found.by_factors)),
        )  # fmt: skip
        show(fig, key="example_joint_bars")

    def lines() -> None:
        frame.formula(
            rf"V^T &= {v}^{{{t}}} = {mantissa} \times 10^{{{found.exponent}}}",
            rf"\log_{{10}} V^T &= {t} \cdot \log_{{10}} {v} = {Number(log, 4)}",
            rf"T \cdot V &= {t} \cdot {v} = {found.by_factors}",
        )

    frame.beside(picture, lines)
    st.caption(say("joint_note"))
