"""What is worked out once for all who watch a run is that of its records now, never of those before."""

import numpy as np
import pytest

from engine import reading
from ui import run_seen
from ui.components.live_curve import MAX_POINTS
from ui.run_seen import MOST, Seen, seen


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_seen, "_kept", {})


def step(n: int, loss: float) -> dict:
    return {"kind": "step", "step": n, "loss": loss, "seconds": float(n), "tokens": 64 * n}


def evaluated(n: int, loss: float) -> dict:
    return {"kind": "eval", "step": n, "val_loss": loss, "train_loss": loss, "seconds": float(n)}


def test_the_same_records_are_read_once_and_more_of_them_anew() -> None:
    records = [step(1, 3.0), step(2, 2.5)]
    first = seen("run", list(records), 10)  # the store gives a list of its own each time
    assert seen("run", list(records), 10) is first
    records.append(step(3, 2.0))
    later = seen("run", list(records), 10)
    assert later is not first and list(later.lines("loss", 0)[0][1]) == [3.0, 2.5, 2.0]
    assert list(first.lines("loss", 0)[0][1]) == [3.0, 2.5], "who still looks at it sees no half of another"


def test_a_run_that_was_resumed_does_not_show_what_it_has_unlearned() -> None:
    """From step 2 on it goes another way: as many records as before, and others."""
    records = [step(n, 3.0 - n / 10) for n in range(1, 5)]
    before = seen("run", list(records), 10)
    again = [*records[:2], step(3, 9.0), step(4, 8.0)]
    after = seen("run", list(again), 10)
    assert after is not before and list(after.lines("loss", 0)[0][1])[-2:] == [9.0, 8.0]


def test_a_smoothed_line_is_smoothed_over_all_records_and_then_thinned() -> None:
    rng = np.random.default_rng(0)
    records = [step(n, 2.0 + float(rng.normal())) for n in range(1, 4 * MAX_POINTS)]
    raw, smoothed = Seen(records, 10).lines("loss", 50)
    steps, values = reading.quantity(records, "loss")
    whole = dict(zip(steps, reading.smooth(values, 50, steps), strict=True))
    assert len(raw[0]) <= MAX_POINTS and smoothed is not None and len(smoothed[0]) <= MAX_POINTS
    assert [whole[n] for n in smoothed[0]] == pytest.approx(list(smoothed[1]))


def test_each_run_has_its_own_and_only_so_many_are_kept() -> None:
    one, other = seen("one", [step(1, 1.0)], 10), seen("other", [step(1, 2.0)], 10)
    assert list(one.lines("loss", 0)[0][1]) == [1.0] and list(other.lines("loss", 0)[0][1]) == [2.0]
    for n in range(MOST):
        seen(f"run {n}", [evaluated(1, 1.0)], 10)
    assert len(run_seen._kept) == MOST and "one" not in run_seen._kept
