"""Drawing in parts, the cumulative line, and one probability worked out again."""

import math

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.model import Transformer
from engine.sampling import (
    cumulative_line,
    draw,
    generate,
    next_logits,
    sampling_stages,
    worked_out,
)

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
