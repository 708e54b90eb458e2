"""The waterfall: every step against the stages, against numbers worked by hand, and its masses."""

import math

import numpy as np
import pytest

from engine.stages import next_token_distribution, sampling_stages
from engine.waterfall import CUTS, STEPS, Column, waterfall

C = np.array([3.2, 1.1, 0.4, 2.4, -1.0])


def named(columns: list[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns}


@pytest.mark.parametrize(
    "temperature, expected",
    [
        (0.5, [0.81913, 0.01228, 0.00303, 0.16538, 0.00018]),
        (1.0, [0.60695, 0.07432, 0.03691, 0.27272, 0.00910]),
        (2.0, [0.41853, 0.14646, 0.10321, 0.28055, 0.05125]),
    ],
)
def test_temperature_vectors(temperature: float, expected: list[float]) -> None:
    steps = named(waterfall(C, temperature=temperature))
    assert steps["temperature"].values == pytest.approx(C / temperature)
    assert steps["softmax"].values == pytest.approx(expected, abs=1e-5)
    assert steps["drawn"].values == pytest.approx(expected, abs=1e-5)
    assert [name for name, column in steps.items() if not column.on] == [
        "penalty", *(["temperature"] if temperature == 1 else []), *CUTS
    ]  # fmt: skip


@pytest.mark.parametrize(
    "temperature, kept, left",
    [(0.5, [0], [1]), (1.0, [0, 3], [0.69, 0.31]), (2.0, [0, 1, 3], [0.495, 0.1732, 0.3318])],
)
def test_temperature_comes_before_top_p(temperature: float, kept: list[int], left: list[float]) -> None:
    steps = named(waterfall(C, temperature=temperature, top_p=0.8))
    assert np.flatnonzero(steps["top-p"].kept).tolist() == kept
    assert steps["drawn"].values[kept] == pytest.approx(left, abs=1e-4)
    before = steps["softmax"].values
    assert steps["top-p"].values == pytest.approx(before)  # what comes to the cut, with what it removes
    assert steps["top-p"].removed_mass == pytest.approx(1 - before[kept].sum())


def test_temperature_0_leaves_one_and_of_equal_ones_the_lowest_id() -> None:
    for logits, winner in ((C, 0), ([0.5, -1.2, 3.1, 0.0], 2), ([1.0, 1.0, 0.0], 0)):
        steps = waterfall(logits, temperature=0)
        last = steps[-1]
        assert last.values.tolist() == [float(i == winner) for i in range(len(logits))]
        assert last.choices == 1 and last.n_left == 1
        assert np.isneginf(steps[2].values).sum() == len(logits) - 1
        assert not any(np.isnan(step.values).any() for step in steps)


@pytest.mark.parametrize("settings", [
    {"top_k": 5}, {"top_k": 6}, {"top_k": 0}, {"top_p": 1.0}, {"min_p": 0.0},
])  # fmt: skip
def test_what_removes_nothing(settings: dict) -> None:
    steps = waterfall(C, **settings)
    assert [step.n_left for step in steps] == [5] * 8
    assert steps[-1].values == pytest.approx(waterfall(C)[-1].values)


@pytest.mark.parametrize("p", [0.0, 1e-8, 1e-4])
def test_the_smallest_top_p_keeps_one(p: float) -> None:
    assert waterfall(C, top_p=p)[-1].values.tolist() == [1, 0, 0, 0, 0]


def test_masses_add_up_at_every_step_of_random_logits() -> None:
    dice = np.random.default_rng(4)
    for _ in range(40):
        settings = {
            "temperature": float(dice.uniform(0.1, 3)), "top_k": int(dice.integers(1, 60)),
            "top_p": float(dice.uniform(0.2, 1)), "min_p": float(dice.uniform(0, 0.5)),
            "repetition_penalty": float(dice.uniform(1, 2)), "previous": [3, 5, 5],
        }  # fmt: skip
        logits = dice.normal(size=60) * 3
        columns = waterfall(logits, **settings)
        assert tuple(column.name for column in columns) == STEPS
        shown = dice.permutation(60)[:9].tolist()
        for column in columns[3:]:
            assert column.values.sum() == pytest.approx(1)
            gone = column.values[~column.kept].sum()
            assert column.removed_mass == pytest.approx(gone, abs=1e-12)
            stays, removed = column.rest(shown)
            assert column.values[shown].sum() + stays + removed == pytest.approx(1)
        for before, after in zip(columns[3:], columns[4:], strict=False):
            left = np.where(before.kept, before.values, 0)
            assert after.values == pytest.approx(left / left.sum())
        assert columns[-1].values == pytest.approx(next_token_distribution(logits, **settings))
        stages = {stage.name: stage for stage in sampling_stages(logits, **settings)}
        for column in columns[4:7]:
            assert column.entropy == pytest.approx(stages[column.name].entropy) if column.on else True
            assert column.choices == pytest.approx(math.exp(column.entropy))


def test_the_penalty_makes_logits_smaller_before_anything_else() -> None:
    steps = named(waterfall(C, repetition_penalty=2.0, previous=[0, 4], temperature=0.5))
    assert steps["logits"].values == pytest.approx(C)
    assert steps["penalty"].values == pytest.approx([1.6, 1.1, 0.4, 2.4, -2.0])
    assert steps["temperature"].values == pytest.approx([3.2, 2.2, 0.8, 4.8, -4.0])
    assert steps["penalty"].entropy != pytest.approx(steps["logits"].entropy)


@pytest.mark.parametrize("bad", [[np.nan] * 3, [-np.inf] * 3, [np.inf, 0, 0]])
def test_logits_that_are_not_finite_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="not finite"):
        waterfall(bad)


def test_a_vocabulary_of_one() -> None:
    columns = waterfall([0.3], top_k=50, top_p=0.5, min_p=0.5)
    assert [column.values.tolist() for column in columns[3:]] == [[1.0]] * 5
    assert columns[-1].entropy == 0
