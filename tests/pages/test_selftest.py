"""The self-test page: one line that says it all, trouble first with a way out, and a log for the teacher."""

import re
import time
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import plain_log, selftest_job
from engine.selftest import CHECKS
from engine.selftest_job import Job
from engine.selftest_result import FAILED, OK, WARNING, Fact, Result
from tests.pages.conftest import OpenPage
from tests.pages.test_languages import left_in_english
from ui import selftest_view, teacher_gate

TROUBLE = {"card": FAILED, "disk": WARNING}


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_job", "_last"):
        monkeypatch.setattr(selftest_job, name, None)


def done(trouble: dict[str, str]) -> Job:
    """A self-test that is done; of those in `trouble` the numbers are off."""
    facts = {
        "card": (Fact("nats", {"x": 0.7}), Fact("on_card", {"x": 0.4211})),
        "disk": (Fact("disk", {"free": 321.0}), Fact("at_least_mb", {"limit": 1000})),
    }
    some = facts["disk"]
    results = [
        Result(check.slug, check.group, trouble.get(check.slug, OK), *facts.get(check.slug, some), 0.5)
        for check in CHECKS
    ]
    began = time.time() - 60
    return Job(began, results, len(CHECKS), ended=began + 12)


def open_with(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, job: Job | None, **state: Any) -> AppTest:
    monkeypatch.setattr(selftest_job, "_last", job)
    at = open_page("selftest", **state)
    assert not at.exception, at.exception[0].value
    return at


def said(at: AppTest) -> str:
    kinds = ("markdown", "caption", "info", "warning", "error", "success")
    text = "\n".join(str(element.value) for kind in kinds for element in at.main.get(kind))
    return re.sub(r"\\(?=[^\w\s])", "", text)  # what Markdown shows


def test_before_the_first_one_it_says_so(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_with(open_page, monkeypatch, None)
    assert "Nothing was checked yet" in at.info[0].value
    assert at.button(key="selftest_start").label == "Check everything"


def test_everything_is_fine_in_one_line(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_with(open_page, monkeypatch, done({}))
    assert at.success[0].value.startswith("**✓ Everything is fine.**")
    assert f"{len(CHECKS)} checks" in at.success[0].value and "took 12 s" in at.success[0].value
    assert not at.error and not at.warning
    assert said(at).count("✓ fine") == 2 * len(CHECKS)  # in the short list, and with the numbers


def test_what_is_not_fine_stands_first_with_numbers_and_a_way_out(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_with(open_page, monkeypatch, done(TROUBLE))
    assert at.error[0].value.startswith("**✗ 1 check failed.**")
    text = said(at)
    order = [
        "✗ failed]", "Loss of the shipped model", "Measured: 0.7000 nats. Expected: 0.4211 nats",
        "The folder pretrained may be damaged", "! look]", "Measured: 321 MB. Expected: at least 1,000 MB",
        "Delete old runs and models", "✓ fine]",
    ]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_only_warnings_are_no_error(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_with(open_page, monkeypatch, done({"disk": WARNING}))
    assert at.warning[0].value.startswith("**! Nothing failed. 1 check asks for a look.**")
    assert not at.error and not at.success


def test_the_report_is_plain_and_names_no_folder(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, loupe_home: Any
) -> None:
    at = open_with(open_page, monkeypatch, done(TROUBLE))
    (report,) = (code.value for code in at.main.code)
    assert report.startswith("Loupe ") and "Python 3." in report and "UTC" in report
    assert "✗ failed  Loss of the shipped model" in report and "0.7000 nats" in report
    assert str(loupe_home) not in report and "/" not in re.sub(r"\bn/a\b", "", report)


def test_while_one_goes_on_everybody_sees_how_far(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = done({})
    job.results, job.ended, job.at = job.results[:6], None, "gradient"
    monkeypatch.setattr(selftest_job, "_job", job)
    at = open_with(open_page, monkeypatch, done({"card": FAILED}))
    assert at.button(key="selftest_start").disabled
    (bar,) = at.get("progress")
    assert bar.proto.text == f"Gradient and measured slope … (6 of {len(CHECKS)})"
    assert at.error[0].value.startswith("**✗ 1 check failed.**")  # of the one before


def test_the_button_begins_one(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr(selftest_job, "start", lambda: begun.append(True))
    at = open_with(open_page, monkeypatch, None)
    at.button(key="selftest_start").click().run()
    assert not at.exception and begun == [True]


def test_all_of_it_is_spanish(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_LANGUAGE", "es")
    at = open_with(open_page, monkeypatch, done(TROUBLE), lang="es")
    assert at.error[0].value.startswith("**✗ Falló 1 comprobación.**")
    assert not left_in_english(at)


def test_the_log_is_for_the_teacher_only(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_log.info("run started", run="20261130-7")
    at = open_with(open_page, monkeypatch, None)
    assert not any("20261130-7" in code.value for code in at.main.code)
    assert "loupe.log" in said(at)
    monkeypatch.setattr(teacher_gate, "is_teacher", lambda: True)
    at.run()
    (log,) = (code.value for code in at.main.code)
    assert log.splitlines()[-1].endswith("run=20261130-7") or "run=20261130-7" in log


# ---- the server's own lines


def test_a_page_that_fails_is_in_the_log_without_what_it_says(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    st.cache_resource.clear()  # another server begins

    def fails() -> None:
        raise KeyError("Anna's diary")

    monkeypatch.setattr(selftest_view, "draw", fails)
    at = open_page("selftest")
    assert at.exception
    text = plain_log.path().read_text("utf-8")
    assert re.search(r"info    server started  version=\S+ process=\d+ address=\S+ ", text)
    assert re.search(r"error   page failed  kind=KeyError\n(    .*\n)*    pages/selftest.py:\d+", text)
    assert "nna" not in text


def test_a_callback_that_fails_is_in_the_log(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    st.cache_resource.clear()
    at = open_with(open_page, monkeypatch, None)

    def fails() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(selftest_job, "start", fails)  # within a fragment
    at.button(key="selftest_start").click().run()
    assert at.exception
    assert "page failed  kind=ZeroDivisionError" in plain_log.path().read_text("utf-8")
