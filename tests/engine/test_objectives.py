"""What each objective pays for, and the shipped pair's training read from its records."""

import json
from pathlib import Path

import pytest

from engine.checkpoint_files import read_description
from engine.config import ModelConfig, TrainConfig
from engine.objectives import learning_of, price, span_of

ROOT = Path(__file__).parents[2] / "pretrained"


def test_a_masked_model_is_paid_for_a_share_of_what_it_reads() -> None:
    shape = {"vocab_size": 10, "context_length": 192}
    training = TrainConfig(batch_size=16, mask_prob=0.15)
    causal = price(ModelConfig(**shape), training)
    masked = price(ModelConfig(**shape, objective="mlm"), training)
    assert (causal.tokens, causal.targets, causal.share) == (3072, 3072, 1)
    assert (masked.tokens, masked.share) == (3072, 0.15) and masked.targets == pytest.approx(460.8)


def test_the_way_to_the_floor() -> None:
    records = [{"kind": "floor", "step": 0, "value": 1.0}] + [
        {"kind": "eval", "step": step, "val_loss": loss} for step, loss in [(0, 5.0), (10, 3.0), (20, 1.2)]
    ]
    found = learning_of(
        [*records, {"kind": "step", "step": 20, "loss": 0.1}, {"kind": "eval", "step": 30, "val_loss": None}]
    )
    assert (found.steps, found.losses, found.floor) == ([0, 10, 20], [5.0, 3.0, 1.2], 1.0)
    assert [found.step_of(share) for share in (0, 0.5, 0.51, 0.95, 0.96)] == [0, 10, 20, 20, None]
    assert learning_of(records[1:]).step_of(0.5) is None


def test_an_axis_for_two() -> None:
    assert span_of([6144, 18_432_000, 0]) == (1e3, 1e8)
    assert span_of([]) == (1, 10)


@pytest.mark.skipif(not (ROOT / "stories-mlm").is_dir(), reason="pretrained/ has no shipped pair")
def test_the_shipped_pair_differs_by_the_row_of_the_mask_alone() -> None:
    causal, masked = (read_description(ROOT / f"stories-{kind}") for kind in ("clm", "mlm"))
    a, b = dict(causal["model"]), dict(masked["model"])
    assert b.pop("vocab_size") - a.pop("vocab_size") == 1  # the mask's row, of d_model numbers, used twice
    assert (a.pop("objective"), b.pop("objective")) == ("clm", "mlm")
    assert a == b and causal["train"] == masked["train"]
    assert causal["tokenizer_hash"] == masked["tokenizer_hash"]
    for kind in ("clm", "mlm"):
        lines = (ROOT / f"stories-{kind}" / "metrics.jsonl").read_text("utf-8").splitlines()
        found = learning_of(json.loads(line) for line in lines)
        assert found.steps[0] == 0 and found.steps[-1] == 6000 and found.floor is not None
        assert found.losses[0] == pytest.approx(6.93, abs=0.2)  # ln 1024 = 6.931
        assert found.floor < found.losses[-1] < found.losses[0]
