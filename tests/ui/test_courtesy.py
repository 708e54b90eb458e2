"""Long work rests as long as it waited for others, and never where nobody else is at work."""

import pytest

from ui import courtesy
from ui.courtesy import MOST, Courtesy


class Clock:
    """A clock on the wall, the processor's clock of this thread, and a sleep that is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall = self.busy = 0.0
        self.rests: list[float] = []
        monkeypatch.setattr(courtesy.time, "perf_counter", lambda: self.wall)
        monkeypatch.setattr(courtesy.time, "thread_time", lambda: self.busy)
        monkeypatch.setattr(courtesy.time, "sleep", self.rest)

    def rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.wall += seconds

    def work(self, seconds: float, waited: float = 0.0) -> None:
        self.wall += seconds + waited
        self.busy += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_alone_it_never_rests(clock: Clock) -> None:
    polite = Courtesy()
    for _ in range(100):
        clock.work(0.02, waited=0.001)
        assert polite.give_way() == 0.0
    assert clock.rests == []


def test_in_a_crowd_it_rests_as_long_as_it_waited(clock: Clock) -> None:
    polite = Courtesy()
    for waited in (0.01, 0.03):
        clock.work(0.002, waited=waited)
        assert polite.give_way() == pytest.approx(waited)
    clock.work(0.002)  # its own rest was no wait
    assert polite.give_way() == 0.0
    assert clock.rests == pytest.approx([0.01, 0.03])


def test_a_rest_is_short(clock: Clock) -> None:
    polite = Courtesy()
    clock.work(0.002, waited=7.0)
    assert polite.give_way() == MOST


def test_waiting_for_a_gpu_is_no_waiting_for_others(clock: Clock) -> None:
    polite = Courtesy(here=False)
    clock.work(0.001, waited=0.5)
    assert polite.give_way() == 0.0
