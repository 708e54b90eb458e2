"""The path: every lesson opens, every step leads where it says, and only right answers pass."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import wording
from engine.exercise import Choice, Ids, Number, Order
from engine.exercise_list import IDS, exercise
from engine.progress import Done, Progress, ProgressStore
from tests.pages.conftest import OpenPage
from ui import example_list, glossary_words, lesson_list, lesson_summary, nav
from ui.diagram import boxes_of
from ui.lesson_list import LESSONS, ORDER

ME, YOU = "a" * 32, "b" * 32
LANGUAGES = list(wording.LANGUAGES)


def opened(open_page: OpenPage, slug: str | None = None, owner: str = ME, lang: str = "en") -> AppTest:
    query = {"lang": lang} | ({"lesson": slug} if slug else {})
    at = open_page("lessons", query=query, _owner_proposal=owner)
    assert not at.exception
    return at


def written(at: AppTest) -> str:
    return "\n".join(element.value for kind in (at.markdown, at.caption, at.success) for element in kind)


def query_of(at: AppTest, key: str) -> str:
    value = at.query_params[key]
    return value if isinstance(value, str) else value[0]


def seed_at(at: AppTest, slug: str, name: str) -> int:
    keys = [str(button.key) for button in at.button]
    found = [match for key in keys if (match := re.fullmatch(rf"lesson_{slug}_{name}_(\d+)_check", key))]
    assert len(found) == 1
    return int(found[0][1])


def answer(at: AppTest, slug: str, name: str, *, right: bool) -> AppTest:
    """Answer an exercise of a lesson's check, by its widgets."""
    seed = seed_at(at, slug, name)
    key, asked = f"lesson_{slug}_{name}_{seed}", exercise(name, seed)
    it = asked.answer
    if isinstance(it, Number):
        at.text_input(key=f"{key}_answer").set_value(repr(it.value if right else it.value + 1000))
    elif isinstance(it, Ids):
        values = it.values if right else [*it.values][::-1]
        at.text_input(key=f"{key}_answer").set_value(", ".join(map(str, values)))
    elif isinstance(it, Order):
        at.session_state[f"{key}_order"] = list(it.steps if right else it.shown)
    elif isinstance(it, Choice) and asked.kind == "choose":
        at.radio(key=f"{key}_answer").set_value(
            next(i for i in range(len(it.options)) if (i in it.right) == right)
        )
    else:
        assert isinstance(it, Choice)
        for i in range(len(it.options)):
            at.checkbox(key=f"{key}_answer_{i}").set_value((i in it.right) == right)
    at.button(key=f"{key}_check").click().run()
    assert not at.exception
    return at


# What the lessons are made of.


def test_the_path_is_whole() -> None:
    assert len(ORDER) == 12
    for i, slug in enumerate(ORDER):
        it = LESSONS[slug]
        assert 3 <= len(it.steps) <= 5 and 2 <= len(it.check) <= 3, slug
        assert set(it.needs) <= set(ORDER[:i]), f"{slug} needs a later lesson"
        assert set(it.check) <= set(IDS), slug
        assert set(it.words) <= set(glossary_words.WORDS), slug
        assert set(it.examples) <= set(example_list.EXAMPLES), slug
        assert set(it.diagram[1]) <= set(boxes_of(it.diagram[0])) and it.diagram[1], slug
    checks = [name for it in LESSONS.values() for name in it.check]
    assert len(checks) == len(set(checks)), "no exercise is asked twice"


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_lesson_has_words_for_each_of_its_steps_and_no_more(language: str) -> None:
    for slug, it in LESSONS.items():
        said = wording.find("ui.lesson_list", f"lesson.{slug}", language)
        numbers = {str(n) for n in range(1, len(it.steps) + 1)}
        assert set(said["step"]) == set(said["go"]) == numbers
        assert len(said["aim"]) < 160 and said["aim"].count(".") == 1, f"{slug}: one sentence"


# The list.


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_path_shows_what_is_done_and_what_comes_next(open_page: OpenPage, language: str) -> None:
    store = ProgressStore()
    store.pass_lesson(ME, "language-model")
    store.pass_lesson(ME, "loss")
    at = opened(open_page, lang=language)
    assert at.get("progress")[0].proto.value == 100 * 2 // 12
    badges = [element.value for element in at.markdown if "badge" in element.value]
    say = wording.words("ui.lesson_path")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wording, "_current", lambda: language)
        done, following = say("done"), say("is-next")
    assert sum(done in badge for badge in badges) == 2
    assert sum(following in badge for badge in badges) == 1
    labels = [element.proto.label for element in at.get("page_link")]
    assert sum(re.match(r"\*\*\d+\. ", label) is not None for label in labels) == 12
    assert any(re.search(r"\b2$", label) for label in labels), "go on with lesson 2"


