"""What is concluded from results: made records with known ends, and the words that must follow from them."""

import math
from typing import Any

import pytest

from engine.config import ModelConfig, TrainConfig
from engine.experiments import LARGER
from engine.findings import find, leak_curves, progress, signals
from engine.outcomes import Outcome
from engine.study_laws import law_of, split_larger, verdict_on_prediction


def run(label: str, losses: list[float], *, train: list[float] | None = None, **changes: Any) -> Outcome:
    steps, per_byte = range(0, 100 * len(losses), 100), changes.pop("per_byte", None)
    evals = [
        {
            "kind": "eval",
            "step": s,
            "train_loss": t,
            "val_loss": v,
            "bits_per_byte": per_byte,
        }
        for s, v, t in zip(steps, losses, train or losses, strict=True)
    ]
    if also := changes.pop("also", None):
        evals[-1]["also"] = also
    if (floor := changes.pop("floor", None)) is not None:
        evals.append({"kind": "floor", "step": 0, "value": floor})
    made: dict[str, Any] = {
        "state": "finished", "step": steps[-1], "message": "", "diverged": False, "train_tokens": 1000,
        "model": ModelConfig(512, n_layer=2, n_head=2, d_model=64),
        "train": TrainConfig(steps=max(1, steps[-1])),
        "tokenizer": "t",
    }  # fmt: skip
    return Outcome(label=label, records=evals, **{**made, **changes})


def test_held_out_rises_when_it_rises() -> None:
    small = run("20 stories", [6.2, 3.0, 3.4], train=[6.2, 2.0, 0.2])
    large = run("4,000 stories", [6.2, 2.0, 1.0])
    found = find("held-out", [small, large])
    assert found.answer == "rises" and found.usual
    assert "step 100 (3.00 nats) and rose to 3.40" in found.words and "0.20" in found.words


@pytest.mark.parametrize(
    ("losses", "train", "answer", "usual"),
    [
        ([6.2, 3.0, 3.0], [6.2, 2.0, 0.2], "stops", True),
        ([6.2, 3.0, 1.1], [6.2, 3.0, 1.0], "falls", False),
        ([6.2, 3.0, 2.0], [6.2, 2.0, 1.0], "falls", False),  # a gap opens, but nothing has stopped yet
    ],
)
def test_held_out_says_what_came_otherwise(
    losses: list[float], train: list[float], answer: str, usual: bool
) -> None:
    found = find("held-out", [run("20 stories", losses, train=train), run("many", [6.2, 3.0, 1.0])])
    assert (found.answer, found.usual) == (answer, usual)


def leaks(leaked: tuple[float, float], clean: tuple[float, float]) -> list[Outcome]:
    labels = ("0 %", "25 %", "50 %", "100 %")
    return [
        run(label, [6.0, clean[0] + (clean[1] - clean[0]) * k / 3],
            also={"leaked": leaked[0] + (leaked[1] - leaked[0]) * k / 3})
        for k, label in enumerate(labels)
    ]  # fmt: skip


def test_a_leak_lowers_only_the_leaked_text() -> None:
    runs = leaks((1.5, 0.5), (1.5, 1.52))
    found = find("contamination", runs)
    assert found.answer == "leaked" and found.usual
    assert f"{math.exp(1.5):.2f}" in found.words and f"{math.exp(0.5):.2f}" in found.words
    doses, curves = leak_curves(runs)
    assert doses == [0, 25, 50, 100]
    assert curves["leaked"][-1] == pytest.approx(math.exp(0.5))


@pytest.mark.parametrize(
    ("leaked", "clean", "answer"), [((1.5, 0.5), (1.5, 0.6), "both"), ((1.5, 1.5), (1.5, 1.5), "neither")]
)
def test_a_leak_that_does_something_else_is_told_as_such(
    leaked: tuple[float, float], clean: tuple[float, float], answer: str
) -> None:
    found = find("contamination", leaks(leaked, clean))
    assert (found.answer, found.usual) == (answer, False)


def test_a_text_that_leaked_is_not_said_to_be_known_by_heart() -> None:
    found = find("contamination", leaks((1.65, 0.67), (1.44, 1.42)))  # perplexity 1.95, the source has 1.29
    assert found.answer == "leaked" and "by heart" not in found.words


def rates(high: Outcome) -> list[Outcome]:
    return [run("0.00003", [6.2, 5.9]), run("0.004", [6.2, 1.9]), run("0.1", [6.2, 4.4]), high]


def test_a_run_that_diverged_is_a_result() -> None:
    gone = run("10", [6.2, 700.0], state="failed", diverged=True, step=34)
    found = find("learning-rate", rates(gone))
    assert found.answer == "lost"
    assert "The rate 0.004 ended lowest, at 1.90" in found.words and "10 stopped at step 35" in found.words


@pytest.mark.parametrize(("last", "answer"), [(6.1, "lost"), (3.0, "worse"), (1.5, "best")])
def test_the_largest_rate_gets_the_answer_of_its_loss(last: float, answer: str) -> None:
    found = find("learning-rate", rates(run("10", [6.2, last])))
    assert found.answer == answer and found.usual == (answer == "lost")


def test_context_names_the_best_and_says_so_if_it_is_not_the_longest() -> None:
    runs = [run(f"{n} tokens", [6.0, x]) for n, x in ((8, 1.4), (64, 0.9), (128, 1.0))]
    found = find("context", runs)
    assert found.answer == "64 tokens" and not found.usual and "0.10 nats behind" in found.words
    assert find("context", runs[:2]).usual
    shortest = find("context", [run("8 tokens", [6.0, 0.9]), run("16 tokens", [6.0, 1.0])])
    assert shortest.words.startswith("The shortest window, 8 tokens, ended lowest, at 0.90 nats.")
    dented = [run(f"{n} tokens", [6.0, x]) for n, x in ((8, 1.4), (64, 1.5), (128, 1.0))]
    assert "all the way" in find("context", runs[:2]).words
    assert "all the way" not in find("context", dented).words


