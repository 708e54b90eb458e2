"""The words of the exercises, in both languages and with any numbers; worked solutions end in the answer."""

import json
import math
import re

import pytest

import wording
from engine.exercise import Choice, Number, Order
from engine.exercise_list import IDS, TOPICS, exercise
from engine.marking import Verdict, mark_choice, mark_number
from engine.typed import UNITS
from ui import exercise_text
from ui.exercise_solution import FORMULAS, formula
from ui.worked import tex

NUMBERS = [name for name in IDS if isinstance(exercise(name, 0).answer, Number)]
VIEW = wording.words("ui.exercise_view")


@pytest.fixture(params=list(wording.LANGUAGES))
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LOUPE_LANGUAGE", request.param)
    return str(request.param)


@pytest.mark.parametrize("name", IDS)
def test_every_word_of_an_exercise_is_there_with_its_numbers(name: str, language: str) -> None:
    for seed in range(20):
        asked = exercise(name, seed)
        said = [exercise_text.title(name), exercise_text.topic(asked.topic), exercise_text.question(asked)]
        said += (hints := exercise_text.hints(asked))
        assert 1 <= len(hints) <= 3
        if isinstance(asked.answer, Choice):
            for i, option in enumerate(asked.answer.options):
                said.append(exercise_text.option(asked, i))
                if not asked.answer.several and i not in asked.answer.right:
                    said.append(exercise_text.why_not(asked, option.key))
        if isinstance(asked.answer, Order):
            said += [exercise_text.step(asked, key) for key in asked.answer.steps]
        if asked.kind not in ("number", "run"):
            said.append(exercise_text.because(asked))
        for text in said:
            assert text.strip() and not re.search(r"\{\w*\}", text), text  # no place left unfilled


@pytest.mark.parametrize("name", NUMBERS)
def test_every_mistake_has_words(name: str, language: str) -> None:
    for seed in range(30):
        answer = exercise(name, seed).answer
        assert isinstance(answer, Number)
        for slip in answer.slips:
            assert VIEW(f"verdict.slip.{slip.name}").endswith(".")
        assert VIEW(f"unit.{answer.unit or 'plain'}")
        label = f"label.{'whole' if answer.whole else 'number'}.{answer.unit or 'plain'}"
        assert wording.words("ui.exercise_forms")(label)


def test_every_unit_has_a_name(language: str) -> None:
    assert {VIEW(f"unit.{name}") for name in UNITS}


def test_every_verdict_has_words(language: str) -> None:
    asked = Number(1.4076, "nats")
    typed = (
        "1.408",
        "1.407",
        "",
        "9" * 999,
        "٣",
        "x",
        "1e999",
        "1 bit",
        "1 x",
        "9 %",
        "1.4",
        "1.40",
        "7",
        "-1.408",
    )
    verdicts = [mark_number(text, asked) for text in typed]
    verdicts += [mark_number("1,234", Number(1234.2)), mark_number("50", Number(0.5, "share"))]
    verdicts += [mark_number("2", Number(3, whole=True)), Verdict(False, "order", {"n": 1})]
    verdicts += [mark_choice([], Choice((), frozenset())), Verdict(False, "how_many", {"n": 2})]
    notes = set()
    for verdict in verdicts:
        assert VIEW(f"verdict.{verdict.note}", **verdict.values)
        notes.add(verdict.note)
    assert len(notes) >= 18


@pytest.mark.parametrize("name", NUMBERS)
def test_a_worked_solution_ends_in_the_answer(name: str) -> None:
    for seed in range(50):
        asked = exercise(name, seed)
        assert isinstance(asked.answer, Number)
        written = formula(asked).replace(r"\,", "").replace(r"\end{aligned}", "")
        last = float(re.findall(r"-?\d+(?:\.\d+)?(?:\\times10\^\{-?\d+\})?", written)[-1].split("\\times")[0])
        power = re.findall(r"\\times10\^\{(-?\d+)\}", written.rsplit("=", 1)[-1])
        last *= 10.0 ** int(power[0]) if power else 1.0
        value = asked.answer.value
        assert last == pytest.approx(value, rel=6e-4), (seed, written)
        if not asked.answer.whole:
            assert float(tex(value, 4).split("\\")[0])  # four digits can be written
        assert mark_number(repr(last), asked.answer).right, (seed, last)


@pytest.mark.parametrize("name", ["batch-loss", "sentence-loss", "perplexity-of-tokens", "softmax-three"])
def test_each_line_follows_from_the_one_before_as_it_is_written(name: str) -> None:
    """Whoever takes the numbers of the last line but one gets the last, to the last digit."""
    for seed in range(50):
        asked = exercise(name, seed)
        text = formula(asked)
        numbers = [float(x) for x in re.findall(r"\d+\.\d+", text)]
        if name == "batch-loss":
            a, b, value = numbers[-3:]
            assert value == float(tex((a + b) / 2))
        elif name == "sentence-loss":
            a, b, value = numbers[-3:]
            assert value == float(tex(a + b))
        elif name == "perplexity-of-tokens":
            assert numbers[-1] == float(tex(2.718281828459045 ** numbers[-2]))
        else:
            top, total, value = numbers[-3:]
            assert value == float(tex(top / total))


@pytest.mark.parametrize("name", ["cross-entropy", "attention-weight"])
def test_the_sum_below_the_line_is_written_out(name: str) -> None:
    """Each term of the sum can be seen, and the exponentials as written give the line after."""
    for seed in range(50):
        asked = exercise(name, seed)
        scores = asked.values["logits"] if name == "cross-entropy" else [d / 2 for d in asked.values["dots"]]
        text = formula(asked)
        assert " + ".join(f"e^{{{z:g}}}" for z in scores) in text
        top, total, p = (float(x) for x in re.findall(r"\\frac{([\d.]+)}{([\d.]+)} = ([\d.]+)", text)[-1])
        digits = len(f"{p}".lstrip("0."))
        assert p == pytest.approx(top / total, rel=0.6 * 10.0 ** (1 - max(digits, 4)))
        if name == "attention-weight":
            keys = [json.loads(line.split("=")[1]) for line in asked.values["keys"].splitlines()]
            for i, key in enumerate(keys):
                terms = re.search(rf"k_{i} &= (.*?) = (-?\d+)", text)
                assert terms and sum(int(x.strip("() ")) for x in terms[1].split("+")) == int(terms[2])
                assert int(terms[2]) == sum(a * b for a, b in zip(asked.values["q"], key, strict=True))
        else:
            assert asked.answer.value == pytest.approx(-math.log(p), abs=6e-4)  # type: ignore[union-attr]


def test_every_number_has_a_solution_and_every_topic_a_name(language: str) -> None:
    assert sorted(FORMULAS) == sorted(NUMBERS)
    assert len({exercise_text.topic(name) for name in TOPICS}) == len(TOPICS)
    assert len({exercise_text.title(name) for name in IDS}) == len(IDS)
