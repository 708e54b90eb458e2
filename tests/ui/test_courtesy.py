"""Long work rests as long as it waited for others, and never where nobody else is at work."""

import threading
import time

import pytest

from ui import courtesy
from ui.courtesy import MOST, Courtesy, one_at_a_time


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


def test_only_one_such_work_is_done_at_a_time() -> None:
    """Five people let models write: while a step of one is computed, no step of another is."""
    now, most, read = 0, 0, []
    lock = threading.Lock()

    def steps(n: int):
        nonlocal now, most
        for step in range(n):
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.001)
            with lock:
                now -= 1
            yield step

    writers = [threading.Thread(target=lambda: read.append(list(one_at_a_time(steps(20))))) for _ in range(5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert most == 1
    assert read == [list(range(20))] * 5, "nobody's steps are lost, or another's"


def test_nobody_waits_for_a_step_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large model reads a long text: who lets a small one write goes on meanwhile, and both end."""
    monkeypatch.setattr(courtesy, "PATIENCE", 0.02)
    begun, over = threading.Event(), threading.Event()

    def long():
        begun.set()
        assert over.wait(60), "the other one has waited for this one"
        yield "read"

    read: list[str] = []
    reader = threading.Thread(target=lambda: read.extend(one_at_a_time(long())))
    reader.start()
    assert begun.wait(60)
    assert list(one_at_a_time(iter([1, 2, 3]))) == [1, 2, 3]
    over.set()
    reader.join()
    assert read == ["read"]
    assert courtesy._TURN.acquire(blocking=False), "whoever came without a turn gives none back"
    courtesy._TURN.release()


def test_an_error_in_a_step_is_told_and_lets_the_next_one_in() -> None:
    def steps():
        yield 1
        raise ValueError("too long")

    with pytest.raises(ValueError, match="too long"):
        list(one_at_a_time(steps()))
    assert list(one_at_a_time(iter([2]))) == [2]
