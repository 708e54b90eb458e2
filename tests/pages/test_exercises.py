"""The Exercises page: marks, hints, solutions, new numbers, progress, in both languages."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.exercise import Choice, Number, Order, seed_of
from engine.exercise_list import IDS, TOPICS, exercise
from engine.marking import rounded
from engine.progress import ProgressStore
from tests.pages.conftest import OpenPage
from tests.pages.made_runs import EVALS, MINE, make_run
from ui import session


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOUPE_HOME", str(tmp_path))
    monkeypatch.setattr(session, "owner", lambda: MINE)
    return tmp_path


def open_one(open_page: OpenPage, name: str, seed: int | None = 4, **state: object) -> AppTest:
    query = {"exercise": name} | ({} if seed is None else {"seed": str(seed)})
    at = open_page("exercises", query=query, **state)
    assert not at.exception
    return at


def press(at: AppTest, what: str) -> AppTest:
    (button,) = [b for b in at.button if b.key and re.fullmatch(rf"exercises_.*_\d+_{what}", b.key)]
    at = button.click().run()
    assert not at.exception
    return at


def type_in(at: AppTest, text: str) -> AppTest:
    at.text_input[-1].set_value(text)
    return press(at, "check")


def right_answer(name: str, seed: int = 4) -> str:
    answer = exercise(name, seed).answer
    assert isinstance(answer, Number)
    return rounded(answer.value)


def said(at: AppTest) -> str:
    return "\n".join(
        e.value for kind in (at.markdown, at.warning, at.success, at.caption, at.info) for e in kind
    )


def done(home: Path, name: str) -> object:
    return ProgressStore(home).read(MINE).exercises.get(name)


@pytest.mark.parametrize("language", ["en", "es"])
def test_the_list_shows_every_exercise_by_topic(open_page: OpenPage, language: str) -> None:
    at = open_page("exercises", lang=language)
    assert not at.exception
    listed = [b.key.removeprefix("exercises_open_") for b in at.button if "exercises_open_" in (b.key or "")]
    assert listed == list(IDS) and len(at.subheader) == len(TOPICS)
    assert ("Pérdida" if language == "es" else "Loss") in at.subheader[2].value


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("topic", TOPICS)
def test_every_exercise_opens_in_both_languages(open_page: OpenPage, topic: str, language: str) -> None:
    at = open_page("exercises", query={"topic": topic, "exercise": next(iter(TOPICS[topic]))}, lang=language)
    for n in range(len(TOPICS[topic])):
        assert not at.exception, n
        assert f"{n + 1}" in next(c.value for c in at.caption if "·" in c.value)
        step = next(b for b in at.button if b.key == "exercises_next")
        assert step.disabled == (n == len(TOPICS[topic]) - 1)
        at = at if step.disabled else step.click().run()


def test_a_link_with_a_topic_shows_only_that(open_page: OpenPage) -> None:
    at = open_page("exercises", query={"topic": "masked"})
    listed = [b.key for b in at.button if "exercises_open_" in (b.key or "")]
    assert listed == [f"exercises_open_{name}" for name in TOPICS["masked"]]


def test_a_right_answer_is_marked_counted_and_worked_out(open_page: OpenPage, home: Path) -> None:
    at = type_in(open_one(open_page, "minus-log"), right_answer("minus-log"))
    assert at.success[0].value == "Right." and len(at.latex) == 1
    assert (done(home, "minus-log").right, done(home, "minus-log").tries) == (True, 1)  # type: ignore[attr-defined]
    assert "1 of " in at.get("progress")[0].proto.text  # the score
    assert next(b for b in at.button if b.key.endswith("_check")).disabled


@pytest.mark.parametrize(("language", "text"), [("en", "base 10"), ("es", "base 10")])
def test_a_typical_mistake_gets_a_sentence(open_page: OpenPage, home: Path, language: str, text: str) -> None:
    answer = exercise("minus-log", 4).answer
    assert isinstance(answer, Number)
    log10 = next(slip.value for slip in answer.slips if slip.name == "log10")
    at = type_in(open_one(open_page, "minus-log", lang=language), f"{log10:.4f}".replace(".", ","))
    assert text in at.warning[0].value and rounded(log10, 4)[:5] in at.warning[0].value  # as it was read
    assert not done(home, "minus-log").right  # type: ignore[attr-defined]


@pytest.mark.parametrize("typed", ["", "-", "NaN", "1e999", "__import__('os')", "٣", "<b>x</b>", "$x$"])
def test_what_is_no_number_is_no_try(open_page: OpenPage, home: Path, typed: str) -> None:
    at = type_in(open_one(open_page, "minus-log"), typed)
    assert len(at.warning) == 1 and not at.success and done(home, "minus-log") is None


def test_hints_open_one_by_one_then_the_solution_which_ends_the_numbers(
    open_page: OpenPage, home: Path
) -> None:
    at = open_one(open_page, "cross-entropy")
    assert not at.info and not at.latex
    at = press(at, "hint")
    assert len(at.info) == 1
    at = press(at, "hint")
    assert len(at.info) == 2 and not at.latex
    at = press(at, "solve")
    assert len(at.latex) == 1 and done(home, "cross-entropy") is None
    assert next(b for b in at.button if b.key.endswith("_check")).disabled
    at = press(at, "new")
    assert not at.latex and not at.info
    at = type_in(at, right_answer("cross-entropy", 5))
    assert at.success and done(home, "cross-entropy").right  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", ["exercises", "lesson"])
def test_a_solution_once_shown_stays_shown_after_a_reload_and_at_every_place(
    open_page: OpenPage, home: Path, place: str
) -> None:
    at = press(press(press(open_one(open_page, "minus-log"), "hint"), "hint"), "solve")
    if place == "lesson":
        query = {"lesson": "loss", "seed": "4"}
        at = open_page("lessons", query=query)
        found = [b for b in at.button if re.fullmatch(r".*_minus-log_4_check", b.key or "")]
        assert not at.exception and [b.disabled for b in found] == [True]
    else:
        at = open_one(open_page, "minus-log")  # a reload, or a second tab
        assert next(b for b in at.button if b.key.endswith("_check")).disabled and at.latex
        assert any("given away" in info.value for info in at.info)
        at = press(at, "new")
        assert not at.latex and done(home, "minus-log") is None
        at = press(at, "first")  # back at those of the link, which stay spent
        assert at.latex and next(b for b in at.button if b.key.endswith("_check")).disabled


def test_opened_hints_count_after_a_reload(open_page: OpenPage, home: Path) -> None:
    press(press(open_one(open_page, "minus-log"), "hint"), "hint")
    at = open_one(open_page, "minus-log")
    assert len(at.info) == 2
    type_in(at, right_answer("minus-log"))
    assert done(home, "minus-log").hints == 2  # type: ignore[attr-defined]
    at = open_one(open_page, "minus-log")
    assert "had these numbers right" in at.success[0].value and at.latex


def test_options_can_not_be_tried_one_by_one_with_reloads(open_page: OpenPage, home: Path) -> None:
    answer = exercise("inputs-and-targets", 4).answer
    assert isinstance(answer, Choice)
    at = open_one(open_page, "inputs-and-targets")
    at.radio[0].set_value(next(i for i in range(4) if i not in answer.right))
    press(at, "check")
    at = open_one(open_page, "inputs-and-targets")
    assert str(exercise("inputs-and-targets", 5).values["ids"]) in said(at) and "seed 5" in said(at)
    at = press(at, "first")
    assert next(b for b in at.button if b.key.endswith("_check")).disabled  # those numbers are spent


@pytest.mark.parametrize(
    ("name", "offered"), [("run-rates", False), ("run-overfit", False), ("run-stories", True)]
)
def test_new_numbers_are_offered_only_where_there_are_others(
    open_page: OpenPage, name: str, offered: bool
) -> None:
    at = open_one(open_page, name)
    assert any((b.key or "").endswith("_new") for b in at.button) == offered


def test_a_folder_that_can_not_be_written_stops_no_exercise(
    open_page: OpenPage, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.exercise_store import SeenStore

    def full(*_args: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(SeenStore, "_change", full)
    at = press(press(press(open_one(open_page, "minus-log"), "hint"), "hint"), "solve")
    assert at.latex
    at = press(at, "new")
    at = type_in(at, right_answer("minus-log", 5))
    assert at.success and done(home, "minus-log").right  # type: ignore[attr-defined]


def test_a_wrong_choice_says_why_and_brings_new_numbers(open_page: OpenPage, home: Path) -> None:
    answer = exercise("inputs-and-targets", 4).answer
    assert isinstance(answer, Choice)
    wrong = next(i for i in range(4) if i not in answer.right)
    at = open_one(open_page, "inputs-and-targets")
    before = at.radio[0].options
    at.radio[0].set_value(wrong)
    at = press(at, "check")
    assert "other numbers" in at.warning[0].value and at.radio[0].options != before
    assert at.radio[0].value is None
    again = exercise("inputs-and-targets", 5).answer
    assert isinstance(again, Choice)
    at.radio[0].set_value(min(again.right))
    at = press(at, "check")
    assert at.success and done(home, "inputs-and-targets").tries == 2  # type: ignore[attr-defined]


def test_several_are_chosen_with_boxes(open_page: OpenPage, home: Path) -> None:
    answer = exercise("top-p", 4).answer
    assert isinstance(answer, Choice)
    at = open_one(open_page, "top-p")
    for i in answer.right:
        next(box for box in at.checkbox if box.key.endswith(f"_answer_{i}")).check()
    assert press(at, "check").success and done(home, "top-p").right  # type: ignore[attr-defined]


def test_steps_are_ordered_with_buttons(open_page: OpenPage, home: Path) -> None:
    answer = exercise("training-order", 4).answer
    assert isinstance(answer, Order)
    at = press(open_one(open_page, "training-order"), "check")
    assert at.warning and not done(home, "training-order").right  # type: ignore[attr-defined]
    now = list(answer.shown)
    for place, step in enumerate(answer.steps):
        for i in range(now.index(step), place, -1):
            at = press(at, f"up_{i}")
            now[i - 1], now[i] = now[i], now[i - 1]
    assert press(at, "check").success and done(home, "training-order").right  # type: ignore[attr-defined]


def test_a_run_of_ones_own_is_found_and_its_name_is_no_markup(open_page: OpenPage, home: Path) -> None:
    at = press(open_one(open_page, "run-unigram"), "check")
    assert "no causal run" in at.warning[0].value and done(home, "run-unigram") is None
    make_run(home, name="*my* $run$", records=[*EVALS, {"kind": "baseline", "step": 0, "unigram": 1.5}])
    at = press(at, "check")
    assert r"\*my\* \$run\$" in at.warning[0].value and "0.500" in at.warning[0].value
    make_run(home, name="better", records=[*EVALS, {"kind": "baseline", "step": 0, "unigram": 3.0}])
    at = press(at, "check")
    assert "better" in at.success[0].value and done(home, "run-unigram").right  # type: ignore[attr-defined]


def test_without_a_seed_in_the_address_everybody_has_their_own_numbers(open_page: OpenPage) -> None:
    own = exercise("minus-log", seed_of(MINE, "minus-log")).values["p"]
    assert f"**{own}**" in said(open_one(open_page, "minus-log", seed=None))
    assert f"**{exercise('minus-log', 4).values['p']}**" in said(open_one(open_page, "minus-log"))


@pytest.mark.parametrize("seed", ["x", "-1", "9" * 40, "٣", "1e3"])
def test_a_seed_that_is_none_is_as_if_it_were_not_there(open_page: OpenPage, seed: str) -> None:
    at = open_page("exercises", query={"exercise": "minus-log", "seed": seed})
    assert not at.exception
    assert f"**{exercise('minus-log', seed_of(MINE, 'minus-log')).values['p']}**" in said(at)


def test_an_unknown_exercise_in_the_address_leads_to_the_list(open_page: OpenPage) -> None:
    at = open_page("exercises", query={"exercise": "nonsense"})
    assert not at.exception and at.warning and len(at.subheader) == len(TOPICS)


def test_what_was_right_before_has_a_mark(open_page: OpenPage, home: Path) -> None:
    ProgressStore(home).answer(MINE, "top-k", seed=1, right=True)
    at = open_page("exercises")
    marks = {b.key: b.icon for b in at.button if "exercises_open_" in (b.key or "")}
    assert "check_circle" in marks["exercises_open_top-k"] and "unchecked" in marks["exercises_open_top-p"]