def test_an_unknown_lesson_is_answered_with_the_list(open_page: OpenPage) -> None:
    at = opened(open_page, "*no* $such$")
    assert len(at.warning) == 1 and "no" in at.warning[0].value
    assert at.title[0].value == nav.title("lessons")


# One lesson.


def go_to(at: AppTest, slug: str) -> AppTest:
    """Another lesson in a session that is open: one start of the app serves many."""
    for name in set(at.query_params) - {"lang", "model", "text"}:  # as a link of the app keeps them
        del at.query_params[name]
    at.query_params["lesson"] = slug
    at.switch_page("pages/lessons.py").run()
    assert not at.exception, slug
    return at


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_lesson_opens_in_each_language(open_page: OpenPage, language: str) -> None:
    at = opened(open_page, lang=language)
    for slug in ORDER:
        go_to(at, slug)
        said = wording.find("ui.lesson_list", f"lesson.{slug}", language)
        assert at.title[0].value == f"{ORDER.index(slug) + 1}. {said['title']}"
        shown = written(at)
        assert said["aim"] in shown and said["idea"].strip() in shown
        assert all(to_do in shown for to_do in said["step"].values()), slug
        assert [at.button(key=f"lesson_go_{n}").label for n in said["go"]] == list(said["go"].values())
        assert query_of(at, "lesson") == slug


def test_each_step_leads_to_its_page_as_promised_and_back(open_page: OpenPage) -> None:
    at = opened(open_page)
    for slug in ORDER:
        at.session_state["text"], at.session_state["model"] = "A text of my own.", "stories-mlm"
        go_to(at, slug)
        backs = []
        for n, step in enumerate(LESSONS[slug].steps, 1):
            at.button(key=f"lesson_go_{n}" if n == 1 else "lesson_next").click().run()
            assert not at.exception, f"{slug} step {n}"
            at.switch_page(nav.file_of(step.place.page))  # the driver does not notice that the app went there
            assert not at.error and not at.warning, f"{slug} step {n}"
            state = at.session_state
            assert state["_page"] == step.place.page
            for key, value in step.address.items():
                assert state[key] == value, f"{slug} step {n}: {key}"
            for key, number in step.numbers.items():  # a view draws only some of the widgets
                said = state[key] if key in state else float(query_of(at, key))
                assert said == number, f"{slug} step {n}: {key}"
            if step.text is not None:
                assert state["text"] == step.text
            if step.model:
                assert state["model"] == step.model
            assert query_of(at, "step") == f"{slug}.{n}"
            assert lesson_list.to_do(slug, n) in written(at)
            backs = [link for link in at.get("page_link") if link.proto.query_string.startswith("lesson=")]
            assert backs[0].proto.page == "lessons" and backs[0].proto.query_string == f"lesson={slug}"
        assert not [button for button in at.button if button.key == "lesson_next"]
        assert len(backs) == 2, f"{slug}: the last step leads to the check"


def test_a_step_is_kept_by_its_address_alone(open_page: OpenPage) -> None:
    at = open_page("tokens", query={"step": "tokens.2"})
    assert lesson_list.to_do("tokens", 2) in written(at)
    at = open_page("attention", query={"step": "tokens.2"})
    assert lesson_list.to_do("tokens", 2) in written(at)
    at.button(key="lesson_there").click().run()
    assert (
        at.session_state["_page"] == "tokens" and at.session_state["text"] == LESSONS["tokens"].steps[1].text
    )


def test_nonsense_in_the_address_is_no_lesson(open_page: OpenPage) -> None:
    at = open_page("tokens", query={"step": "tokens.1"})
    for said in ["", "tokens", "tokens.0", "tokens.5", "tokens.²", "tokens.99999", "x.1", "."]:
        at.query_params["step"] = "tokens.1"
        at.run()
        assert at.button(key="lesson_leave"), "a lesson is under way"
        at.query_params["step"] = said
        at.run()
        assert not at.exception and not [b for b in at.button if b.key == "lesson_leave"], said


def test_a_lesson_can_be_left(open_page: OpenPage) -> None:
    at = open_page("tokens", query={"step": "tokens.1"})
    at.button(key="lesson_leave").click().run()
    assert not at.exception and "lesson_leave" not in [button.key for button in at.button]
    assert "step" not in at.query_params


