"""What a run's records say."""

import math

import numpy as np
import pytest

from engine.reading import bad_steps, baselines, curves, floor_of, quantity, read, smooth, table


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


def test_every_quantity_of_a_run():
    records = [
        evaluation(0, 6.25, 6.24, 3.5),
        {**step(1, 6.0), "grad_norm": 1.5, "learning_rate": 1e-3, "tokens_per_second": 900.0},
        {**step(2, None), "grad_norm": None, "learning_rate": 2e-3, "tokens_per_second": 950.0},
        evaluation(2, 5.9, 5.8, 3.2),
    ]
    wanted = {
        "loss": ([1, 2], [6.0, math.nan]),
        "val_loss": ([0, 2], [6.24, 5.8]),
        "perplexity": ([0, 2], [math.exp(6.24), math.exp(5.8)]),
        "bits_per_byte": ([0, 2], [3.5, 3.2]),
        "grad_norm": ([1, 2], [1.5, math.nan]),
        "learning_rate": ([1, 2], [1e-3, 2e-3]),
        "tokens_per_second": ([1, 2], [900.0, 950.0]),
    }
    for name, (steps, values) in wanted.items():
        found = quantity(records, name)
        assert found[0].tolist() == steps
        np.testing.assert_allclose(found[1], values)
    with pytest.raises(ValueError, match="no quantity 'accuracy'. It has loss, val_loss"):
        quantity(records, "accuracy")


def test_a_quantity_that_a_run_has_not_is_empty():
    masked = [evaluation(0, 6.25, 6.24), step(1, 5.0), evaluation(1, 5.0, None)]
    assert len(quantity(masked, "bits_per_byte")[0]) == len(quantity(masked, "grad_norm")[0]) == 0
    assert quantity([step(1, None)], "loss")[0].tolist() == [1]  # a gap is not nothing
    assert len(quantity([], "loss")[0]) == 0
    assert math.isnan(quantity([evaluation(0, 800.0, 800.0)], "perplexity")[1][0])  # beyond all numbers


def test_smoothing_is_the_mean_weighted_by_half_lives():
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.integers(1, 30, 200))
    values = rng.normal(size=200)
    values[[3, 77]] = np.nan, np.inf
    found = smooth(values, 12.5, steps)
    for i in (0, 1, 10, 50, 199):  # the definition, term by term
        weights = 2.0 ** -((steps[i] - steps[: i + 1]) / 12.5) * np.isfinite(values[: i + 1])
        mean = (weights * np.nan_to_num(values[: i + 1], posinf=0)).sum() / weights.sum()
        assert found[i] == pytest.approx(mean)
    assert np.isnan(found[[3, 77]]).all() and np.isfinite(np.delete(found, [3, 77])).all()


def test_smoothing_of_a_constant_is_that_constant_from_the_first_value_on():
    np.testing.assert_allclose(smooth([3.0] * 50, 20), 3.0)  # no pull towards 0: corrected for the start
    np.testing.assert_array_equal(smooth([1.0, 5.0], 0), [1.0, 5.0])
    assert len(smooth([], 5)) == 0
    with pytest.raises(ValueError, match="half_life is -1"):
        smooth([1.0], -1)


def test_smoothing_comes_before_thinning():
    """A spike between two drawn points still counts: the smoothed line of all records, then fewer of them."""
    values = np.zeros(1000)
    values[500] = 100.0
    assert smooth(values, 10)[500] == pytest.approx(100 * (1 - 2**-0.1), rel=1e-6)  # its weight among all


def test_baselines_and_floor_in_both_units():
    record = {"kind": "baseline", "step": 0, "uniform": 6.24, "unigram": 5.0, "bigram": None}
    record["bits_per_byte"] = {"uniform": 3.6, "unigram": 2.9}
    records = [record, {**FLOOR, "bits_per_byte": 0.29}]
    assert list(baselines(records).items()) == [("uniform", 6.24), ("unigram", 5.0)]
    assert baselines(records, "bits_per_byte") == {"uniform": 3.6, "unigram": 2.9}
    assert (floor_of(records), floor_of(records, "bits_per_byte")) == (0.5, 0.29)
    masked = [{**record, "bits_per_byte": None}]
    assert (
        baselines(masked, "bits_per_byte") == {} == baselines([])
        and floor_of([FLOOR], "bits_per_byte") is None
    )


def test_the_table_has_every_step_once_and_no_infinity():
    records = [
        evaluation(0, 6.25, 6.24, 3.5), {**step(1, math.inf), "seconds": 0.5}, step(2, 5.0),
        evaluation(2, 5.5, 5.4, 3.1), FLOOR,
    ]  # fmt: skip
    assert table(records) == {
        "step": [0, 1, 2],
        "loss": [None, None, 5.0],
        "train_loss": [6.25, None, 5.5],
        "val_loss": [6.24, None, 5.4],
        "bits_per_byte": [3.5, None, 3.1],
        "seconds": [None, 0.5, None],
    }


def test_the_newest_evaluation_is_compared_with_one_a_quarter_of_the_steps_back():
    losses = {0: 6.2, 50: 3.0, 75: 2.0, 90: 1.9, 100: 1.8}
    now = read([evaluation(n, loss, loss) for n, loss in losses.items()], 512)
    assert now is not None and (now.earlier_step, now.earlier_loss) == (75, 2.0)
    first = read([evaluation(0, 6.2, 6.2), evaluation(10, 5.0, 5.0)], 512)
    assert first is not None and math.isnan(first.earlier_loss)


def test_the_best_bits_per_byte_belong_to_the_best_loss():
    bytes_per_token = 2.0  # bits per byte = nats / (ln 2 * bytes per token)
    losses = [3.0, 1.5, 2.5]
    evals = [
        {"kind": "eval", "step": n * 10, "train_loss": loss, "val_loss": loss,
         "bits_per_byte": loss / (math.log(2) * bytes_per_token)}
        for n, loss in enumerate(losses)
    ]  # fmt: skip
    now = read(evals, 256)
    assert now is not None and now.best_loss == 1.5 and now.best_step == 10
    assert now.best_bits_per_byte == pytest.approx(1.5 / (math.log(2) * 2.0))
    assert now.bits_per_byte == pytest.approx(2.5 / (math.log(2) * 2.0)), "that of the newest"
    without = read([{**evals[0], "val_loss": None, "bits_per_byte": None}], 256)
    assert without is not None and without.best_bits_per_byte is None