def test_shapes_that_are_level_are_called_level() -> None:
    found = find("shape", [run("1 layer", [6.0, 1.00]), run("2 layers", [6.0, 1.01]), run("8", [6.0, 1.02])])
    assert "no clear difference" in found.words and "100 steps each" in found.words


def test_vocabularies_are_ranked_by_bits_per_byte_and_not_by_loss() -> None:
    runs = [run("bytes", [5.5, 0.4], per_byte=0.58), run("BPE", [6.2, 1.2], per_byte=0.50)]
    found = find("tokenizer", runs)
    assert found.answer == "BPE" and "Loss per token would name bytes" in found.words
    # 0.4 / (0.58 ln 2) = 0.995 and 1.2 / (0.5 ln 2) = 3.462 bytes a token
    assert "shorter, 1.0 bytes against 3.5" in found.words and "alike" not in found.words


def test_vocabularies_that_cut_alike_are_not_ranked_against_each_other() -> None:
    runs = [
        run("bytes", [5.5, 0.96], per_byte=1.385),
        run("characters", [4.0, 1.07], per_byte=1.509),  # 1.00 and 1.02 bytes a token
        run("BPE", [6.2, 1.01], per_byte=0.405),
    ]
    assert "Bytes and characters cut this text nearly alike" in find("tokenizer", runs).words


def test_objectives_are_compared_by_the_way_to_their_own_floors() -> None:
    start = math.log(512)
    clm = run("next token", [start, 1.0], floor=0.5)
    config = ModelConfig(512, n_layer=2, n_head=2, d_model=64, objective="mlm")
    mlm = run("hidden tokens", [start, 3.0], floor=0.0, model=config)
    assert progress(clm) == pytest.approx((start - 1) / (start - 0.5))
    assert signals(mlm) / signals(clm) == pytest.approx(0.15)
    assert find("objectives", [clm, mlm]).answer == "clm"
    assert find("objectives", [run("a", [start, 4.0], floor=0.5), mlm]).answer == "mlm"


def sized(
    law: tuple[float, float, float], widths: tuple[int, ...] = (16, 24, 32, 48, 80, 128)
) -> list[Outcome]:
    runs = []
    for width in widths:
        model = ModelConfig(512, n_layer=2, n_head=2, d_model=width)
        one = run(f"width {width}", [6.0, 6.0], model=model, floor=0.25)
        loss = law[0] + law[1] * one.parameters ** -law[2]
        runs.append(run(f"width {width}", [6.0, loss], model=model, floor=0.25))
    return runs


def test_a_law_gives_its_share_and_compares_its_floor_with_the_true_one() -> None:
    found = find("model-size", sized((0.25, 3000.0, 0.75)))
    assert found.answer == pytest.approx(100 * (1 - 2**-0.75), abs=0.5)
    assert "α = 0.75" in found.words
    assert "is not among them" in find("model-size", sized((0.6, 3000.0, 0.75))).words


def test_the_larger_run_is_inside_or_outside() -> None:
    runs = sized((0.25, 3000.0, 0.75))
    wobble = [1.01, 0.99, 1.01, 0.99, 1.01, 0.99]
    runs = [
        run(r.label, [6.0, r.last("val_loss") * w], model=r.model, floor=0.25)
        for r, w in zip(runs, wobble, strict=True)
    ]
    model = ModelConfig(512, n_layer=2, n_head=2, d_model=192)
    law = law_of("model-size", runs)
    right = run(LARGER, [6.0, float(law(run("", [6.0], model=model).parameters))], model=model)
    assert verdict_on_prediction("model-size", law, right).endswith("inside.")
    wrong = run(LARGER, [6.0, 3.0], model=model)
    assert "outside, above it" in verdict_on_prediction("model-size", law, wrong)
    few, larger = split_larger([*runs, wrong])
    assert few == runs and larger is wrong
    assert law_of("model-size", [*runs, wrong]).exponent == law.exponent  # the test is never fitted


def test_with_little_text_the_lowest_loss_counts() -> None:
    runs = [
        run(f"{n}", [6.0, 0.5 + 500 / n, 9.0], train_tokens=n, floor=0.25)
        for n in (1000, 2000, 4000, 8000, 16000)
    ]
    assert law_of("text-size", runs).exponent == pytest.approx(1.0, abs=0.01)


def test_runs_without_a_finite_end_give_no_answer_but_a_sentence() -> None:
    gone = run("8 tokens", [6.2, 9.0], state="failed", diverged=True)
    with pytest.raises(ValueError, match="8 tokens ended without a finite loss"):
        find("context", [gone, run("16 tokens", [6.2, 1.0])])
    with pytest.raises(ValueError, match="test text was not scored"):
        find("contamination", [run(label, [6.0, 1.0]) for label in ("0 %", "25 %", "50 %", "100 %")])
    with pytest.raises(ValueError, match="floor of a run is not known"):
        find("objectives", [run("a", [6.0, 1.0]), run("b", [6.0, 1.0], floor=0.2)])


def test_losses_that_rise_with_size_have_no_law() -> None:
    with pytest.raises(ValueError, match="does not fall"):
        find(
            "text-size", [run(f"{n}", [6.0, float(k)], train_tokens=n) for k, n in enumerate((1, 2, 4, 8), 1)]
        )
