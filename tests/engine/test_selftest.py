"""The self-test: fine on a machine that is, failed where something is broken, and nothing left behind."""

import errno
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import wording
from engine import model as model_file
from engine import (
    selftest,
    selftest_engine,
    selftest_folder,
    selftest_job,
    selftest_machine,
    selftest_runs,
    selftest_training,
)
from engine.cache import KVCache
from engine.devices import Device
from engine.memory import Memory
from engine.model import Transformer
from engine.processes import process_mark
from engine.run_info import update_status
from engine.selftest import CHECKS, Check
from engine.selftest_result import (
    FAILED,
    OK,
    STATES,
    WARNING,
    Fact,
    Outcome,
    Result,
    at_most,
    summary,
    table,
    worst,
    worst_first,
)
from engine.tokenizer import Tokenizer
from tests.engine.small_runs import REPO, wait_for

HERE = Path(".")
Patch = Callable[[pytest.MonkeyPatch], None]


def result(slug: str = "disk", state: str = OK, **changes: Any) -> Result:
    facts = {"measured": Fact("disk", {"free": 5e3}), "expected": Fact("at_least_mb", {"limit": 1000})}
    return Result(**{"slug": slug, "group": "machine", "state": state, "seconds": 0.5, **facts, **changes})


# ---- the numbers: each check sees its fault


def wrong_scale(patch: pytest.MonkeyPatch) -> None:
    right = model_file.attend
    patch.setattr(model_file, "attend", lambda q, k, v, visible, scale=None: right(q, k, v, visible, 0.3))


