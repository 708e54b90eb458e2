"""What two models say of one text, ready to be drawn: the pieces, their surprise, the totals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import metrics
from engine.compare import Comparison, Scored, Span, compare
from engine.tokenizers import Token
from engine.trace import Trace
from ui import lesson, nav, passes, resources
from ui.lesson import explain
from ui.long_job import Job, ask, job_of, run
from ui.model_refs import ModelRef
from ui.next_long import diverged
from ui.scored import scores_of
from ui.words import counted, literal
from viz import format_count, format_number, format_perplexity, visible
from wording import words

say = words("ui.compare_text")

LEAD = 12  # tokens drawn pale before the first piece that is compared


@dataclass(frozen=True, eq=False)
class Both:
    """Two models on one text.

    Attributes:
        refs: A and B.
        text: of both.
        tokens: what each read.
        log_probs: (T-1,) of each, of all but the first token.
        found: the comparison.
        traces: one pass of each; None if the whole text was scored in windows.
    """

    refs: tuple[ModelRef, ModelRef]
    text: str
    tokens: tuple[list[Token], list[Token]]
    log_probs: tuple[NDArray[np.float64], NDArray[np.float64]]
    found: Comparison
    traces: tuple[Trace, Trace] | None

    @property
    def same_tokens(self) -> bool:
        """Whether both have one vocabulary."""
        a, b = (resources.tokenizer(ref).hash for ref in self.refs)
        return a == b

    @property
    def place(self) -> str:
        """What a piece's number is called: with the same tokens each piece is one of them."""
        return "position" if self.same_tokens else "piece"

    @property
    def first(self) -> int:
        """The number of the first piece: its token's position, or 1; what is given before it has none."""
        return self.found.spans[0].first[0] if self.same_tokens else 1

    def data(self, span: Span) -> bytes:
        """The bytes of a piece."""
        return b"".join(token.data for token in self.tokens[0][span.first[0] : span.stop[0]])

    def names(self) -> list[str]:
        """(S,) visible texts of the pieces."""
        return [visible(self.data(span)) for span in self.found.spans]

    def parts(self, span: Span, unit: str) -> tuple[list[float], list[float]]:
        """Surprisals of each model's tokens in a piece."""
        a, b = (
            metrics.surprisal(logs[span.first[side] - 1 : span.stop[side] - 1], unit).tolist()
            for side, logs in enumerate(self.log_probs)
        )
        return a, b

    def chips(self, most: int) -> tuple[list[list[Token]], int]:
        """The pieces as tokens for the strip, in whole graphemes, and how many of A's stand before them."""
        first = self.found.spans[0].first[0]
        before = self.tokens[0][max(0, first - LEAD) : first]
        pieces = [self._chip(span) for span in self.found.spans[:most]]
        from engine.tokens import whole_graphemes

        return whole_graphemes([*before, *pieces], self.text), len(before)

    def _chip(self, span: Span) -> Any:
        token = self.tokens[0][span.first[0]]
        if self.same_tokens:
            return token
        ids = "; ".join(
            f"{name}: " + " ".join(str(t.id) for t in self.tokens[side][span.first[side] : span.stop[side]])
            for side, name in enumerate("AB")
        )
        return token._replace(id=ids, data=self.data(span), byte_end=span.byte_end)  # type: ignore[arg-type]


def read_both(refs: tuple[ModelRef, ModelRef], text: str, whole: bool) -> Both:
    """Score the text with both models; a sentence where that can't be, and the page ends."""
    lesson.need_text(text)
    return _windows(refs, text) if whole else _last_context(refs, text)


def traced(ref: ModelRef, text: str, name: str) -> Trace:
    """One pass; a sentence that names the model if there is none."""
    try:
        trace = passes.traced(ref, text)
        if not np.isfinite(trace.logits).all():
            raise ValueError(diverged())
    except ValueError as error:
        explain(ValueError(f"{name}, {ref.label}: {error}"))
    return trace


def _last_context(refs: tuple[ModelRef, ModelRef], text: str) -> Both:
    a, b = (traced(ref, text, name) for ref, name in zip(refs, "AB", strict=True))
    logs = [
        scores_of(ref, text).log_probs if len(trace.ids) > 1 else np.zeros(0)
        for ref, trace in zip(refs, (a, b), strict=True)
    ]
    return _both(refs, text, (a.tokens, b.tokens), (logs[0], logs[1]), (a, b))


def _both(
    refs: tuple[ModelRef, ModelRef],
    text: str,
    tokens: tuple[list[Token], list[Token]],
    logs: tuple[NDArray[np.float64], NDArray[np.float64]],
    traces: tuple[Trace, Trace] | None,
) -> Both:
    try:
        found = compare(Scored(tokens[0], logs[0]), Scored(tokens[1], logs[1]))
    except ValueError as error:  # a vocabulary that reads another form of the text
        explain(error)
    return Both(refs, text, tokens, logs, found, traces)


