"""Windows over a long text: each target once, in order, with the context that is stated."""

import numpy as np
import pytest
import torch

from engine import windows
from engine.metrics import score
from engine.windows import Window, context_sizes, cut, score_parts, seconds_per_token, tokens_read


@pytest.mark.parametrize("stride", [1, 2, 5, 8])
@pytest.mark.parametrize("n", [2, 3, 8, 9, 10, 17, 40])
def test_every_target_is_scored_once_and_in_order(n: int, stride: int) -> None:
    found = cut(n, 8, stride)
    targets = [t for w in found for t in range(w.end - w.fresh + 1, w.end + 1)]
    assert targets == list(range(1, n))
    assert all(0 < w.fresh <= w.end - w.begin <= 8 for w in found)
    sizes = context_sizes(found)
    assert sizes.tolist() == [t - w.begin for w in found for t in range(w.end - w.fresh + 1, w.end + 1)]


def test_windows_by_hand() -> None:
    assert cut(8, 4, 4) == [Window(0, 4, 4), Window(4, 7, 3)]
    assert context_sizes(cut(8, 4, 4)).tolist() == [1, 2, 3, 4, 1, 2, 3]
    assert tokens_read(cut(8, 4, 4)) == 7
    assert tokens_read(cut(8, 4, 1)) == 16  # 4 windows of 4
    assert cut(1, 4, 2) == [] and context_sizes([]).tolist() == []


def test_a_smaller_stride_gives_more_context_for_more_work() -> None:
    plans = [cut(500, 64, stride) for stride in (64, 32, 16, 8)]
    assert np.all(np.diff([tokens_read(plan) for plan in plans]) > 0)
    assert np.all(np.diff([np.median(context_sizes(plan)) for plan in plans]) > 0)


@pytest.mark.parametrize("at_once", [1, 16 * 256, 10**9])
def test_parts_are_bounded_and_can_go_on_where_they_stopped(small_model, monkeypatch, at_once: int) -> None:
    monkeypatch.setattr(windows, "LOGITS_AT_ONCE", at_once)
    model = small_model()
    ids = torch.randint(256, (100,), generator=torch.Generator().manual_seed(3)).tolist()
    plan = cut(100, 16, 5)
    whole = np.concatenate(list(score_parts(model, ids, plan)))
    np.testing.assert_allclose(whole, score(model, ids, stride=5).log_probs, atol=1e-6)
    first = np.concatenate(list(score_parts(model, ids, plan[:7])))
    rest = np.concatenate(list(score_parts(model, ids, plan[7:])))
    np.testing.assert_allclose(np.concatenate([first, rest]), whole, atol=1e-6)
    if at_once == 1:  # one window at a time
        assert [len(part) for part in score_parts(model, ids, plan)] == [w.fresh for w in plan]


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a_long_window_in_parts_gives_the_same_numbers_and_says_how_far_it_is(
    small_model, monkeypatch, positions: str
) -> None:
    model = small_model(positions=positions)
    ids = torch.randint(256, (40,), generator=torch.Generator().manual_seed(4)).tolist()
    plan = cut(40, 16, 8)
    monkeypatch.setattr(windows, "LOGITS_AT_ONCE", 3 * 256)  # one window at a time, three rows of logits
    told: list[int] = []
    whole = np.concatenate(list(score_parts(model, ids, plan, tell=told.append)))
    assert told == [window.length for window in plan]
    monkeypatch.setattr(windows, "WORK_AT_ONCE", 0)
    monkeypatch.setattr(windows, "STEP", 5)
    told.clear()
    parts = list(score_parts(model, ids, plan, tell=told.append))
    assert told[:4] == [5, 5, 5, 1] and sum(told) == tokens_read(plan)
    assert [len(part) for part in parts] == [window.fresh for window in plan]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-5)
    logits = model(torch.tensor([ids[:16]]))[0].double().log_softmax(-1)
    np.testing.assert_allclose(parts[0], logits[range(16), ids[1:17]].detach(), atol=1e-5)


def test_the_pace_is_measured_on_this_machine(small_model, monkeypatch) -> None:
    clock = iter([10.0, 14.0])
    monkeypatch.setattr(windows.time, "monotonic", lambda: next(clock))
    assert seconds_per_token(small_model(), n=8) == 0.5


def test_the_weights_of_a_model_in_8_bits_are_counted_too(small_model) -> None:
    """Its matrices are no parameters: what is left, norms alone, would let a whole text be read at once."""
    model = small_model()
    exact = sum(p.numel() for p in model.blocks.parameters())
    assert windows.block_weights(model.config) == exact
