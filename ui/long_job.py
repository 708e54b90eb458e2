"""One person's scoring of a text of any length: planned and estimated, stopped and gone on with."""

import hashlib
import time
from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.windows import Window, cut, score_parts, seconds_per_token, tokens_read
from ui import resources
from ui.model_refs import ModelRef
from ui.words import counted, duration
from viz import format_count
from wording import words

say = words("ui.long_job")

AT_ONCE = 4096  # tokens that go through a small model without being asked for: about a second
SOON = 3.0  # seconds that a large model reads without being asked
KEPT = 8  # results that a person keeps
_STORE, _PRESSED = "_next_token_scored", "_next_token_score_now"


@dataclass(eq=False)
class Job:
    """One person's scoring of one text, as far as it has come.

    Attributes:
        ids: (N,) of the whole text, with those that the model wants before it.
        first: index of the first one that is predicted: what stands before it is given.
        windows: all of them.
        n_bytes: of the tokens that are predicted.
        pace: seconds for each token as measured before; 0 for a small model, which is quick.
        done: windows that are scored.
        parts: their log-probabilities.
        seconds: that took.
    """

    ids: NDArray[np.int64]
    first: int
    windows: list[Window]
    n_bytes: int
    pace: float = 0.0
    done: int = 0
    parts: list[NDArray[np.float64]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether every token has its score."""
        return self.done == len(self.windows)

    @property
    def log_probs(self) -> NDArray[np.float64]:
        """(n,) of the tokens from `first` on, as far as they are scored."""
        return np.concatenate(self.parts) if self.parts else np.zeros(0)

    @property
    def work_left(self) -> int:
        """Tokens that still have to go through the model."""
        return tokens_read(self.windows[self.done :])

    @property
    def soon(self) -> bool:
        """Whether what is left is done before anybody gets impatient."""
        return self.left() <= SOON if self.pace else self.work_left <= AT_ONCE

    def left(self) -> float:
        """Seconds that the rest will take: by what is done, before that as measured; 0 if not known."""
        done = tokens_read(self.windows[: self.done])
        return (self.seconds / done if done else self.pace) * self.work_left

    def add(self, part: NDArray[np.float64], seconds: float) -> None:
        """Keep the scores of the next windows."""
        self.parts.append(part)
        self.seconds += seconds
        got = len(part)
        while got > 0:
            got -= self.windows[self.done].fresh
            self.done += 1


@st.cache_data(max_entries=16, ttl=600, show_spinner=say.later("measuring"))
def _pace(ref: ModelRef) -> float:
    return seconds_per_token(resources.load(ref).model)


def job_of(ref: ModelRef, text: str, stride: int) -> Job:
    """This person's job for a model, text and stride: the one that was begun, or a new one.

    Raises:
        ValueError: if the vocabulary lacks a byte of the text.
    """
    store = jobs()
    key = (ref.identity, mark_of(text), stride)
    if key not in store:
        tokenizer = resources.tokenizer(ref)
        before, own = tokenizer.frame[0], tokenizer.encode(text)
        ids = [*before, *own]
        windows = cut(len(ids), ref.context_length, stride, len(before)) if own else []
        first = max(1, len(before))
        n_bytes = len(tokenizer.normal(text).encode("utf-8"))
        n_bytes -= sum(len(tokenizer.token_bytes(i)) for i in own[: first - len(before)])
        pace = _pace(ref) if ref.large else 0.0
        store[key] = Job(np.array(ids, np.int64), first, windows, n_bytes, pace)
        while len(store) > KEPT:
            del store[next(iter(store))]
    return store[key]


def jobs() -> dict[tuple[str, str, int], Job]:
    """What this person has begun, by the model's identity, `mark_of` the text, and the stride."""
    store: dict[tuple[str, str, int], Job] = st.session_state.setdefault(_STORE, {})
    return store


def mark_of(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def run(job: Job, ref: ModelRef) -> None:
    """Score what is left, with progress; what is done stays if the page is left or stopped."""
    model, n = resources.load(ref).model, counted(len(job.ids) - job.first, "token")
    total = tokens_read(job.windows)
    bar, place = st.progress(0.0, say("scoring")), st.empty()
    if not job.soon:  # whatever is pressed ends the work
        place.button(say("stop"), key="score_stop", icon=":material/stop:")
    began, read = time.monotonic(), 0

    def tell(n_tokens: int) -> None:
        nonlocal read
        read += n_tokens
        done = tokens_read(job.windows[: job.done]) + read
        rest = (job.seconds + time.monotonic() - began) / done * (total - done)
        scored = sum(window.fresh for window in job.windows[: job.done])
        far = {"scored": format_count(scored), "all": n}
        told = say("scored_with_estimate", **far, left=duration(rest)) if rest > 1 else say("scored", **far)
        bar.progress(min(done / total, 1.0), told)

    for part in score_parts(model, job.ids.tolist(), job.windows[job.done :], tell=tell):
        job.add(part, time.monotonic() - began)
        began, read = time.monotonic(), 0
    bar.empty()
    place.empty()


def _press() -> None:
    st.session_state[_PRESSED] = True


def ask(*asked: Job) -> bool:
    """The button that starts long work or goes on with it, and how long that will take."""
    share = sum(job.done for job in asked) / sum(len(job.windows) for job in asked)
    label = say("go_on", share=share) if share else say("begin")
    pressed = bool(st.session_state.pop(_PRESSED, False))
    st.button(label, key="score_all", type="primary", icon=":material/play_arrow:", on_click=_press)
    left = sum(job.left() for job in asked)
    if not pressed and left > 1:
        measured = any(job.done for job in asked)
        st.caption(say("about_left" if measured else "about", left=duration(left)))
    return pressed
