"""The self-test on the screen: one line that says it all, what is not fine with a way out, then the rest."""

import math
from collections.abc import Sequence

import streamlit as st

from engine import plain_log, selftest_job
from engine.selftest_job import Job
from engine.selftest_machine import loupe_version, system
from engine.selftest_result import (
    FAILED,
    GROUPS,
    OK,
    SIGNS,
    WARNING,
    Result,
    summary,
    table,
    what,
    worst,
    worst_first,
)
from ui.words import literal
from wording import words

say = words("ui.selftest_view")

POLL = 0.5  # seconds between two looks at a self-test under way
COLOURS = {OK: "green", WARNING: "orange", FAILED: "red"}


def draw() -> None:
    """All of it. Looks again while a self-test goes on, whoever started it."""
    is_running = selftest_job.running() is not None
    st.fragment(_draw, run_every=POLL if is_running else None)(is_running)


def _draw(polled: bool) -> None:
    job, last = selftest_job.running(), selftest_job.last()
    if polled != (job is not None):
        st.rerun()  # it has begun, or is done: the page has to begin looking again and again, or to end it
        return
    with st.container(key="selftest_answer"):
        if last is not None:
            _answer(last)
        elif job is None:
            st.info(say("none_yet"), icon=":material/stethoscope:")
    if job is not None:
        done, total = len(job.results), max(job.total, 1)
        now = say("at", what=what(job.at)) if job.at else say("going_on")
        st.progress(min(done / total, 1.0), text=say("progress", now=now, done=done, total=total))
    left = selftest_job.pause()
    st.button(
        say("again" if last else "begin"), key="selftest_start", type="primary", icon=":material/play_arrow:",
        disabled=job is not None, on_click=_start, help=say("wait", n=math.ceil(left)) if left else None,
    )  # fmt: skip
    if last is not None:
        _results(last)


def _start() -> None:
    if (left := selftest_job.pause()) > 0:
        st.toast(say("wait", n=math.ceil(left)), icon=":material/hourglass_empty:")
    selftest_job.start()


def _answer(job: Job) -> None:
    """The first thing to read: whether everything is fine, since when, and how long that took to find out."""
    state, said = worst(job.results), summary(job.results)
    box = {OK: st.success, WARNING: st.warning, FAILED: st.error}[state]
    box(f"**{SIGNS[state]} {said}**  \n{_when(job)} {say('shared')}")


def _when(job: Job) -> str:
    ended = job.ended or job.began
    at = plain_log.since(ended)
    return say("when", n=len(job.results), at=at, seconds=f"{ended - job.began:.0f}")


def _results(job: Job) -> None:
    results = worst_first(job.results)
    for result in results:
        if result.state != OK:
            _trouble(result)
    left, right = st.columns(2)
    for group in GROUPS:
        fine = [r for r in results if r.state == OK and r.group == group]
        if fine:
            lines = [f"{_badge(r)} {literal(r.what)}" for r in fine]
            place = left if group == GROUPS[0] else right
            place.markdown("  \n".join([f"**{say(f'group.{group}')}**", *lines]))
    with st.expander(say("details"), key="selftest_details"):
        _details(results)
    with st.expander(say("report"), key="selftest_report"):
        st.caption(say("report_how"))
        st.code(report(job), language=None)


def _badge(result: Result) -> str:
    return f":{COLOURS[result.state]}-badge[{result.verdict}]"


def _trouble(result: Result) -> None:
    """Something that is not fine: the numbers, and what to do."""
    with st.container(border=True, key=f"selftest_of_{result.slug}"):
        st.markdown(f"{_badge(result)} **{literal(result.what)}**")
        st.markdown(_numbers(result))
        st.markdown(literal(result.way_out))


def _details(results: Sequence[Result]) -> None:
    """Every number beside what it should be; lines, since a table as wide as this fits no phone."""
    for group in GROUPS:
        lines = [f"**{say(f'group.{group}')}**"]
        for r in results:
            if r.group == group:
                lines += [f"{_badge(r)} {literal(r.what)} · {r.seconds:.2f} s", _numbers(r)]
        if len(lines) > 1:
            st.markdown("  \n".join(lines))


def _numbers(result: Result) -> str:
    facts = {"measured": literal(result.measured.text), "expected": literal(result.expected.text)}
    return say("numbers", **facts)


def report(job: Job) -> str:
    """All of it as plain text, to pass on: versions and numbers, no path and no name of a person."""
    return "\n".join([f"Loupe {loupe_version()}", system(), _when(job), "", table(job.results)])
