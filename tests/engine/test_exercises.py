"""Every exercise with many seeds: its answer by another way, its own answer marked right, others wrong."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from math import e, exp, log, prod
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from engine.exercise import Choice, Ids, Number, Option, Order, RunTask, concept, generator, seed_of
from engine.exercise_list import IDS, TOPICS, exercise, has_other_numbers
from engine.marking import mark_choice, mark_ids, mark_number, mark_order, rounded, tolerance

ROOT = Path(__file__).parents[2]
SEEDS = range(50)
Values = dict[str, Any]


def powers(logits: list[float]) -> list[float]:
    return [e**z for z in logits]


def share(logits: list[float], index: int) -> float:
    return powers(logits)[index] / sum(powers(logits))


def pairs_of(text: str) -> dict[str, int]:
    return {a + b: len(re.findall(f"(?={a}{b})", text)) for a, b in pairwise(text)}


def words_before(v: Values) -> list[str]:
    words = v["text"].split()
    return [after for word, after in pairwise(words) if word == v["h"]]


def dots(v: Values) -> list[int]:
    keys = [json.loads(line.split("=")[1]) for line in v["keys"].splitlines()]
    return [sum(a * b for a, b in zip(v["q"], key, strict=True)) for key in keys]


def top(v: Values) -> float:
    kept = sorted((float(line.split()[1]) for line in v["table"].splitlines()), reverse=True)[: v["k"]]
    (mine,) = (float(line.split()[1]) for line in v["table"].splitlines() if line.split()[0] == v["token"])
    return mine / sum(kept)


def two_byte_letters(word: str) -> int:
    return sum(1 if char.isascii() else 2 for char in word)  # U+0080 to U+07FF


NUMBERS: dict[str, Callable[[Values], float]] = {
    "utf8-bytes": lambda v: two_byte_letters(v["word"]),
    "merge-saves": lambda v: len(v["text"].replace(max(p := pairs_of(v["text"]), key=lambda k: p[k]), "*")),
    "embedding-parameters": lambda v: v["V"] * v["d"],
    "one-hot-row": lambda v: json.loads(v["matrix"].splitlines()[v["token"]])[v["column"]],
    "softmax-equal": lambda v: 1 / len(v["logits"]),
    "softmax-three": lambda v: share(v["logits"], v["index"]),
    "sigmoid-two": lambda v: 1 / (1 + exp(-v["z"])),
    "shift-invariance": lambda v: share([v["a"], v["b"]], 0),
    "chain-rule": lambda v: prod(v["probs"]),
    "joint-digits": lambda v: Decimal(v["V"] ** v["n_tokens"]).adjusted() + 1,
    "n-gram": lambda v: words_before(v).count(v["w"]) / len(words_before(v)),
    "minus-log": lambda v: log(1 / v["p"]),
    "loss-equal": lambda v: log(len(v["logits"])),
    "sentence-loss": lambda v: -log(v["p"] * v["q"]),
    "cross-entropy": lambda v: -log(share(v["logits"], v["target"])),
    "loss-gap": lambda v: max(v["logits"]) - min(v["logits"]),
    "batch-loss": lambda v: fmean(-log(share(r, t)) for r, t in zip(v["rows"], v["targets"], strict=True)),
    "start-loss": lambda v: log(v["V"]),
    "perplexity-of-loss": lambda v: e ** v["loss"],
    "loss-of-perplexity": lambda v: log(v["perplexity"]),
    "perplexity-of-tokens": lambda v: prod(v["probs"]) ** (-1 / len(v["probs"])),
    "nats-to-bits": lambda v: math.log2(e ** v["loss"]),
    "bits-per-byte": lambda v: math.log2(e ** v["loss"]) * v["tokens"] / v["bytes"],
    "entropy": lambda v: sum(p * math.log2(1 / p) for p in v["probs"]),
    "divergence": lambda v: sum(p * (log(p) - log(q)) for p, q in zip(v["true"], v["model"], strict=True)),
    "n-targets": lambda v: v["size"] - 1,
    "targets-per-step": lambda v: v["B"] * v["T"],
    "n-windows": lambda v: len([at for at in range(v["N"]) if at + v["length"] <= v["N"]]),
    "attention-weight": lambda v: share([dot / 2 for dot in dots(v)], v["index"]),
    "causal-pairs": lambda v: sum(range(1, v["T"] + 1)),
    "temperature": lambda v: share([z / v["T"] for z in v["logits"]], v["index"]),
    "top-k": top,
    "effective-choices": lambda v: 2 ** v["bits"],
    "masked-targets": lambda v: v["B"] * v["T"] * v["share"] / 100,
    "mask-split": lambda v: v["size"] * 12 / 100,
    "none-masked": lambda v: (1 - v["percent"] / 100) ** v["size"],
    "warm-up": lambda v: v["rate"] * v["k"] / v["warmup"],
    "tokens-seen": lambda v: v["steps"] * v["B"] * v["T"],
    "scaling-ratio": lambda v: v["times"] ** -v["alpha"],
}
LISTS: dict[str, Callable[[Values], list[int]]] = {
    "shift-targets": lambda v: v["ids"][1:],
    "logits-shape": lambda v: [v["B"], v["T"], v["V"]],
    "flatten-shape": lambda v: [v["B"] * v["T"], v["V"]],
    "crop": lambda v: v["ids"][len(v["ids"]) - v["T"] :],
}


def stay_top_p(v: Values, options: list[str]) -> set[str]:
    kept, total = set(), Decimal(0)
    for option in sorted(options, key=lambda text: -Decimal(text.split()[1])):
        if total >= Decimal(str(v["top_p"])):
            break
        kept.add(option)
        total += Decimal(option.split()[1])
    return kept


def stay_min_p(v: Values, options: list[str]) -> set[str]:
    largest = max(Decimal(text.split()[1]) for text in options)
    return {text for text in options if Decimal(text.split()[1]) >= Decimal(str(v["min_p"])) * largest}


def largest_logit(v: Values, _options: list[str]) -> set[str]:
    return {max(v["table"].splitlines(), key=lambda line: float(line.split()[1])).split()[0]}


CHOICES: dict[str, Callable[[Values, list[str]], set[str]]] = {
    "first-merge": lambda v, _: {max(p := pairs_of(v["text"]), key=lambda k: p[k])},
    "inputs-and-targets": lambda v, _: {f"x = {v['ids'][:-1]}, y = {v['ids'][1:]}"},
    "greedy": largest_logit,
    "top-p": stay_top_p,
    "min-p": stay_min_p,
    "causal-row": lambda v, _: {str(i) for i in range(v["t"] + 1)},
}
CONCEPTS = {  # statements that are true
    "same-shape": {"one_each", "two_cuts"},
    "why-one-less": {"first", "last"},
    "slice-meaning": {"scores"},
    "hide-future": {"copy", "generation"},
    "which-generates": {"causal_writes", "masked_both"},
    "pseudo-likelihood": {"not_one", "no_chain"},
    "held-out": {"memory", "new"},
}
ORDERS = {
    "probability-order": ["tokenize", "embed", "attend", "logits", "softmax"],
    "training-order": ["draw", "shift", "forward", "loss", "backward", "update"],
    "generation-order": ["tokenize", "crop", "forward", "softmax", "draw", "append"],
}
RUNS = {"run-unigram", "run-stories", "run-rates", "run-overfit", "run-masked"}


def test_there_are_many_exercises_of_every_kind_and_each_has_a_formula_here() -> None:
    assert len(IDS) == len(set(IDS)) >= 34
    known = [NUMBERS, LISTS, CHOICES, CONCEPTS, ORDERS, dict.fromkeys(RUNS)]
    assert sorted(name for table in known for name in table) == sorted(IDS)
    kinds = {exercise(name, 0).kind for name in IDS}
    assert kinds == {"number", "choose", "several", "order", "ids", "run"} and len(RUNS) >= 4
    assert sum(len(makers) for makers in TOPICS.values()) == len(IDS)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_that_of_an_independent_formula_and_is_marked_right(name: str) -> None:
    for seed in SEEDS:
        asked = exercise(name, seed)
        answer = asked.answer
        assert isinstance(answer, Number)
        assert answer.value == pytest.approx(NUMBERS[name](dict(asked.values)), rel=1e-9), (seed, asked)
        typed = f"{answer.value:.0f}" if answer.whole else rounded(answer.value)
        assert mark_number(typed, answer).note == "right", (seed, typed)
        assert mark_number(repr(answer.value), answer).right
        if answer.unit:
            assert mark_number(f"{typed} {'' if answer.unit == 'share' else answer.unit}", answer).right
        if answer.unit == "share":
            assert mark_number(f"{100 * answer.value:.6g} %", answer).right and 0 < answer.value <= 1
        for slip in answer.slips:  # a typical mistake is never right
            if math.isfinite(slip.value):
                typed = f"{slip.value:.0f}" if answer.whole else f"{slip.value:.12g}"
                assert not mark_number(typed, answer).right, (seed, slip)


@pytest.mark.parametrize("name", NUMBERS)
def test_of_a_number_nothing_near_is_right(name: str) -> None:
    for seed in SEEDS:
        answer = exercise(name, seed).answer
        assert isinstance(answer, Number)
        step = 1.0 if answer.whole else 2.1 * tolerance(answer.value)
        for wrong in (answer.value + step, answer.value - step, -answer.value, 10 * answer.value):
            assert not mark_number(repr(wrong), answer).right, (seed, wrong)


@pytest.mark.parametrize("name", NUMBERS)
def test_each_mistake_can_be_met_and_is_told_by_its_name(name: str) -> None:
    met = set()
    for seed in SEEDS:
        answer = exercise(name, seed).answer
        assert isinstance(answer, Number)
        for slip in answer.slips:
            note = mark_number(repr(slip.value), answer).note
            met.add(slip.name) if note == f"slip.{slip.name}" else None
    made = {slip.name for seed in SEEDS for slip in exercise(name, seed).answer.slips}  # type: ignore[union-attr]
    assert made == met


def rows_of(v: Values) -> list[float]:
    return [-log(share(row, t)) for row, t in zip(v["rows"], v["targets"], strict=True)]


SLIPS: dict[str, dict[str, Callable[[Values], float]]] = {  # what each typical mistake gives, by another way
    "utf8-bytes": {"characters": lambda v: len(v["word"])},
    "merge-saves": {"one_merge": lambda v: v["size"] - 1, "both_gone": lambda v: v["size"] - 2 * v["count"]},
    "one-hot-row": {"from_one": lambda v: v["rows"][v["token"] - 1][v["column"]]},
    "softmax-three": {
        "share_of_logits": lambda v: v["z"] / sum(v["logits"]),
        "not_divided": lambda v: e ** v["z"],
    },
    "sigmoid-two": {"other_class": lambda v: 1 / (1 + e ** v["z"])},
    "shift-invariance": {"other_class": lambda v: share([v["a"], v["b"]], 1)},
    "chain-rule": {"mean": lambda v: fmean(v["probs"]), "loss": lambda v: -sum(map(log, v["probs"]))},
    "n-gram": {"unigram": lambda v: v["text"].split().count(v["w"]) / len(v["text"].split())},
    "minus-log": {
        "log10": lambda v: -math.log10(v["p"]),
        "bits": lambda v: -math.log2(v["p"]),
        "one_minus": lambda v: 1 - v["p"],
    },
    "loss-equal": {"log10": lambda v: math.log10(v["k"]), "bits": lambda v: math.log2(v["k"])},
    "sentence-loss": {
        "averaged": lambda v: -log(v["p"] * v["q"]) / 2,
        "log_of_sum": lambda v: -log(v["p"] + v["q"]),
        "bits": lambda v: -math.log2(v["p"] * v["q"]),
    },
    "cross-entropy": {
        "probability": lambda v: share(v["logits"], v["target"]),
        "from_one": lambda v: -log(share(v["logits"], v["target"] - 1)),
        "logit": lambda v: -v["z"],
    },
    "loss-gap": {"ratio": lambda v: e ** (v["best"] - v["worst"])},
    "batch-loss": {
        "summed": lambda v: sum(rows_of(v)),
        "first_row": lambda v: rows_of(v)[0],
        "log_of_mean": lambda v: -log(fmean(e**-x for x in rows_of(v))),
    },
    "start-loss": {"bits": lambda v: math.log2(v["V"]), "log10": lambda v: math.log10(v["V"])},
    "perplexity-of-loss": {"two_to": lambda v: 2 ** v["loss"], "exp_minus": lambda v: 1 / e ** v["loss"]},
    "perplexity-of-tokens": {
        "mean_of_exps": lambda v: fmean(1 / p for p in v["probs"]),
        "exp_of_sum": lambda v: 1 / prod(v["probs"]),
        "of_mean_probability": lambda v: 1 / fmean(v["probs"]),
    },
    "nats-to-bits": {"times_ln2": lambda v: v["loss"] * log(2)},
    "bits-per-byte": {
        "nats_per_byte": lambda v: v["loss"] * v["tokens"] / v["bytes"],
        "per_token": lambda v: v["loss"] / log(2),
    },
    "entropy": {
        "nats": lambda v: -sum(p * log(p) for p in v["probs"]),
        "even": lambda v: math.log2(len(v["probs"])),
    },
    "divergence": {
        "other_way": lambda v: sum(q * log(q / p) for p, q in zip(v["true"], v["model"], strict=True)),
        "cross": lambda v: -sum(p * log(q) for p, q in zip(v["true"], v["model"], strict=True)),
    },
    "attention-weight": {
        "not_scaled": lambda v: share(dots(v), v["index"]),
        "scaled_by_d": lambda v: share([d / 4 for d in dots(v)], v["index"]),
    },
    "causal-pairs": {"without_self": lambda v: v["T"] * (v["T"] - 1) / 2},
    "temperature": {
        "no_temperature": lambda v: share(v["logits"], v["index"]),
        "temperature_upside_down": lambda v: share([z * v["T"] for z in v["logits"]], v["index"]),
    },
    "top-k": {"not_scaled_up": lambda v: v["p"], "evenly": lambda v: 1 / v["k"]},
    "none-masked": {"at_least_one": lambda v: 1 - (1 - v["share"]) ** v["size"]},
    "warm-up": {"one_early": lambda v: v["rate"] * (v["k"] - 1) / v["warmup"]},
    "scaling-ratio": {"grown": lambda v: v["times"] ** v["alpha"]},
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_mistake_gives_what_its_name_says(name: str) -> None:
    met = set()
    for seed in SEEDS:
        asked = exercise(name, seed)
        assert isinstance(asked.answer, Number)
        for slip in asked.answer.slips:
            if slip.name in SLIPS[name]:
                met.add(slip.name)
                assert slip.value == pytest.approx(SLIPS[name][slip.name](dict(asked.values)), rel=1e-9), (
                    seed,
                    slip,
                )
    assert met == set(SLIPS[name])


def test_the_count_of_a_merge_is_that_of_the_text() -> None:
    for seed in SEEDS:
        v = exercise("merge-saves", seed).values
        assert v["count"] == v["text"].count(v["pair"])


def test_of_a_greedy_choice_the_second_is_told_apart() -> None:
    for seed in SEEDS:
        asked = exercise("greedy", seed)
        ordered = sorted(asked.values["table"].splitlines(), key=lambda line: -float(line.split()[1]))
        assert isinstance(asked.answer, Choice)
        keys = {option.text: option.key for option in asked.answer.options}
        assert [keys[line.split()[0]] for line in ordered] == ["largest", "second", "lower", "lower"]


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_the_right_one_and_its_mistakes_are_wrong(name: str) -> None:
    for seed in SEEDS:
        asked = exercise(name, seed)
        answer = asked.answer
        assert isinstance(answer, Ids)
        assert list(answer.values) == LISTS[name](dict(asked.values))
        assert mark_ids(", ".join(map(str, answer.values)), answer).right
        for slip, ids in answer.slips:
            assert mark_ids(str(list(ids)), answer).note == f"slip.{slip}", (seed, ids)


def options_of(answer: Choice) -> list[str]:
    return [option.text or option.key for option in answer.options]


@pytest.mark.parametrize("name", [*CHOICES, *CONCEPTS])
def test_of_a_choice_the_right_ones_are_right_and_every_other_is_wrong(name: str) -> None:
    for seed in SEEDS:
        asked = exercise(name, seed)
        answer = asked.answer
        assert isinstance(answer, Choice)
        options = options_of(answer)
        assert len(set(options)) == len(options) >= 4
        wanted = CHOICES[name](dict(asked.values), options) if name in CHOICES else CONCEPTS[name]
        right = {options[i] for i in answer.right}
        assert right == wanted if name in CHOICES else len(right) == 1 and right <= wanted
        assert mark_choice(answer.right, answer).right
        for i in range(len(options)):
            if {i} != answer.right:
                assert not mark_choice([i], answer).right
        assert not mark_choice(range(len(options)), answer).right
        if name in CONCEPTS:  # only one of the statements shown is true
            assert len(set(options) & wanted) == 1


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_begins_wrong_and_has_one_right_answer(name: str) -> None:
    for seed in SEEDS:
        answer = exercise(name, seed).answer
        assert isinstance(answer, Order)
        assert list(answer.steps) == ORDERS[name]
        assert sorted(answer.shown) == sorted(answer.steps) and answer.shown != answer.steps
        assert mark_order(answer.steps, answer).right
        assert not mark_order(answer.shown, answer).right and not mark_order(answer.steps[::-1], answer).right


def numbers_in(value: object) -> list[float]:
    if isinstance(value, list):
        return [x for part in value for x in numbers_in(part)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.parametrize("name", IDS)
def test_the_numbers_of_a_question_are_pleasant(name: str) -> None:
    for seed in SEEDS:
        for key, value in exercise(name, seed).values.items():
            for x in numbers_in(value):
                digits = f"{Decimal(repr(x)).normalize():f}".lstrip("-0.").replace(".", "").rstrip("0")
                assert len(digits) <= 5, (seed, key, value)


@pytest.mark.parametrize("name", IDS)
def test_a_seed_gives_the_same_question_and_others_give_others(name: str) -> None:
    made = [exercise(name, seed) for seed in SEEDS]
    assert made == [exercise(name, seed) for seed in SEEDS]
    different = {json.dumps([dict(x.values), repr(x.answer)]) for x in made}
    assert len(different) >= (1 if name in RUNS else 10), name


def test_another_process_makes_the_same_questions() -> None:
    code = "from engine.exercise_list import IDS, exercise; print([exercise(i, 7) for i in IDS])"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str([exercise(name, 7) for name in IDS])


def test_the_dice_are_those_of_the_seed_on_every_machine() -> None:
    # SHA-512 seeding and the Mersenne Twister are fixed by Python's documentation
    import hashlib
    import random

    text = b"minus-log:7"
    number = int.from_bytes(text + hashlib.sha512(text).digest(), "big")
    assert generator("minus-log", 7).getrandbits(64) == random.Random(number).getrandbits(64)


def test_neighbours_begin_with_different_numbers() -> None:
    seeds = {seed_of(f"{owner:032x}", name) for owner in range(30) for name in IDS}
    assert len(seeds) > 0.99 * 30 * len(IDS) and all(0 <= seed < 1_000_000 for seed in seeds)
    assert seed_of("a", "minus-log") == seed_of("a", "minus-log") != seed_of("b", "minus-log")


def test_a_mistake_that_can_not_be_made_is_not_listed() -> None:
    """Scores that add up to 0 can't be divided by their sum: nothing typed may be told that it did so."""
    for name, of in (("softmax-three", "logits"), ("attention-weight", "dots")):
        made = [exercise(name, seed) for seed in range(120)]
        slip = {"softmax-three": "share_of_logits", "attention-weight": "share_of_scores"}[name]
        none = [x for x in made if sum(x.values[of]) == 0]
        assert none and all(slip not in {s.name for s in x.answer.slips} for x in none)  # type: ignore[union-attr]
    for seed in range(120):
        asked = exercise("none-masked", seed)
        listed = {s.name: s.value for s in asked.answer.slips}  # type: ignore[union-attr]
        if "times" in listed:
            assert listed["times"] == pytest.approx(1 - asked.values["size"] * asked.values["share"])


