"""Numbers too large, runs too many, disks too full: refused in words, at once, where the work is done."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine import new_runs, plain_log, processes, retention, runs, selftest_runs, teacher_secret
from engine.config import ModelConfig, TrainConfig
from engine.folders import fresh_folder, read_json
from engine.runs import RunStore
from engine.teacher_secret import Guard, TooSoonError, WrongSecretError, secret_of
from tests.engine.small_runs import spec


@pytest.mark.parametrize("name", ["vocab_size", "context_length", "n_layer", "n_head", "d_model", "d_ff"])
def test_a_forged_size_of_a_model_is_refused_before_anything_is_counted(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} can be at most .*Choose a smaller number"):
        ModelConfig(**{"vocab_size": 300, name: 10**12})


@pytest.mark.parametrize(("name", "most"), [("steps", 10_000_000), ("batch_size", 65_536), ("moments", 1000)])
def test_a_forged_length_of_a_run_is_refused(name: str, most: int) -> None:
    assert getattr(TrainConfig(**{name: most}), name) == most
    with pytest.raises(ValueError, match=f"{name} can be at most {most:,}, not {most + 1:,}"):
        TrainConfig(**{name: most + 1})


def test_a_step_of_more_tokens_than_a_worker_can_stop_in_is_refused() -> None:
    large = spec(batch_size=60_000, context=64)
    with pytest.raises(ValueError, match="One step would read 3,840,000 tokens, and at most 1,048,576 fit"):
        large.check()


def test_a_run_that_begins_anew_must_fit_the_memory_too() -> None:
    small = spec()
    with pytest.raises(ValueError, match="GB"):
        replace(small, model=replace(small.model, d_model=200_000, n_layer=100)).check()


def test_one_person_has_only_so_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_ACTIVE", 3)
    store = RunStore(tmp_path)
    new_runs.let_begin(tmp_path, False)
    ids = store.start_many([spec(seed=seed) for seed in range(3)], "me")
    with pytest.raises(ValueError, match="You have 3 runs that train or wait, and at most 3 can"):
        store.start(spec(seed=9), "me")
    assert store.start(spec(seed=1), "me") == ids[1], "the same once more is that one"
    store.start(spec(seed=9), "you")
    store.stop(ids[0], "me")
    monkeypatch.setattr(runs, "MOST_RUNS", 3)
    with pytest.raises(ValueError, match="at most 3 are kept for one person. Delete some"):
        store.start(spec(seed=9), "me")
    store.delete(ids[0], "me")
    store.start(spec(seed=9), "me")


def test_a_run_that_was_deleted_does_not_come_back_with_a_late_checkpoint(tmp_path: Path) -> None:
    with fresh_folder(tmp_path / "run" / "10") as folder:
        (folder / "a").write_text("a")
    assert (tmp_path / "run" / "10" / "a").exists(), "one folder is made if need be"
    with pytest.raises(FileNotFoundError), fresh_folder(tmp_path / "gone" / "checkpoints" / "20"):
        pass
    assert not (tmp_path / "gone").exists()


# ---- the teacher's secret


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Guard:
    monkeypatch.delenv(teacher_secret.VARIABLE, raising=False)
    return Guard(tmp_path, clock)


def guess(guard: Guard, n: int, address: str) -> None:
    for i in range(n):
        with pytest.raises(WrongSecretError):
            guard.check("not it at all", f"{address} {i}", address=address, browser=f"{address} {i}")


def test_guesses_at_one_address_are_no_wait_at_another(guard: Guard) -> None:
    guess(guard, 20, "10.0.0.9")
    with pytest.raises(TooSoonError):
        guard.check(secret_of(guard.home), "new", address="10.0.0.9", browser="new")
    guard.check(secret_of(guard.home), "teacher", address="", browser="teacher")  # at the machine itself


def test_a_browser_that_was_right_waits_for_its_own_tries_alone(guard: Guard, clock: Clock) -> None:
    guard.check(secret_of(guard.home), "monday", address="10.0.0.9", browser="the teacher's")
    guess(guard, 20, "10.0.0.9")
    guard.check(secret_of(guard.home), "tuesday", address="10.0.0.9", browser="the teacher's")
    for _ in range(4):
        with pytest.raises(WrongSecretError):
            guard.check("a slip", "tuesday", address="10.0.0.9", browser="the teacher's")
    with pytest.raises(TooSoonError, match="2 seconds"):
        guard.check(secret_of(guard.home), "tuesday", address="10.0.0.9", browser="the teacher's")
    (guard.home / teacher_secret.FILE).unlink()  # a new secret: nobody was right with it yet
    clock.now += 2
    with pytest.raises(TooSoonError):
        guard.check(secret_of(guard.home), "wednesday", address="10.0.0.9", browser="the teacher's")


def test_a_house_has_one_address_however_many_it_makes_up(guard: Guard) -> None:
    """Whoever has an IPv6 line has 2^64 addresses, which share their first 64 bits."""
    for i in range(teacher_secret.MOST_IN_WINDOW):
        guess(guard, 1, f"2001:db8:1:2::{i:x}")
    with pytest.raises(TooSoonError):
        guard.check("again", "new", address="2001:db8:1:2:ffff::1")
    with pytest.raises(WrongSecretError):
        guard.check("once", "other", address="2001:db8:1:3::1")


def test_many_addresses_together_have_a_try_a_minute_each(guard: Guard, clock: Clock) -> None:
    for i in range(teacher_secret.MOST_TOGETHER):
        guess(guard, 1, f"10.0.{i // 250}.{i % 250}")
    clock.now += 20
    with pytest.raises(TooSoonError, match="40 seconds"):
        guard.check("again", "x", address="10.0.0.1")
    guard.check(secret_of(guard.home), "x", address="10.9.9.9")  # one that did not guess
    clock.now += 40
    with pytest.raises(WrongSecretError):
        guard.check("again", "x", address="10.0.0.1")


# ---- a full disk, a folder named in another way


def test_what_is_due_is_remembered_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retention.tidy(tmp_path)
    file = tmp_path / retention.RECORD
    assert file.stat().st_size == retention.BLOCK

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(retention, "write_file", full)
    inode = file.stat().st_ino
    later = read_json(file)["looked"] + 2 * retention.DAY
    monkeypatch.setattr("time.time", lambda: later)
    assert retention.is_due(tmp_path)
    retention.tidy(tmp_path)
    assert not retention.is_due(tmp_path), "it was looked, and that is known"
    assert (file.stat().st_ino, file.stat().st_size) == (inode, retention.BLOCK), "no new block was needed"
    file.unlink()
    retention.tidy(tmp_path)  # nothing can be written, and nobody falls over that


def test_a_relative_data_folder_is_the_same_for_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUPE_HOME", "../data")
    assert Path(processes.surroundings()["LOUPE_HOME"]).resolve() == tmp_path.parent / "data"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_an_orphans_folder_is_known_however_it_is_written(tmp_path: Path) -> None:
    process = tmp_path / "4711"
    process.mkdir()
    (tmp_path / "server").mkdir()
    os.symlink(tmp_path / "server", process / "cwd")
    for written in ("../data", "./../data/", str(tmp_path / "data"), f"{tmp_path}/x/../data"):
        (process / "environ").write_bytes(b"A=1\0LOUPE_HOME=" + os.fsencode(written) + b"\0")
        assert selftest_runs._home_of(process) == tmp_path / "data"


def test_neither_address_nor_browser_of_a_guesser_is_logged(guard: Guard) -> None:
    guess(guard, 1, "10.1.2.3")
    assert "10.1.2.3" not in plain_log.path(guard.home).read_text("utf-8")