def forgetful_cache(patch: pytest.MonkeyPatch) -> None:
    right = KVCache.extend

    def extend(self: KVCache, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple:
        keys, values = right(self, layer, k, v)
        return keys, values * 0.99

    patch.setattr(KVCache, "extend", extend)


def rows_that_mix(patch: pytest.MonkeyPatch) -> None:
    right = Transformer.read_out
    patch.setattr(Transformer, "read_out", lambda self, x: right(self, x + 0.01 * x.mean(0, keepdim=True)))


def gradient_cut_off(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(model_file, "gelu", lambda x, activation: F.gelu(x).detach() + 0 * x)


def cut_before_softmax(patch: pytest.MonkeyPatch) -> None:
    right = selftest_engine.next_token_distribution
    patch.setattr(
        selftest_engine, "next_token_distribution",
        lambda logits, **how: right(logits, **how) * (logits.numpy() > -5),
    )  # fmt: skip


def loss_in_bits(patch: pytest.MonkeyPatch) -> None:
    right = selftest_engine.cross_entropy
    patch.setattr(selftest_engine, "cross_entropy", lambda *given: right(*given) / math.log(2))


def bytes_lost(patch: pytest.MonkeyPatch) -> None:
    right = Tokenizer.decode
    patch.setattr(Tokenizer, "decode", lambda self, ids: right(self, ids).replace("\ufeff", ""))


def other_weights(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(selftest_engine, "GRAMMAR", selftest_engine.GRAMMAR.replace("3 |", "2 |"))


def other_stories(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(selftest_engine, "SEED", 778)


def chance_in_training(patch: pytest.MonkeyPatch) -> None:
    right, calls = selftest_training.tiny, iter(range(9))

    def tiny(**shape: Any) -> Transformer:
        made = right(**shape)
        with torch.no_grad():
            made.embedding.weight[0, 0] += 1e-6 * next(calls)
        return made

    patch.setattr(selftest_training, "tiny", tiny)


def generators_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = selftest_training.trained

    def trained(resume: Any = None) -> Any:
        return right({**resume, "generators": None} if resume else None)

    patch.setattr(selftest_training, "trained", trained)


FAULTS: dict[str, tuple[Callable[[Path], Outcome], Patch]] = {
    "attention": (selftest_engine.attention, wrong_scale),
    "cache": (selftest_engine.cached, forgetful_cache),
    "batch": (selftest_engine.batched, rows_that_mix),
    "gradient": (selftest_engine.gradient, gradient_cut_off),
    "softmax": (selftest_engine.whole_vocabulary, cut_before_softmax),
    "uniform": (selftest_engine.uniform, loss_in_bits),
    "round-trips": (selftest_engine.round_trips, bytes_lost),
    "true-chances": (selftest_engine.true_chances, other_weights),
    "same-twice": (selftest_training.same_twice, chance_in_training),
    "resume": (selftest_training.same_after_a_break, generators_forgotten),
    "card": (selftest_engine.shipped_loss, other_stories),
}


@pytest.mark.parametrize("slug", FAULTS)
def test_a_check_of_the_numbers_is_fine_and_sees_a_fault(slug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, fault = FAULTS[slug]
    if slug == "card" and not (selftest_engine.SHIPPED / "checkpoint.json").is_file():
        pytest.skip("pretrained/ is empty: python -m pretrained.make makes the models")
    before = torch.get_rng_state()
    right = check(HERE)
    assert right.state == OK, right.measured.text
    fault(monkeypatch)
    wrong = check(HERE)
    assert wrong.state == FAILED, wrong.measured.text
    assert wrong.measured != right.measured and wrong.expected == right.expected
    assert torch.equal(torch.get_rng_state(), before), "the global source of chance was touched"


def test_every_check_of_numbers_has_its_fault_here() -> None:
    assert {check.slug for check in CHECKS if check.group == "numbers"} == set(FAULTS)


def test_a_number_that_is_none_fails() -> None:
    assert [at_most(x, 1e-5).state for x in (1e-5, 1.1e-5, math.nan, math.inf)] == [OK, *[FAILED] * 3]


def test_a_gpu_that_computes_something_else_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    there = (Device("cpu"), Device("meta-gpu", "Fake", 8_000_000_000))
    monkeypatch.setattr(selftest_engine, "devices", lambda: there)
    monkeypatch.setattr(Transformer, "to", lambda self, device: self)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *_: self)
    good = selftest_engine.other_devices(HERE)
    assert good.state == OK and "Fake, 8.0 GB free" in good.measured.text

    def wrong(self: Transformer, device: str) -> Transformer:
        with torch.no_grad():
            self.final_norm.weight *= 1.01
        return self

    monkeypatch.setattr(Transformer, "to", wrong)
    assert selftest_engine.other_devices(HERE).state == FAILED

    def gone(self: Transformer, device: str) -> Transformer:
        raise RuntimeError("driver: /home/anna")

    monkeypatch.setattr(Transformer, "to", gone)
    failed = selftest_engine.other_devices(HERE)
    assert failed.state == FAILED and "anna" not in failed.measured.text


# ---- the machine


def test_packages_are_compared_with_the_pins_in_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = 'one==1.10.0\ntwo==2.0\nthree==3.0; sys_platform != "win32"\n# four==4\nfive==5.1\n-r other.txt\n'
    (tmp_path / "requirements.txt").write_text(pins)
    here = {"one": "1.9.0", "two": "2.0+cpu", "three": "3.1"}

    def version(name: str) -> str:
        if name not in here:
            raise selftest_machine.PackageNotFoundError(name)
        return here[name]

    monkeypatch.setattr(selftest_machine, "version", version)
    outcome = selftest_machine.compared("requirements.txt", needed=True, repo=tmp_path)
    assert outcome.state == FAILED
    assert outcome.measured.text == (
        "1 of 4 as pinned: five is missing, 5.1 is pinned; one 1.9.0 is older than 1.10.0; "
        "three 3.1 is newer than 3.0"
    )
    assert selftest_machine.compared("requirements.txt", needed=False, repo=tmp_path).state == WARNING
    here |= {"one": "1.10.0", "three": "3.0"}
    assert selftest_machine.compared("requirements.txt", needed=True, repo=tmp_path).state == FAILED
    assert selftest_machine.compared("requirements.txt", needed=False, repo=tmp_path).state == OK
    here["five"] = "5.1"
    assert selftest_machine.compared("requirements.txt", needed=True, repo=tmp_path).state == OK


def test_every_pin_of_the_requirements_is_looked_at() -> None:
    text = (REPO / "requirements.txt").read_text()
    assert len(selftest_machine.pins("requirements.txt")) == text.count("==") > 10


def test_an_old_python_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert selftest_machine.python(HERE).state == OK
    monkeypatch.setattr(selftest_machine.sys, "version_info", (3, 10, 9))
    assert selftest_machine.python(HERE).state == FAILED


@pytest.mark.parametrize(("free", "state"), [(400e6, WARNING), (100e6, FAILED), (9e9, OK), (None, OK)])
def test_little_memory_is_said(free: float | None, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Memory(16_000_000_000, None if free is None else int(free))
    monkeypatch.setattr(selftest_machine, "memory", lambda: there)
    outcome = selftest_machine.free_memory(HERE)
    assert outcome.state == state
    assert free is None or f"{free / 1e6:,.0f} of 16,000 MB" in outcome.measured.text


@pytest.mark.parametrize(("free", "state"), [(999e6, WARNING), (99e6, FAILED), (1e9, OK)])
def test_a_full_disk_is_said(free: float, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest_machine, "free_disk", lambda folder: int(free))
    assert selftest_machine.free_space(HERE).state == state


def test_the_version_is_the_commit(tmp_path: Path) -> None:
    version = selftest_machine.loupe_version
    assert version(tmp_path) == "unknown"
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert version(tmp_path) == "unknown"
    (git / "packed-refs").write_text("# pack\n0123456789abcdef refs/heads/main\n")
    assert version(tmp_path) == "0123456789"
    (git / "refs/heads/main").write_text("fedcba9876543210\n")
    assert version(tmp_path) == "fedcba9876"
    (git / "HEAD").write_text("aaaaaaaaaaaaaaaa\n")
    assert version(tmp_path) == "aaaaaaaaaa"


# ---- the data folder


def test_a_good_folder_is_fine_and_stays_empty(loupe_home: Path) -> None:
    for check in (selftest_folder.writing, selftest_folder.locking, selftest_folder.clock):
        assert check(loupe_home).state == OK, check.__name__
    assert list(loupe_home.iterdir()) == []


def test_a_folder_that_can_not_be_written_fails(loupe_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loupe_home.write_text("a file in its place")
    for check in (selftest_folder.writing, selftest_folder.locking):
        assert check(loupe_home).state == FAILED
    loupe_home.unlink()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full", "/home/anna")

    monkeypatch.setattr(selftest_folder, "write_file", full)
    outcome = selftest_folder.writing(loupe_home)
    assert outcome.state == FAILED and outcome.measured.text == "refused: OSError(No-space-left-on-device)"
    assert list(loupe_home.iterdir()) == []


def test_a_file_system_that_gives_a_lock_twice_fails(
    loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoLock:
        def __init__(self, *_: object, **__: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(selftest_folder, "FileLock", NoLock)
    assert selftest_folder.locking(loupe_home).measured == Fact("lock_twice")


def test_a_clock_behind_the_newest_file_is_said(loupe_home: Path) -> None:
    (loupe_home / "runs").mkdir(parents=True)
    file = loupe_home / "runs" / "late"
    file.touch()
    os.utime(file, times=(time.time() + 3600,) * 2)
    outcome = selftest_folder.clock(loupe_home)
    assert outcome.state == WARNING and 3500 < outcome.measured.values["x"] < 3601


def test_sizes_by_kind_without_following_links(loupe_home: Path, tmp_path: Path) -> None:
    for name, size in (("runs/a/x", 3_000_000), ("runs/b", 1_000_000), ("people/p", 10), ("own/y", 500_000)):
        file = loupe_home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(size))
    (tmp_path / "large").write_bytes(bytes(5_000_000))
    (loupe_home / "runs" / "link").symlink_to(tmp_path)
    outcome = selftest_folder.sizes(loupe_home)
    assert outcome.measured.text == "4.5 MB in 5 files: runs 4.0 MB; people 0.0 MB; other 0.5 MB"


def test_of_very_many_files_only_some_are_counted(loupe_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest_folder, "MOST_FILES", 3)
    (loupe_home / "runs").mkdir(parents=True)
    for i in range(9):
        (loupe_home / "runs" / str(i)).write_bytes(b"x")
    assert selftest_folder.sizes(loupe_home).measured.text.startswith("at least 0.0 MB in 3 files")


def test_what_a_killed_self_test_left_goes_with_the_next(loupe_home: Path) -> None:
    left = loupe_home / f".selftest.new-{2**22 + 1}-5"
    left.mkdir(parents=True)
    with selftest_folder.trial_folder(loupe_home) as place:
        assert place is not None and not left.exists()
    assert list(loupe_home.iterdir()) == []


# ---- runs


def test_runs_at_work_and_those_without_a_worker(loupe_home: Path) -> None:
    lives = {"pid": os.getpid(), "mark": process_mark(os.getpid())}
    states = [
        ("running", lives),
        ("running", {"pid": 2**22 + 1, "mark": "1"}),
        ("queued", {}),
        ("failed", {}),
    ]
    for i, (state, more) in enumerate(states):
        folder = loupe_home / "runs" / f"r{i}"
        folder.mkdir(parents=True)
        update_status(folder, state=state, **more)
    outcome = selftest_runs.at_work(loupe_home)
    assert outcome.state == WARNING
    assert outcome.measured.text == "1 at work, 1 waiting, 1 without a worker"
    update_status(loupe_home / "runs" / "r1", state="failed")
    assert selftest_runs.at_work(loupe_home).state == OK


def fake_process(proc: Path, pid: int, command: str, home: Path, parent: int, started: int = 100) -> None:
    """As the system describes one: proc(5)."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"\0".join(part.encode() for part in command.split()) + b"\0")
    (folder / "environ").write_bytes(b"A=1\0LOUPE_HOME=" + str(home).encode() + b"\0")
    fields = ["S", str(parent), *["0"] * 17, str(started)]
    (folder / "stat").write_text(f"{pid} (python (3)) {' '.join(fields)}")
    (folder / "cwd").symlink_to(REPO)


def test_workers_that_nobody_needs_are_found_among_those_that_are_needed(
    loupe_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc, worker = tmp_path / "proc", "/venv/bin/python -m engine.worker"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "stat").touch()
    (proc / "uptime").write_text("1000.0 1.0")
    fake_process(proc, 1, "/sbin/init", tmp_path, 0)
    fake_process(proc, 10, "/venv/bin/python -m streamlit run app.py", loupe_home, 1)
    fake_process(proc, 11, worker, loupe_home, 10)  # idle: its server lives
    fake_process(proc, 12, worker, loupe_home, 1)  # at work after its server ended
    fake_process(proc, 13, worker, tmp_path / "other", 1)  # of another data folder
    fake_process(proc, 14, worker, loupe_home, 1, started=99_900)  # just started
    folder = loupe_home / "runs" / "r"
    folder.mkdir(parents=True)
    update_status(folder, state="running", pid=12, mark="100")
    monkeypatch.setattr(selftest_runs, "PROC", proc)
    assert selftest_runs.orphans(loupe_home).state == OK
    fake_process(proc, 15, worker, loupe_home, 1)
    fake_process(proc, 16, worker, loupe_home, 99)  # its server is no more
    assert selftest_runs._orphans(loupe_home) == {15}  # of 16 nobody knows: it is about to be handed on
    outcome = selftest_runs.orphans(loupe_home)
    assert outcome.state == WARNING and outcome.measured.text == "1"


def test_where_processes_can_not_be_seen_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest_runs, "PROC", tmp_path)
    outcome = selftest_runs.orphans(tmp_path)
    assert outcome.state == OK and outcome.measured == Fact("cant_tell")


def trial_of(code: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> selftest_runs.Trial:
    def take(self: Any) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)

    monkeypatch.setattr(selftest_runs.Workers, "take", take)
    trial = selftest_runs.begin(place)
    assert isinstance(trial, selftest_runs.Trial)
    return trial


def test_a_worker_that_dies_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = trial_of("import sys; sys.exit(3)", tmp_path, monkeypatch).end()
    assert outcome.state == FAILED and outcome.measured == Fact("worker_left", {"code": 3})


def test_a_worker_that_is_silent_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest_runs, "PATIENCE", 0.2)
    trial = trial_of("import time; time.sleep(600)", tmp_path, monkeypatch)
    outcome = trial.end()
    assert outcome.state == WARNING and outcome.measured.name == "worker_silent"
    assert trial._process.poll() is not None


def test_without_a_folder_no_worker_begins() -> None:
    outcome = selftest_runs.begin(None)
    assert isinstance(outcome, Outcome) and outcome.state == FAILED


# ---- all of it


def test_all_checks_on_the_command_line_take_bounded_time_and_leave_nothing(loupe_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine.selftest"], cwd=REPO, capture_output=True, text=True, timeout=280
    )
    states = {line.split()[1] for line in done.stdout.splitlines() if line.startswith(tuple("✓!✗"))}
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in states and len(done.stdout.splitlines()) >= len(CHECKS) + 3
    assert str(loupe_home) not in done.stdout and str(REPO) not in done.stdout
    assert [path.name for path in loupe_home.iterdir()] == ["loupe.log"]
    (line,) = (loupe_home / "loupe.log").read_text().splitlines()
    assert "self-test  fine=" in line


def test_a_check_that_breaks_fails_and_the_others_go_on(
    loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(home: Path) -> Outcome:
        raise RuntimeError("in /home/anna")

    monkeypatch.setattr(selftest_machine, "free_space", breaks)
    checks = (
        *(check for check in CHECKS if check.slug in ("disk", "python")),
        Check("card", "numbers", "no:no"),
    )
    monkeypatch.setattr(selftest, "CHECKS", checks)
    begun: list[str] = []
    by_slug = {each.slug: each for each in selftest.run_all(loupe_home, begun.append)}
    assert begun == [check.slug for check in checks] == list(by_slug)
    assert [by_slug[slug].state for slug in ("python", "disk", "card")] == [OK, FAILED, FAILED]
    assert "RuntimeError at tests/engine/test_selftest.py" in by_slug["disk"].measured.text
    assert "ModuleNotFoundError" in by_slug["card"].measured.text
    assert "anna" not in json.dumps([each.to_json() for each in by_slug.values()])


def test_the_exit_status_says_whether_something_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], loupe_home: Path
) -> None:
    monkeypatch.setattr(selftest.os, "environ", dict(os.environ))
    for state, status in ((OK, 0), (WARNING, 0), (FAILED, 1)):
        monkeypatch.setattr(selftest, "run_all", lambda home, begun, s=state: iter([result(state=s)]))
        assert selftest.main([]) == status
    assert "5,000 MB" in capsys.readouterr().out
    selftest.main(["--json"])
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first == {"total": len(CHECKS)} and Result.from_json(second["result"]) == result(state=FAILED)
    text = (loupe_home / "loupe.log").read_text()
    assert "info    self-test  fine=1" in text and "warning self-test  fine=0 failed=disk" in text


# ---- results


def test_the_failed_ones_stand_first() -> None:
    some = [result("python"), result("disk", WARNING), result("memory", FAILED), result("clock", WARNING)]
    assert [r.slug for r in worst_first(some)] == ["memory", "disk", "clock", "python"]
    assert worst(some) == FAILED and worst(some[:2]) == WARNING and worst([]) == OK
    assert summary(some) == "1 check failed." and summary(some[:1]) == "Everything is fine."
    assert summary([some[1], some[3]]) == "Nothing failed. 2 checks ask for a look."
    rows = table(some).splitlines()
    assert rows[2].startswith("✗ failed  Free memory")
    assert any(row.startswith("✗ Free memory: Close other programs") for row in rows)


def test_a_result_comes_back_from_json_as_it_was() -> None:
    facts = Fact("as_pinned", {"n": 1, "all": 2}, (Fact("missing", {"name": "torch", "pinned": "2.13"}),))
    given = result("packages", FAILED, measured=facts)
    assert Result.from_json(json.loads(json.dumps(given.to_json()))) == given


@pytest.mark.parametrize("language", wording.LANGUAGES)
def test_every_check_is_told_in_every_language(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_LANGUAGE", language)
    for check in CHECKS:
        one = result(check.slug, group=check.group)
        assert one.what and one.way_out
    for state in STATES:
        assert result(state=state).verdict


# ---- in the background


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_job", "_last"):
        monkeypatch.setattr(selftest_job, name, None)


def lines_then(*contents: dict[str, Any], then: str = "") -> list[str]:
    """A process that says these lines and then does something."""
    said = "".join(f"print({json.dumps(json.dumps(content))}, flush=True)\n" for content in contents)
    return [sys.executable, "-c", f"import os, time, signal\n{said}{then}"]


def ended(job: selftest_job.Job) -> selftest_job.Job:
    wait_for(lambda: not job.running, 60)
    return job


def test_a_job_hears_its_process_and_is_there_for_everybody() -> None:
    given = result()
    command = lines_then({"total": 1}, {"begun": "disk"}, {"result": given.to_json()})
    job = ended(selftest_job.start(command=command))
    assert job.results == [given] and job.total == 1
    assert selftest_job.last() is job and selftest_job.running() is None


def test_one_at_a_time() -> None:
    job = selftest_job.start(command=lines_then({"total": 2}, {"begun": "disk"}, then="time.sleep(600)"))
    assert selftest_job.start() is job
    wait_for(lambda: job.at == "disk", 60)
    assert selftest_job.running() is job and selftest_job.last() is None
    selftest_job.end(job)
    assert ended(job).results[-1].state == FAILED
    assert job.process is not None and job.process.poll() is not None


BREAKS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", Fact("crashed", {"code": -9})),
    "too early": ("", Fact("crashed", {"code": 0})),
    "hangs": ("time.sleep(600)", Fact("late", {"x": 1.5})),
}


@pytest.mark.parametrize("how", BREAKS)
def test_the_check_at_which_the_process_broke_off_is_the_one_that_failed(how: str, loupe_home: Path) -> None:
    then, measured = BREAKS[how]
    command = lines_then({"total": 2}, {"result": result("python").to_json()}, {"begun": "card"}, then=then)
    job = ended(selftest_job.start(command=command, longest=1.5 if how == "hangs" else 60))
    assert [r.slug for r in job.results] == ["python", "card"]
    assert job.results[1].state == FAILED and job.results[1].measured == measured
    assert "self-test broke off  at=card" in (loupe_home / "loupe.log").read_text()


def test_nobody_begins_the_next_within_a_minute_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "print('no JSON')"]
    first = ended(selftest_job.start(command=command))
    assert selftest_job.start(command=command) is first and selftest_job.running() is None
    assert 0 < selftest_job.pause() <= selftest_job.PAUSE
    at = first.over + selftest_job.PAUSE
    monkeypatch.setattr(time, "time", lambda: 0.0)  # a clock that was set back makes nobody wait longer
    monkeypatch.setattr(time, "monotonic", lambda: at)
    assert selftest_job.pause() == 0
    monkeypatch.undo()
    monkeypatch.setattr(selftest_job, "PAUSE", 0.0)
    assert (again := selftest_job.start(command=command)) is not first
    ended(again)


def test_a_process_that_says_nonsense_or_can_not_start_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    job = ended(selftest_job.start(command=[sys.executable, "-c", "print('no JSON')"]))
    assert [r.slug for r in job.results] == ["process"] and job.results[0].way_out
    monkeypatch.setattr(selftest_job, "PAUSE", 0.0)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "none")

    monkeypatch.setattr(selftest_job, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": refuse}))
    job = ended(selftest_job.start())
    assert job.results[0].measured.text == "refused: OSError(Cannot-allocate-memory)"