def test_the_most_frequent_pair_is_counted_beside_the_next() -> None:
    for seed in SEEDS:
        v = exercise("first-merge", seed).values
        counts = pairs_of(v["text"])
        assert [v["count"], v["next"]] == sorted(counts.values(), reverse=True)[:2]
        assert counts[v["pair"]] == v["count"]


@pytest.mark.parametrize("name", IDS)
def test_other_numbers_are_promised_only_where_there_are_some(name: str) -> None:
    a, b = (repr(exercise(name, seed).values) for seed in (3, 9))
    if name in CONCEPTS and name not in ("why-one-less", "slice-meaning") or name in ORDERS:
        assert not has_other_numbers(name)
    elif name in RUNS:
        assert has_other_numbers(name) == (name == "run-stories")
    else:
        assert has_other_numbers(name) and a != b or name in ("utf8-bytes", "hide-future")


def test_an_unknown_exercise_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="no exercise 'nonsense'.*minus-log"):
        exercise("nonsense", 0)


def test_the_questions_of_the_founding_texts_come_up() -> None:
    """Softmax of (0, 0); the shift of five evenly spaced ids; 99 targets of 100 tokens; a shape B × T × V."""

    def some(name: str) -> list[Values]:
        return [dict(exercise(name, seed).values) for seed in range(300)]

    assert any(v["logits"] == [0, 0] for v in some("softmax-equal"))
    assert any(v["logits"] == [0, 0] for v in some("loss-equal"))
    assert any(len(v["ids"]) == 5 for v in some("inputs-and-targets"))
    assert any(len(v["ids"]) == 4 for v in some("shift-targets"))
    assert any(v["size"] == 100 and v["less"] == 99 for v in some("why-one-less"))
    assert any((v["B"], v["T"], v["V"]) for v in some("logits-shape") if v["V"] == 32_000)


def test_what_a_concept_shows_is_shuffled() -> None:
    places = {tuple(concept(generator("x", s), ["r"], ["a", "b", "c"]).right) for s in range(40)}
    assert places == {(0,), (1,), (2,), (3,)}
    assert Option("a") in concept(generator("x", 0), ["r"], ["a"], 1).options


@pytest.mark.parametrize("name", sorted(RUNS))
def test_a_run_is_asked_by_a_task(name: str) -> None:
    assert isinstance(exercise(name, 3).answer, RunTask)