def test_the_language_stays_on_the_way(open_page: OpenPage) -> None:
    at = opened(open_page, "tokens", lang="es")
    at.button(key="lesson_go_1").click().run()
    assert at.session_state["lang"] == "es"
    said = wording.find("ui.lesson_list", "lesson.tokens.step", "es")
    assert said["1"] in written(at)


# The check.


def test_wrong_answers_do_not_pass_and_right_ones_do(open_page: OpenPage) -> None:
    store, at = ProgressStore(), opened(open_page)
    for slug in ORDER:
        check = LESSONS[slug].check
        go_to(at, slug)
        for name in check:
            answer(at, slug, name, right=False)
        assert slug not in store.read(ME).lessons
        assert not any(store.read(ME).exercises[name].right for name in check)
        for i, name in enumerate(check):
            assert slug not in store.read(ME).lessons, "all but one right do not pass"
            answer(at, slug, name, right=True)
            assert (slug in store.read(ME).lessons) == (i + 1 == len(check))
        assert [done for done in at.success if lesson_list.key_sentence(slug) in done.value]


def test_what_was_passed_is_there_in_a_new_session_and_for_nobody_else(open_page: OpenPage) -> None:
    at = opened(open_page, "tokens")
    for name in LESSONS["tokens"].check:
        answer(at, "tokens", name, right=True)
    again = opened(open_page, "tokens")
    assert [done for done in again.success if lesson_list.key_sentence("tokens") in done.value]
    assert opened(open_page).get("progress")[0].proto.value == 100 // 12
    assert opened(open_page, owner=YOU).get("progress")[0].proto.value == 0


def test_a_passed_lesson_is_no_longer_under_way(open_page: OpenPage) -> None:
    at = opened(open_page, "tokens")
    at.button(key="lesson_go_1").click().run()
    at.query_params["lesson"] = "tokens"
    at.switch_page("pages/lessons.py").run()
    for name in LESSONS["tokens"].check:
        answer(at, "tokens", name, right=True)
    at.switch_page("pages/attention.py").run()
    assert "lesson_leave" not in [button.key for button in at.button]


def test_a_full_disk_is_said_and_stops_nobody(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **how: object) -> None:
        raise OSError(28, "No space left on device")

    at, name = opened(open_page, "tokens"), LESSONS["tokens"].check[0]
    monkeypatch.setattr("engine.progress.write_json", full)
    answer(at, "tokens", name, right=True)
    assert len(at.toast) == 1 and "is full, so nothing new can be kept" in at.toast[0].value
    assert len(at.success) == 1 and "tokens" not in ProgressStore().read(ME).lessons


# The summary.


class Outside(HTMLParser):
    """Whatever a page would fetch or run."""

    found: list[str]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        asks = {"src", "href", "srcset", "data", "action"} & {name for name, _ in attrs}
        if tag in ("script", "link", "img", "iframe", "object") or asks:
            self.found.append(tag)


def summary(**changes: Any) -> str:
    kept = {"person": "0" * 64, **changes}
    return lesson_summary.page(Progress(**kept))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_summary_holds_all_lessons_and_fetches_nothing(
    monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr(wording, "_current", lambda: language)
    page = summary()
    for slug in ORDER:
        assert lesson_list.key_sentence(slug).replace("'", "&#x27;") in page
        assert LESSONS[slug].line in page
    assert f'<html lang="{language}">' in page and "url(" not in page and "@import" not in page
    parser = Outside()
    parser.found = []
    parser.feed(page)
    assert parser.found == []


def test_the_summary_tells_a_persons_own_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "_current", lambda: "en")
    first, second, third = LESSONS["tokens"].check
    page = summary(
        name="<b>Zoë</b> & co",
        lessons={"tokens": 1_700_000_000.0},
        exercises={first: Done(2, True, 0, 1, 0.0), second: Done(3, False, 1, 1, 0.0)},
    )
    assert "&lt;b&gt;Zoë&lt;/b&gt; &amp; co" in page and "<b>Zoë" not in page
    assert f"Lessons done: 1 of 12. Exercises right: 1 of {len(IDS)}." in page
    assert "Check: 1 of 3 right, in 5 tries." in page
    assert page.count("Done on 2023-11-1") == 1 and page.count("Not done yet.") == 11


def test_the_summary_is_drawn_with_its_print_style(open_page: OpenPage) -> None:
    at = opened(open_page, "summary")
    drawn = [element.proto.body for element in at.get("html")]
    assert any("@media print" in body for body in drawn)
    assert any("loupe-summary" in body and LESSONS["scaling"].line in body for body in drawn)
    assert at.get("download_button")[0].proto.label
