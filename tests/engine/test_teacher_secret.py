"""The teacher's secret: where it comes from, who can read it, and what guessing costs."""

import os
import stat
import threading
from pathlib import Path

import pytest

from engine import plain_log, teacher_secret
from engine.teacher_secret import FILE, Guard, TooSoonError, WrongSecretError, secret_of


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(teacher_secret.VARIABLE, raising=False)


class Clock:
    """Seconds that the test lets pass."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(tmp_path: Path, clock: Clock) -> Guard:
    return Guard(tmp_path, clock)


def wrong(guard: Guard, session: str = "one", typed: str = "not it at all") -> None:
    with pytest.raises(WrongSecretError):
        guard.check(typed, session)


def test_the_first_start_makes_it_and_the_next_reads_it(tmp_path: Path) -> None:
    made = secret_of(tmp_path / "home")
    assert secret_of(tmp_path / "home") == made and len(made) == 19
    assert (tmp_path / "home" / FILE).read_text() == f"{made}\n"
    assert secret_of(tmp_path / "other") != made
    assert [p.name for p in (tmp_path / "home").iterdir()] == [FILE], "no half-written file is left"


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_only_the_owner_of_the_process_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        secret_of(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    (tmp_path / FILE).chmod(0o644)
    secret_of(tmp_path)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_servers_that_start_together_agree(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(secret_of(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_the_environment_comes_first_and_needs_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(teacher_secret.VARIABLE, "  correct horse  ")
    Guard(tmp_path).check("correct horse", "one")
    assert not (tmp_path / FILE).exists()
    monkeypatch.setenv(teacher_secret.VARIABLE, "short")
    with pytest.raises(ValueError, match="LOUPE_TEACHER_SECRET is too short.*at least 8"):
        secret_of(tmp_path)


def test_an_emptied_file_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("abc")
    with pytest.raises(ValueError, match="too short"):
        Guard(tmp_path).check("abc", "one")
    (tmp_path / FILE).write_bytes(b"\xff\xfe" * 20)
    with pytest.raises(ValueError, match="can't be read"):
        Guard(tmp_path).check("", "one")


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("known to everybody")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="can't be read"):
        Guard(tmp_path).check("known to everybody", "one")


def test_right_is_right_and_nothing_else(guard: Guard, clock: Clock) -> None:
    kept = secret_of(guard.home)
    guard.check(f" {kept}\n", "one")
    for typed in ("", kept[:-1], kept + "x", kept.upper(), "\ud800", "x" * 100_000):
        clock.now += 100
        wrong(guard, typed=typed)


def test_a_session_that_guesses_waits_longer_each_time(guard: Guard, clock: Clock) -> None:
    for _ in range(3):
        wrong(guard)
    wrong(guard)  # the fourth makes it wait 2 s
    for pause in (2, 4, 8, 16, 32, 60, 60):
        clock.now += pause - 0.5
        with pytest.raises(TooSoonError, match="Try again in 1 second"):
            guard.check(secret_of(guard.home), "one")  # not even the right one is looked at
        clock.now += 0.5
        wrong(guard)
    guard.check(secret_of(guard.home), "another")  # others don't wait
    clock.now += 60
    guard.check(secret_of(guard.home), "one")
    wrong(guard)
    wrong(guard)  # and begins anew


def test_many_sessions_that_guess_slow_the_whole_server(guard: Guard, clock: Clock) -> None:
    for i in range(20):
        wrong(guard, f"session {i}")
    with pytest.raises(TooSoonError, match="5 seconds"):
        guard.check("again", "a new one")
    clock.now += 5
    wrong(guard, "a new one")
    with pytest.raises(TooSoonError):
        guard.check(secret_of(guard.home), "the teacher")
    clock.now += 5
    guard.check(secret_of(guard.home), "the teacher")
    clock.now += 60
    wrong(guard, "x")
    wrong(guard, "y")  # a minute later all is forgotten


def test_what_is_remembered_of_guesses_is_bounded(
    guard: Guard, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher_secret, "SESSIONS", 10)
    for i in range(30):
        clock.now += 10
        wrong(guard, f"session {i}")
    assert len(guard._of) == 10


def test_a_new_secret_has_another_mark_and_the_mark_is_not_the_secret(guard: Guard) -> None:
    before, kept = guard.mark(), secret_of(guard.home)
    assert kept not in before and guard.mark() == before
    (guard.home / FILE).unlink()
    assert guard.mark() != before


def test_neither_the_secret_nor_what_was_typed_gets_into_the_log(guard: Guard) -> None:
    wrong(guard, typed="my cat is called Tom")
    said = plain_log.path(guard.home).read_text("utf-8")
    assert "wrong teacher secret" in said and "Tom" not in said and secret_of(guard.home) not in said
