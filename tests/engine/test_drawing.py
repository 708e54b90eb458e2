"""Drawing in parts, the cumulative line, and one probability worked out again."""

import math

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.dice import count_error, cumulative_line, draw, draw_many, fit, throws
from engine.model import Transformer
from engine.sampling import generate, next_logits, next_token_distribution
from engine.stages import sampling_stages, worked_out

C = np.array([3.2, 1.1, 0.4, 2.4, -1.0])


@pytest.fixture(scope="module")
def model() -> Transformer:
    config = ModelConfig(vocab_size=23, context_length=16, n_layer=2, n_head=2, d_model=16)
    return Transformer(config, torch.Generator().manual_seed(2)).eval()


@pytest.mark.parametrize("parts", [(1,) * 24, (3, 5, 16), (23, 1)])
def test_a_seed_gives_the_same_text_in_parts_and_at_once(model: Transformer, parts: tuple[int, ...]) -> None:
    whole = [step.id for step in generate(model, [1, 2], n_tokens=24, temperature=2.0, seed=7)]
    text: list[int] = []
    for n in parts:
        steps = generate(model, [1, 2, *text], n_tokens=n, temperature=2.0, seed=7, skip=len(text))
        text += [step.id for step in steps]
    assert text == whole


def test_next_logits_sees_the_last_context_length_tokens(model: Transformer) -> None:
    ids = [i % 23 for i in range(40)]
    with torch.no_grad():
        expected = model(torch.tensor([ids[-16:]]))[0, -1].numpy()
    assert np.abs(next_logits(model, ids) - expected).max() < 1e-5
    with pytest.raises(ValueError, match="no token"):
        next_logits(model, [])


@pytest.mark.parametrize("smallest", [0.0, 0.02, 0.5])
def test_the_line_has_no_holes_and_every_number_falls_where_draw_says(smallest: float) -> None:
    probs = sampling_stages(C, temperature=1.5, top_k=4)[-1].probs
    line = cumulative_line(probs, smallest=smallest)
    assert line[0].low == 0 and line[-1].high == pytest.approx(1, abs=1e-12)
    assert all(a.high == b.low for a, b in zip(line, line[1:], strict=False))
    assert sum(stretch.n_tokens for stretch in line) == 4  # the token that was cut has no stretch
    for u in np.linspace(0, 0.9999, 101):
        chosen = draw(probs, u)
        alone = cumulative_line(probs, smallest=smallest, show=[chosen])
        (stretch,) = [s for s in alone if s.low <= u < s.high]
        assert (stretch.id, stretch.n_tokens) == (chosen, 1)
        assert stretch.high - stretch.low == pytest.approx(probs[chosen], abs=1e-12)


def test_small_neighbours_share_a_stretch() -> None:
    line = cumulative_line(np.array([0.5, 0.005, 0.0, 0.005, 0.48, 0.01]))
    assert [(s.id, s.n_tokens) for s in line] == [(0, 1), (1, 2), (4, 1), (5, 1)]
    shown = cumulative_line(np.array([0.5, 0.005, 0.0, 0.005, 0.48, 0.01]), show=[3])
    assert [(s.id, s.n_tokens) for s in shown] == [(0, 1), (1, 1), (3, 1), (4, 1), (5, 1)]


def test_worked_out_by_hand() -> None:
    # T = 2, top-p 0.8 keeps ids 0, 3, 1: 0.41853 + 0.28055 + 0.14646 = 0.84554
    stages = sampling_stages(C, temperature=2.0, top_p=0.8)
    w = worked_out(C, stages, 3, 2.0)
    assert (w.logit, w.top) == (2.4, 3.2)
    assert w.weight == pytest.approx(math.exp(-0.4))
    assert w.total == pytest.approx(
        math.exp(0) + math.exp(-1.05) + math.exp(-1.4) + math.exp(-0.4) + math.exp(-2.1)
    )
    assert w.tempered == pytest.approx(0.28055, abs=1e-5)
    assert w.kept == pytest.approx(0.84554, abs=1e-5)
    assert w.final == pytest.approx(0.3318, abs=1e-4)
    assert w.final == pytest.approx(w.tempered / w.kept)
    assert worked_out(C, stages, 4, 2.0).final == 0
    assert stages[-1].n_kept == 3


def test_worked_out_at_the_ends_of_the_temperature() -> None:
    assert worked_out(C, sampling_stages(C, temperature=0), 0, 0.0).final == 1
    assert worked_out(C, sampling_stages(C, temperature=0), 3, 0.0).weight == 0
    tiny = worked_out(C, sampling_stages(C, temperature=1e-300), 3, 1e-300)
    assert (tiny.weight, tiny.total) == (0, 1)


def test_a_thousand_draws_agree_with_their_distribution() -> None:
    probs = next_token_distribution(C, temperature=1.3)
    counts = draw_many(probs, 1000, seed=11)
    assert counts.sum() == 1000
    found = fit(counts, probs)
    assert found.n_bins == 5 and found.degrees == 4
    assert 0.01 < found.p_value < 1
    other = fit(counts, next_token_distribution(C, temperature=2.6))  # the test does notice another one
    assert other.p_value < 1e-6
    assert (np.abs(counts - 1000 * probs) < 4 * count_error(probs, 1000)).all()


