"""Score a text of any length in windows: in pieces that can be stopped, each token once."""

import csv
import hashlib
import io
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.metrics import perplexity, surprisal
from engine.windows import Window, context_sizes, cut, score_parts, tokens_read
from ui import lesson, resources, worked_text
from ui.cells import safe_cell
from ui.components import show, token_strip
from ui.resources import ModelRef
from ui.words import counted, duration
from viz import NEUTRAL, format_count, format_tick, surprisal_color, visible
from viz.along import surprisal_by_block
from wording import words

say = words("ui.next_long")

DRAWN = 300  # tokens of the strip and of the table
AT_ONCE = 4096  # tokens that go through the model without being asked for: about a second
LINES = 40  # a strip of more tokens scrolls, so that the picture stays in sight
KEPT = 8  # results that a person keeps
SHARES = (1, 2, 4, 8)  # the window moves by the context divided by one of these
_STORE, _PRESSED = "_next_token_scored", "_next_token_score_now"


@dataclass(eq=False)
class Job:
    """One person's scoring of one text, as far as it has come.

    Attributes:
        ids: (N,) of the whole text.
        windows: all of them.
        first_bytes: bytes of the first token, which nothing predicts.
        n_bytes: of the whole text.
        done: windows that are scored.
        parts: their log-probabilities.
        seconds: that took.
    """

    ids: NDArray[np.int64]
    windows: list[Window]
    first_bytes: int
    n_bytes: int
    done: int = 0
    parts: list[NDArray[np.float64]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether every token has its score."""
        return self.done == len(self.windows)

    @property
    def log_probs(self) -> NDArray[np.float64]:
        """(n,) of tokens 1 … n, as far as they are scored."""
        return np.concatenate(self.parts) if self.parts else np.zeros(0)

    @property
    def work_left(self) -> int:
        """Tokens that still have to go through the model."""
        return tokens_read(self.windows[self.done :])

    def left(self) -> float:
        """Seconds that the rest will take, by what is done; 0 before anything is."""
        done = tokens_read(self.windows[: self.done])
        return self.seconds / done * self.work_left if done else 0.0

    def add(self, part: NDArray[np.float64], seconds: float) -> None:
        """Keep the scores of the next windows."""
        self.parts.append(part)
        self.seconds += seconds
        got = len(part)
        while got > 0:
            got -= self.windows[self.done].fresh
            self.done += 1


def job_of(ref: ModelRef, text: str, stride: int) -> Job:
    """This person's job for a model, text and stride: the one that was begun, or a new one."""
    store: dict[tuple[str, str, int], Job] = st.session_state.setdefault(_STORE, {})
    key = (ref.identity, hashlib.sha256(text.encode("utf-8")).hexdigest(), stride)
    if key not in store:
        tokenizer = resources.tokenizer(ref)
        ids = tokenizer.encode(text)
        windows = cut(len(ids), ref.context_length, stride)
        first = len(tokenizer.token_bytes(ids[0])) if ids else 0
        store[key] = Job(np.array(ids, np.int64), windows, first, len(text.encode("utf-8")))
        while len(store) > KEPT:
            del store[next(iter(store))]
    return store[key]


def diverged() -> str:
    """What to say of a model whose output is not finite."""
    return say("diverged")


def run(job: Job, ref: ModelRef) -> None:
    """Score what is left, with progress; what is done stays if the page is left or stopped."""
    model, n = resources.load(ref).model, len(job.ids) - 1
    bar = st.progress(0.0, say("scoring"))
    began = time.monotonic()
    for part in score_parts(model, job.ids.tolist(), job.windows[job.done :]):
        job.add(part, time.monotonic() - began)
        scored, rest = job.windows[job.done - 1].end, job.left()
        far = {"scored": format_count(scored), "all": counted(n, "token")}
        told = say("scored_with_estimate", **far, left=duration(rest)) if rest > 1 else say("scored", **far)
        bar.progress(job.done / len(job.windows), told)
        began = time.monotonic()
    bar.empty()


def any_length(ref: ModelRef, text: str, unit: str) -> None:
    """Draw the whole view."""
    lesson.need_text(text)
    try:
        n = len(job_of(ref, text, ref.context_length).ids)
    except ValueError as error:
        lesson.explain(error)
    if n < 2:
        st.info(say("too_short"))
        return
    share = st.segmented_control(
        say("stride"), SHARES, default=2, required=True, format_func=lambda n: say(f"share.{n}"),
        key="next_token_stride", persist_state="session", help=say("stride_help"),
    )  # fmt: skip
    stride = max(1, ref.context_length // int(share))
    job = job_of(ref, text, stride)
    _plan(job, ref)
    if not job.finished and (job.work_left <= AT_ONCE or ask(job)):
        run(job, ref)
        if job.finished:
            st.rerun()
    if job.parts:
        _result(job, ref, text, unit)
    _compared(ref, text, unit)


def _press() -> None:
    st.session_state[_PRESSED] = True


def ask(*jobs: Job) -> bool:
    """The button that starts long work or goes on with it."""
    share = sum(job.done for job in jobs) / sum(len(job.windows) for job in jobs)
    label = say("go_on", share=share) if share else say("begin")
    pressed = bool(st.session_state.pop(_PRESSED, False))
    st.button(label, key="score_all", type="primary", icon=":material/play_arrow:", on_click=_press)
    left = sum(job.left() for job in jobs)
    if not pressed and left > 1:
        st.caption(say("about_left", left=duration(left)))
    return pressed


def _plan(job: Job, ref: ModelRef) -> None:
    """How much each token sees and how much work that is, known before anything is computed."""
    sizes = context_sizes(job.windows)
    full = sizes[ref.context_length :] if len(sizes) > ref.context_length else sizes
    work = {
        "tokens": counted(len(job.ids), "token"),
        "windows": counted(len(job.windows), "window"),
        "context": format_count(ref.context_length),
        "read": counted(tokens_read(job.windows), "token"),
        "median": format_tick(float(np.median(sizes))),
    }
    if len(sizes) > ref.context_length:
        st.caption(say("plan", **work, least=counted(int(full.min()), "earlier token")))
    else:
        st.caption(say("plan_all", **work))


def _result(job: Job, ref: ModelRef, text: str, unit: str) -> None:
    """Strip of the beginning, surprise along the text, the totals worked out, a table, a download."""
    log_probs, tokenizer = job.log_probs, resources.tokenizer(ref)
    if not np.isfinite(log_probs).all():
        lesson.explain(ValueError(diverged()))
    n, surprise = len(log_probs), surprisal(log_probs, unit)
    most = float(surprisal(-math.log(resources.load(ref).model.config.vocab_size), unit))
    shown = min(n, DRAWN)
    with st.container(height=210 if shown > LINES else "content", border=shown > LINES):
        token_strip(
            tokenizer.segments(text, most=shown + 1),
            key="next_token_long_strip",
            values=[say("given"), *(lesson.brief(x) for x in surprise[:shown].tolist())],
            colors=[NEUTRAL, *(surprisal_color(x, most) for x in surprise[:shown].tolist())],
            label=say("strip"),
        )
    if shown < len(job.ids) - 1:
        part = {"shown": shown + 1, "total": format_count(len(job.ids))}
        st.caption(say("drawn", **part) if job.finished else say("drawn_so_far", **part, n=format_count(n)))
    show(surprisal_by_block(surprise, unit=unit), key="next_token_long")
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    n_bytes = _bytes_scored(job, ref)
    left.latex(worked_text.corpus(float(log_probs.sum()), n, n_bytes, unit=unit))
    sizes = context_sizes(job.windows[: job.done])
    right.caption(
        say(
            "average",
            tokens=counted(n, "scored token"),
            n_bytes=counted(n_bytes, "byte"),
            least=format_count(int(sizes.min())),
            most=counted(int(sizes.max()), "token"),
            median=format_tick(float(np.median(sizes))),
        )
    )
    names = [visible(tokenizer.token_bytes(int(i))) for i in job.ids[1 : shown + 1]]
    numbers = {say("column.probability"): np.exp(log_probs[:shown]),
               say("column.surprise", unit=unit): surprise[:shown]}  # fmt: skip
    st.dataframe(
        {
            say("column.position"): list(range(1, shown + 1)),
            say("column.token"): names,
            **numbers,
            say("column.context"): sizes[:shown],
        },
        hide_index=True, height=260, key="next_token_long_table",
        column_config={name: st.column_config.NumberColumn(format="%.6f") for name in numbers},
    )  # fmt: skip
    st.download_button(
        say("download"),
        lambda: table_csv(job.ids, log_probs, sizes, tokenizer.token_bytes),
        file_name="surprise.csv", mime="text/csv", key="next_token_long_csv", on_click="ignore",
        icon=":material/download:", type="tertiary",
    )  # fmt: skip


def _bytes_scored(job: Job, ref: ModelRef) -> int:
    """Bytes of the tokens that are scored: all but the first when the job is finished."""
    if job.finished:
        return job.n_bytes - job.first_bytes
    tokenizer = resources.tokenizer(ref)
    return sum(len(tokenizer.token_bytes(int(i))) for i in job.ids[1 : len(job.log_probs) + 1])


def _compared(ref: ModelRef, text: str, unit: str) -> None:
    """What more context brought, as soon as the text was scored with two different moves."""
    rows: list[dict[str, Any]] = []
    store: dict[tuple[str, str, int], Job] = st.session_state.get(_STORE, {})
    mark = hashlib.sha256(text.encode("utf-8")).hexdigest()
    for (identity, about, stride), job in sorted(store.items(), key=lambda item: -item[0][2]):
        if (identity, about) == (ref.identity, mark) and job.finished and job.parts:
            loss = float(-job.log_probs.mean())
            rows.append(
                {
                    say("column.stride"): stride,
                    say("column.read"): tokens_read(job.windows),
                    say("column.median"): float(np.median(context_sizes(job.windows))),
                    say("column.loss", unit=unit): float(surprisal(-loss, unit)),
                    say("column.perplexity"): perplexity(loss),
                }
            )
    if len(rows) > 1:
        st.markdown(say("strides"))
        st.dataframe(
            {name: [row[name] for row in rows] for name in rows[0]},
            hide_index=True, key="next_token_strides",
            column_config={name: st.column_config.NumberColumn(format="%.5g") for name in list(rows[0])[2:]},
        )  # fmt: skip


def table_csv(
    ids: Sequence[int] | NDArray[np.int64],
    log_probs: NDArray[np.float64],
    sizes: NDArray[np.int64],
    bytes_of: Any,
) -> str:
    """All scored tokens as CSV: position, token, id, natural log of its probability, context."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([say(f"column.{name}") for name in ("position", "token", "id", "log", "context")])
    for i, (log_prob, size) in enumerate(zip(log_probs.tolist(), sizes.tolist(), strict=True), start=1):
        token_id = int(ids[i])
        writer.writerow([i, safe_cell(visible(bytes_of(token_id))), token_id, f"{log_prob:.9g}", size])
    return out.getvalue()