def _windows(refs: tuple[ModelRef, ModelRef], text: str) -> Both:
    jobs = [_job(ref, text, name) for ref, name in zip(refs, "AB", strict=True)]
    if not all(job.windows for job in jobs):
        return _last_context(refs, text)
    left = sum(job.work_left for job in jobs)
    if left and (all(job.soon for job in jobs) or ask(*jobs)):
        for job, ref in zip(jobs, refs, strict=True):
            run(job, ref)
        st.rerun()
    if left:
        nav.end_page()
    logs = [job.log_probs for job in jobs]
    if not all(np.isfinite(log).all() for log in logs):
        explain(ValueError(diverged()))
    tokens = [_tokens(ref, text)[job.first - 1 :] for ref, job in zip(refs, jobs, strict=True)]
    return _both(refs, text, (tokens[0], tokens[1]), (logs[0], logs[1]), None)


def _job(ref: ModelRef, text: str, name: str) -> Job:
    """The scoring of the whole text; a sentence that names the model if it can't be."""
    try:
        return job_of(ref, text, max(1, ref.context_length // 2))
    except ValueError as error:
        explain(ValueError(f"{name}, {ref.label}: {error}"))


def _tokens(ref: ModelRef, text: str) -> list[Token]:
    """All tokens, after those that the model wants before a text."""
    tokenizer = resources.tokenizer(ref)
    return tokenizer.framed(tokenizer.tokens(text))


def what_was_read(both: Both, text: str) -> str:
    """What each model read and which bytes are compared, in words."""
    n_bytes = format_count(both.found.n_bytes)
    total = format_count(len(text.encode("utf-8")))
    if both.traces is None:
        read = say("read.windows")
    elif any(trace.unused for trace in both.traces):
        n_a, n_b = (len(tokens) for tokens in both.tokens)
        short = any(ref.window_length < ref.context_length for ref in both.refs)
        counts = {"a": counted(n_a, "token"), "b": format_count(n_b)}
        read = say("read.memory" if short else "read.context", **counts)
    else:
        read = say("read.whole")
    return f"{read} {say('given')} {say('compared', n_bytes=n_bytes, total=total)}"


def totals(both: Both, unit: str) -> dict[str, list[Any]]:
    """One row for each model: its loss, perplexity if both have the same tokens, and bits per byte."""
    losses, bits = both.found.losses, both.found.bits_per_byte
    rows: dict[str, list[Any]] = {
        say("column.model"): [_called(name, ref) for name, ref in zip("AB", both.refs, strict=True)],
        say("column.tokens"): list(both.found.n_tokens),
        say("column.bytes"): [both.found.n_bytes] * 2,
        say("column.surprise", unit=unit): [
            float(metrics.surprisal(-total, unit)) for total in both.found.totals
        ],
    }
    if both.same_tokens:
        rows[say("column.loss")] = list(losses)
        rows[say("column.perplexity")] = [format_perplexity(metrics.perplexity(loss)) for loss in losses]
    return {**rows, say("column.bits"): list(bits)}


def _called(name: str, ref: ModelRef) -> str:
    if ref.kind == "hub":
        return say("published", name=name, label=ref.label)
    return say("model", name=name, label=ref.label, step=ref.step)


def totals_columns(unit: str) -> dict[str, Any]:
    """How the columns of `totals` are written: numbers of one kind with equal digits, to the right."""
    names = (say("column.surprise", unit=unit), say("column.loss"), say("column.bits"))
    columns: dict[str, Any] = {name: st.column_config.NumberColumn(format="%.5g") for name in names}
    return columns | {say("column.perplexity"): st.column_config.TextColumn(alignment="right")}


def signed(x: float) -> str:
    """A difference under a piece of text; none that is too small to see has a sign.

    >>> [signed(x) for x in (0.1234, -12.345, 0.004, -0.004)]
    ['+0.12', '−12.35', '0', '0']
    """
    return "0" if abs(x) < 0.005 else f"{x:+.2f}".replace("-", "−")


def better(both: Both) -> str:
    """Which model does better on this text, in words."""
    a, b = both.found.bits_per_byte
    if abs(a - b) < 1e-12:
        return say("equal")
    name, ref = ("A", both.refs[0]) if a < b else ("B", both.refs[1])
    told = {"name": name, "label": literal(ref.label)}
    numbers = {"best": format_number(min(a, b), 4), "other": format_number(max(a, b), 4)}
    if ref.kind == "hub":
        return say("better_published", **told, **numbers)
    return say("better", **told, step=ref.step, **numbers)