def test_the_p_value_is_fair() -> None:
    """Of honest draws, one in ten has a p-value below 0.1, half below 0.5."""
    probs = next_token_distribution(C, temperature=2.0)
    p_values = np.array([fit(draw_many(probs, 1000, seed=s), probs).p_value for s in range(800)])
    for level in (0.1, 0.5, 0.9):
        assert (p_values < level).mean() == pytest.approx(level, abs=4 * math.sqrt(level * (1 - level) / 800))


def test_chi_square_by_hand() -> None:
    # 100 throws of a coin, 60 heads: (10² + 10²) / 50 = 4 with 1 degree of freedom, p = 0.0455
    found = fit(np.array([60, 40]), np.array([0.5, 0.5]))
    assert found.chi_square == pytest.approx(4) and found.degrees == 1
    assert found.p_value == pytest.approx(math.erfc(math.sqrt(4 / 2)))
    # Two tokens of 2 % of 100 draws are expected twice each: too rare, they share one bin with 4.
    pooled = fit(np.array([50, 46, 3, 1]), np.array([0.5, 0.46, 0.02, 0.02]))
    assert pooled.n_bins == 3 and pooled.chi_square == pytest.approx(0)
    assert math.isnan(fit(np.array([0, 9]), np.array([0.0, 1.0])).p_value)


def test_draw_many_follows_the_rule_of_draw_and_never_takes_what_was_cut() -> None:
    probs = next_token_distribution(C, top_k=2)
    counts = draw_many(probs, 500, seed=3)
    one_by_one = [draw(probs, u) for u in throws(500, 3)]
    assert counts.tolist() == np.bincount(one_by_one, minlength=5).tolist()
    assert counts[[1, 2, 4]].sum() == 0


def test_streams_of_one_seed_differ_and_repeat() -> None:
    assert throws(5, 1).tolist() != throws(5, 1, stream=1).tolist()
    assert throws(5, 1, stream=1).tolist() == throws(5, 1, stream=1).tolist()
    assert throws(3, 1, stream=2, skip=2).tolist() == throws(5, 1, stream=2)[2:].tolist()


def test_a_stop_token_comes_and_ends_the_text(model: Transformer) -> None:
    free = [step.id for step in generate(model, [1], n_tokens=30, seed=5)]
    stop = free[9]
    until = free[: free.index(stop) + 1]
    assert [s.id for s in generate(model, [1], n_tokens=30, seed=5, stop_ids={stop})] == until


def test_the_repetition_penalty_by_hand() -> None:
    stages = sampling_stages(C, repetition_penalty=2.0, previous=[0, 4, 4])
    assert [stage.name for stage in stages] == ["softmax", "penalty", "temperature"]
    z = np.array([1.6, 1.1, 0.4, 2.4, -2.0])
    assert stages[-1].probs == pytest.approx(np.exp(z) / np.exp(z).sum())
    assert len(sampling_stages(C, repetition_penalty=1.0, previous=[0])) == 2  # 1 is off
    w = worked_out(C, stages, 0, 1.0, repetition_penalty=2.0, previous=[0, 4, 4])
    assert w.logit == 1.6 and w.final == pytest.approx(stages[-1].probs[0])
    with pytest.raises(ValueError, match="at least 1"):
        sampling_stages(C, repetition_penalty=0.5)


def test_a_heavy_penalty_never_repeats_while_there_is_a_choice(model: Transformer) -> None:
    ids = [s.id for s in generate(model, [1], n_tokens=14, temperature=0, repetition_penalty=1e6)]
    assert len(set(ids)) == 14


def test_entropy_and_effective_choices_of_a_stage() -> None:
    even = sampling_stages([0.0, 0.0, 0.0, 0.0])[0]
    assert even.entropy == pytest.approx(math.log(4)) and even.choices == pytest.approx(4)
    assert sampling_stages(C, temperature=0)[-1].choices == pytest.approx(1)


@pytest.mark.parametrize(
    "settings", [{}, {"top_k": 3, "top_p": 0.8, "min_p": 0.1, "repetition_penalty": 1.3}]
)
def test_masses_add_up_at_every_stage(settings: dict) -> None:
    dice = np.random.default_rng(1)
    for _ in range(50):
        stages = sampling_stages(dice.normal(size=40) * 3, temperature=0.8, previous=[3, 4], **settings)
        for before, after in zip(stages, stages[1:], strict=False):
            assert after.probs.sum() == pytest.approx(1)
            if after.name in ("top-k", "top-p", "min-p"):
                gone = (after.probs == 0) & (before.probs > 0)
                assert after.removed_mass == pytest.approx(before.probs[gone].sum(), abs=1e-12)
            assert after.rest([0, 1, 2]) + after.probs[:3].sum() == pytest.approx(1)


def test_cache_on_is_cache_off_over_three_times_the_context(model: Transformer) -> None:
    n = 3 * model.config.context_length
    on, off = (
        [s.id for s in generate(model, [1, 2], n_tokens=n, seed=8, use_cache=c)] for c in (True, False)
    )
    assert on == off
