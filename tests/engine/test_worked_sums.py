"""Every printed value of the founding texts, by the functions that the page shows; extremes; properties."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine import metrics, worked_sums
from engine.stages import next_token_distribution

FIVE = [3.2, 1.1, 0.4, 2.4, -1.0]  # mat, dog, moon, sofa, banana
THREE = [2.0, 1.0, 0.0]


def rows(n: int, seed: int) -> list[list[float]]:
    generator = torch.Generator().manual_seed(seed)
    return (5 * torch.randn(n, 6, generator=generator, dtype=torch.float64)).tolist()


def test_a_sentence_of_0_9_and_0_8() -> None:
    found = worked_sums.chain([0.9, 0.8])
    assert found.product == pytest.approx(0.72)
    assert found.log_probs == pytest.approx([math.log(0.9), math.log(0.8)])
    assert found.total == pytest.approx(-math.log(0.72), abs=1e-12)
    assert f"{found.total:.4f}" == "0.3285" and f"{found.total:.3f}" == "0.329"  # printed as 0.328
    assert f"{found.loss:.4f}" == "0.1643" and f"{found.perplexity:.4f}" == "1.1785"


def test_rounding_each_cost_first_gives_the_misprint() -> None:
    assert worked_sums.rounded_first([0.9, 0.8], 3) == (0.328, [0.105, 0.223])
    assert worked_sums.rounded_first([0.9, 0.8], 5)[0] == pytest.approx(0.3285, abs=1e-5)


def test_a_chain_of_certain_and_of_impossible_tokens() -> None:
    sure = worked_sums.chain([1.0, 1.0])
    assert (sure.product, sure.total, sure.loss, sure.perplexity) == (1.0, 0.0, 0.0, 1.0)
    assert math.copysign(1, sure.total) == 1  # not -0
    never = worked_sums.chain([0.5, 0.0])
    assert never.product == 0 and never.total == never.loss == never.perplexity == math.inf


def test_a_long_chain_keeps_its_logarithm_where_the_product_is_0() -> None:
    found = worked_sums.chain([1e-3] * 200)
    assert found.product == 0 and found.total == pytest.approx(600 * math.log(10))


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf])
def test_what_is_no_probability_is_named(bad: float) -> None:
    with pytest.raises(ValueError, match=f"{bad:g}"):
        worked_sums.chain([0.5, bad])


def test_no_numbers_are_refused() -> None:
    for call in (worked_sums.chain, worked_sums.safe_softmax, worked_sums.mean_of_perplexities):
        with pytest.raises(ValueError, match="no numbers"):
            call([])


def test_ten_tokens_of_fifty_thousand() -> None:
    found = worked_sums.joint_size(50_000, 10)
    assert f"{found.mantissa:.2g}e{found.exponent}" == "9.8e46" and found.by_factors == 500_000
    assert found.mantissa * 10**found.exponent == pytest.approx(float(50_000**10), rel=1e-14)


@pytest.mark.parametrize(("v", "t"), [(1, 1), (1, 500), (2, 10), (10, 6), (27, 30), (200_000, 2000)])
def test_the_joint_size_is_the_exact_power(v: int, t: int) -> None:
    found = worked_sums.joint_size(v, t)
    assert 1 <= found.mantissa < 10 and found.by_factors == v * t
    assert math.log10(found.mantissa) + found.exponent == pytest.approx(t * math.log10(v), rel=1e-12)


def test_sizes_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0 and 3"):
        worked_sums.joint_size(0, 3)


def test_softmax_of_2_1_0() -> None:
    found = worked_sums.safe_softmax(THREE)
    assert [f"{p:.3f}" for p in found.probs] == ["0.665", "0.245", "0.090"]
    assert found.probs == pytest.approx([math.exp(z) / (math.e**2 + math.e + 1) for z in THREE], rel=1e-14)
    assert found.naive_probs == pytest.approx(found.probs, rel=1e-12)


def test_softmax_of_the_five_words() -> None:
    found = worked_sums.safe_softmax(FIVE)
    assert [f"{p:.3f}" for p in found.probs] == ["0.607", "0.074", "0.037", "0.273", "0.009"]


def test_softmax_at_1000_is_that_at_0_and_the_naive_one_is_not_finite() -> None:
    found = worked_sums.safe_softmax([1000.0, 999.0, 998.0])
    assert found.probs == pytest.approx(worked_sums.safe_softmax(THREE).probs, rel=1e-14)
    assert found.weights.max() == 1 and np.isinf(found.naive_weights).all()
    assert np.isnan(found.naive_probs).all()


def test_softmax_at_minus_1000_is_fine_and_the_naive_one_divides_0_by_0() -> None:
    found = worked_sums.safe_softmax([-1000.0, -1001.0])
    assert found.probs == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)], rel=1e-14)
    assert (found.naive_weights == 0).all() and np.isnan(found.naive_probs).all()


@pytest.mark.parametrize("z", [[0.0, 0.0], [7.0] * 5, [3.0], [1000.0, -1000.0]])
def test_softmax_of_equal_single_and_far_apart_logits(z: list[float]) -> None:
    found = worked_sums.safe_softmax(z)
    assert found.probs == pytest.approx(torch.softmax(torch.tensor(z, dtype=torch.float64), 0).numpy())
    assert found.total >= 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_that_are_not_finite_are_refused(bad: float) -> None:
    for call in (lambda: worked_sums.safe_softmax([0.0, bad]), lambda: worked_sums.sigmoid(bad)):
        with pytest.raises(ValueError, match="finite"):
            call()


@pytest.mark.parametrize("z", rows(5, seed=1))
def test_softmax_does_not_see_a_shift_and_keeps_the_order(z: list[float]) -> None:
    found = worked_sums.safe_softmax(z)
    assert worked_sums.safe_softmax([x + 321.5 for x in z]).probs == pytest.approx(found.probs, rel=1e-9)
    assert found.probs.sum() == pytest.approx(1, abs=1e-14)
    assert np.argsort(found.probs).tolist() == np.argsort(z).tolist()


def test_the_rest_in_one_entry_keeps_every_probability() -> None:
    z = np.array(rows(1, seed=2)[0])
    short = metrics.softmax(worked_sums.with_rest(z, [4, 1]))
    full = metrics.softmax(z)
    assert short[:2] == pytest.approx(full[[4, 1]], rel=1e-12)
    assert short[2] == pytest.approx(np.delete(full, [4, 1]).sum(), rel=1e-12)
    assert worked_sums.with_rest(z, range(6)) == pytest.approx(z)  # no rest, no entry
    assert np.isfinite(worked_sums.with_rest([2000.0, 1999.0, 1998.0], [0])).all()


def test_the_sigmoid_is_a_softmax_of_two_classes() -> None:
    assert f"{worked_sums.sigmoid(1.3):.6f}" == "0.785835"
    assert f"{worked_sums.safe_softmax([1.3, 0.0]).probs[0]:.6f}" == "0.785835"
    for z in (-1000.0, -30.0, -1.0, 0.0, 0.5, 30.0, 1000.0):
        assert worked_sums.sigmoid(z) == pytest.approx(
            float(torch.sigmoid(torch.tensor(z, dtype=torch.float64))), rel=1e-12
        )
        assert worked_sums.sigmoid(z) == pytest.approx(float(worked_sums.safe_softmax([z, 0.0]).probs[0]))


def test_the_loss_of_the_batch_is_that_of_torch() -> None:
    logits, targets = [[2.0, 1.0, 0.1], [0.5, 2.5, 0.2]], [0, 1]
    found = worked_sums.batch_loss(logits, targets)
    tensor = torch.tensor(logits, dtype=torch.float64)
    each = F.cross_entropy(tensor, torch.tensor(targets), reduction="none")
    assert found.surprisals == pytest.approx(each.numpy(), rel=1e-12)
    assert found.loss == pytest.approx(float(each.mean()), rel=1e-12)
    assert found.loss == pytest.approx(float(metrics.cross_entropy(tensor, torch.tensor(targets))), abs=1e-6)
    assert found.log_sums - found.target_logits == pytest.approx(found.surprisals)


@pytest.mark.parametrize("seed", range(4))
def test_any_batch_is_that_of_torch(seed: int) -> None:
    z, targets = torch.tensor(rows(7, seed), dtype=torch.float64), torch.arange(7) % 6
    found = worked_sums.batch_loss(z.numpy(), targets.tolist())
    assert found.loss == pytest.approx(float(F.cross_entropy(z, targets)), rel=1e-12)


def test_the_target_with_index_1_of_2_1_0() -> None:
    loss = worked_sums.batch_loss([THREE], [1]).loss
    assert loss == pytest.approx(math.log(math.e**2 + math.e + 1) - 1, rel=1e-14)
    assert f"{loss:.4f}" == "1.4076" and f"{loss:.3f}" == "1.408"  # printed as 1.407
    assert f"{worked_sums.batch_loss([THREE], [0]).loss:.4f}" == "0.4076"  # what index 1 counted from 1 means


def test_two_equal_logits_cost_ln_2() -> None:
    for target in (0, 1):
        assert worked_sums.batch_loss([[0.0, 0.0]], [target]).loss == pytest.approx(math.log(2))


def test_the_losses_of_mat_and_banana() -> None:
    mat, banana = (worked_sums.batch_loss([FIVE], [i]).loss for i in (0, 4))
    assert f"{mat:.4f} {banana:.4f}" == "0.4993 4.6993"
    assert banana - mat == pytest.approx(3.2 - -1.0, abs=1e-12)


def test_a_single_class_costs_nothing_and_1000_costs_a_lot() -> None:
    assert worked_sums.batch_loss([[5.0]], [0]).loss == 0
    assert worked_sums.batch_loss([[1000.0, -1000.0]], [1]).loss == pytest.approx(2000)


def test_batches_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        worked_sums.batch_loss([[1.0, 2.0], [1.0]], [0, 0])
    with pytest.raises(ValueError, match="1 targets for 2 rows"):
        worked_sums.batch_loss([[1.0], [1.0]], [0])
    for target in (3, -1):
        with pytest.raises(ValueError, match=f"target {target} .* last one is 2"):
            worked_sums.batch_loss([THREE], [target])
    with pytest.raises(ValueError, match="no numbers"):
        worked_sums.batch_loss([], [])


@pytest.mark.parametrize(("t", "top"), [(0.5, "0.819"), (1.0, "0.607"), (2.0, "0.419")])
def test_temperatures_of_the_five_words(t: float, top: str) -> None:
    found = next_token_distribution(FIVE, temperature=t)
    assert f"{found[0]:.3f}" == top
    assert found == pytest.approx(worked_sums.safe_softmax([z / t for z in FIVE]).probs, rel=1e-12)


def test_temperature_0_is_greedy() -> None:
    assert next_token_distribution(FIVE, temperature=0).tolist() == [1, 0, 0, 0, 0]


def test_softmax_twice_is_told_by_its_loss() -> None:
    right, wrong = worked_sums.softmax_twice(FIVE, 0)
    assert f"{right:.4f} {wrong:.4f}" == "0.4993 1.2292"
    probs = torch.softmax(torch.tensor([FIVE], dtype=torch.float64), -1)
    assert wrong == pytest.approx(float(F.cross_entropy(probs, torch.tensor([0]))), rel=1e-12)
    least = -math.log(math.e / (math.e + 4))  # even for a perfect answer
    assert worked_sums.softmax_twice([1000.0, 0.0, 0.0, 0.0, 0.0], 0)[1] == pytest.approx(least)


def test_perplexity_is_the_exp_of_the_mean_and_never_the_mean_of_the_exps() -> None:
    right, wrong = worked_sums.mean_of_perplexities([0.0, math.log(9)])
    assert (right, wrong) == (pytest.approx(3), pytest.approx(5))
    for p in (1.0, 0.25):
        right, wrong = worked_sums.mean_of_perplexities([0.0 - math.log(p)] * 3)
        assert right == wrong == pytest.approx(1 / p)


@pytest.mark.parametrize("z", rows(5, seed=3))
def test_the_mean_of_the_exps_is_never_smaller(z: list[float]) -> None:
    right, wrong = worked_sums.mean_of_perplexities([abs(x) for x in z])
    assert wrong >= right


def test_a_surprisal_below_0_is_refused() -> None:
    for bad in (-0.5, math.nan):
        with pytest.raises(ValueError, match="0 or more"):
            worked_sums.mean_of_perplexities([bad])


@pytest.mark.parametrize("target", [0, 1, 2])
def test_the_slope_is_that_of_autograd(target: int) -> None:
    z = torch.tensor([THREE], dtype=torch.float64, requires_grad=True)
    F.cross_entropy(z, torch.tensor([target])).backward()
    found = worked_sums.gradient_step(THREE, target, 0.5)
    assert z.grad is not None
    assert found.gradient == pytest.approx(z.grad[0].numpy(), rel=1e-12)
    assert found.logits == pytest.approx(np.array(THREE) - 0.5 * z.grad[0].numpy())
    assert found.new_loss < found.loss and found.new_probs[target] > found.probs[target]


def test_a_step_of_0_changes_nothing() -> None:
    found = worked_sums.gradient_step(THREE, 1, 0.0)
    assert found.logits.tolist() == THREE and found.new_loss == found.loss
