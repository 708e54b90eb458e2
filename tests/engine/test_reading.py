"""What a run's records say."""

import math

import numpy as np
import pytest

from engine.reading import bad_steps, curves, read, verdict


def step(n, loss):
    return {"kind": "step", "step": n, "loss": loss}


def evaluation(n, train, val, bits_per_byte=None):
    return {"kind": "eval", "step": n, "train_loss": train, "val_loss": val, "bits_per_byte": bits_per_byte}


START = evaluation(0, 6.25, 6.24)
FLOOR = {"kind": "floor", "step": 5, "value": 0.5, "bits_per_byte": None}


def test_r05_what_is_not_finite_is_a_gap_and_named():
    records = [step(1, 2.1), step(2, math.nan), step(3, 2.0), step(4, math.inf), step(5, 1.9), step(6, None)]
    lines = curves(records)
    assert lines.steps.tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(lines.losses, [2.1, np.nan, 2.0, np.nan, 1.9, np.nan])
    assert bad_steps(records) == [2, 4, 6]


def test_a_run_without_validation_has_no_validation_line_and_no_bad_steps():
    records = [evaluation(0, 6.2, None), step(1, 5.0), evaluation(5, 4.0, None)]
    assert len(curves(records).eval_steps) == 0 and bad_steps(records) == []
    now = read(records, 512)
    assert now is not None and now.val_loss is None and now.loss == 4.0 and now.gap is None
    assert "no validation" in verdict(now, 512)


def test_the_numbers_of_an_evaluation():
    records = [START, FLOOR, evaluation(10, 2.0, 1.5, 0.8), evaluation(20, 1.0, 1.7, 0.9)]
    now = read(records, 512)
    assert now is not None
    assert (now.step, now.best_loss, now.best_step, now.first_loss) == (20, 1.5, 10, 6.24)
    assert now.start == pytest.approx(6.2383, abs=1e-4)  # ln 512
    assert now.gap == pytest.approx(1.2)
    assert now.perplexity == pytest.approx(5.4739, abs=1e-4)  # e^1.7
    assert now.bytes_per_token == pytest.approx(1.7 / math.log(2) / 0.9)
    earlier = read(records, 512, step=12)
    assert earlier is not None and (earlier.step, earlier.loss) == (10, 1.5)
    assert read([], 512) is None and read(records, 512, step=-1) is None


def test_p05_perplexity_never_overflows():
    for loss, wanted in ((709.78, 1.79e308), (709.79, math.inf), (800.0, math.inf)):
        now = read([evaluation(0, loss, loss)], 512)
        assert now is not None and now.perplexity == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([START], "Before the first step the model guesses: 6.24 nats, close to ln V = 6.24"),
        ([START, evaluation(9, 6.0, 6.0)], "Still near guessing"),
        ([START, evaluation(9, 9.0, 9.0)], "Worse than guessing"),
        ([START, FLOOR, evaluation(9, 0.6, 0.53)], "Only 0.030 nats above the floor"),
        ([START, FLOOR, evaluation(9, 1.6, 1.5)], "1.00 nats above the floor: 83% of the way from guessing"),
        (
            [START, evaluation(9, 1.6, 1.5), evaluation(18, 0.4, 1.9)],
            "best at step 9 (1.50 nats) and has risen to 1.90",
        ),
        ([START, evaluation(9, 1.6, math.log(4))], "between 4.0 equally likely tokens instead of 512"),
        ([START, evaluation(9, None, math.nan)], "not a finite number"),
        ([], "first numbers"),
    ],
)
def test_the_sentence(records, words):
    assert words in verdict(read(records, 512), 512)


def test_the_sentence_when_nothing_can_be_learned_or_was_measured():
    assert "nothing to learn" in verdict(None, 1)
    assert verdict(None, 512, done=True) == "Nothing was measured."


def test_noise_is_not_called_memorising():
    records = [START, evaluation(9, 1.6, 1.50), evaluation(18, 1.4, 1.52)]
    assert "memorises" not in verdict(read(records, 512), 512)
