"""Score a text of any length in windows: in pieces that can be stopped, each token once."""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.metrics import perplexity, surprisal
from engine.tokens import Token, whole_graphemes
from engine.windows import context_sizes, tokens_read
from ui import lesson, resources, worked_text
from ui.cells import safe_cell
from ui.components import show, token_strip
from ui.long_job import Job, ask, job_of, jobs, mark_of, run
from ui.model_refs import ModelRef
from ui.scored import fixed
from ui.words import counted
from viz import NEUTRAL, format_count, format_tick, surprisal_color, visible
from viz.along import surprisal_by_block
from wording import words

say = words("ui.next_long")

DRAWN = 300  # tokens of the strip and of the table
LINES = 40  # a strip of more tokens scrolls, so that the picture stays in sight
SHARES = (1, 2, 4, 8)  # the window moves by the context divided by one of these


def diverged() -> str:
    """What to say of a model whose output is not finite."""
    return say("diverged")


def any_length(ref: ModelRef, text: str, unit: str) -> None:
    """Draw the whole view."""
    lesson.need_text(text)
    try:
        job = job_of(ref, text, ref.context_length)
    except ValueError as error:
        lesson.explain(error)
    if not job.windows:
        st.info(say("too_short"))
        return
    share = st.segmented_control(
        say("stride"), SHARES, default=2, required=True, format_func=lambda n: say(f"share.{n}"),
        key="next_token_stride", persist_state="session", help=say("stride_help"),
    )  # fmt: skip
    stride = max(1, ref.context_length // int(share))
    job = job_of(ref, text, stride)
    _plan(job, ref)
    if not job.finished and (job.soon or ask(job)):
        run(job, ref)
        if job.finished:
            st.rerun()
    if job.parts:
        _result(job, ref, text, unit)
    _compared(ref, text, unit)


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
    n, surprise, first = len(log_probs), surprisal(log_probs, unit), job.first
    most = float(surprisal(-math.log(resources.load(ref).model.config.vocab_size), unit))
    shown = min(n, DRAWN)
    with st.container(height=210 if shown > LINES else "content", border=shown > LINES):
        token_strip(
            _segments(job, ref, text, first + shown),
            key="next_token_long_strip",
            values=[say("given")] * first + [lesson.brief(x) for x in surprise[:shown].tolist()],
            colors=[NEUTRAL] * first + [surprisal_color(x, most) for x in surprise[:shown].tolist()],
            label=say("strip"),
        )
    if first + shown < len(job.ids):
        part = {"shown": first + shown, "total": format_count(len(job.ids))}
        st.caption(say("drawn", **part) if job.finished else say("drawn_so_far", **part, n=format_count(n)))
    show(surprisal_by_block(surprise, unit=unit, first=first), key="next_token_long")
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
    names = [visible(tokenizer.token_bytes(int(i))) for i in job.ids[first : first + shown]]
    numbers = {say("column.probability"): np.exp(log_probs[:shown]),
               say("column.surprise", unit=unit): surprise[:shown]}  # fmt: skip
    st.dataframe(
        {
            say("column.position"): list(range(first, first + shown)),
            say("column.token"): names,
            **numbers,
            say("column.context"): sizes[:shown],
        },
        hide_index=True, height=260, key="next_token_long_table",
        column_config={name: st.column_config.NumberColumn(format=fixed(of)) for name, of in numbers.items()},
    )  # fmt: skip
    st.download_button(
        say("download"),
        lambda: table_csv(job.ids, first, log_probs, sizes, tokenizer.token_bytes),
        file_name="surprise.csv", mime="text/csv", key="next_token_long_csv", on_click="ignore",
        icon=":material/download:", type="tertiary",
    )  # fmt: skip


def _bytes_scored(job: Job, ref: ModelRef) -> int:
    """Bytes of the tokens that are scored."""
    if job.finished:
        return job.n_bytes
    tokenizer = resources.tokenizer(ref)
    scored = job.ids[job.first : job.first + len(job.log_probs)]
    return sum(len(tokenizer.token_bytes(int(i))) for i in scored)


def _segments(job: Job, ref: ModelRef, text: str, most: int) -> list[list[Token]]:
    """The first tokens, with those that the model wants before a text, in whole graphemes."""
    tokenizer = resources.tokenizer(ref)
    n_before = len(tokenizer.frame[0])
    tokens = tokenizer.framed(tokenizer.locate(job.ids[n_before:most].tolist(), text))
    return whole_graphemes(tokens[:most], tokenizer.normal(text))


def _compared(ref: ModelRef, text: str, unit: str) -> None:
    """What more context brought, as soon as the text was scored with two different moves."""
    rows: list[dict[str, Any]] = []
    mark = mark_of(text)
    for (identity, about, stride), job in sorted(jobs().items(), key=lambda item: -item[0][2]):
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
    first: int,
    log_probs: NDArray[np.float64],
    sizes: NDArray[np.int64],
    bytes_of: Any,
) -> str:
    """All scored tokens as CSV, from position `first` on: token, id, log-probability (nats), context."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([say(f"column.{name}") for name in ("position", "token", "id", "log", "context")])
    for i, (log_prob, size) in enumerate(zip(log_probs.tolist(), sizes.tolist(), strict=True), start=first):
        token_id = int(ids[i])
        writer.writerow([i, safe_cell(visible(bytes_of(token_id))), token_id, f"{log_prob:.9g}", size])
    return out.getvalue()
