"""The faults at their smallest size: every promise is kept, and a broken one is seen."""

from trials import faults, faults_bytes, faults_clock, faults_disk, faults_kill, faults_kit, faults_memory
from trials.faults_bytes import Subject, cut, cuts
from trials.faults_kit import Tally, broken_curve, whole_run
from trials.faults_record import crashes, recorded, tree_of
from trials.outcomes import Options

TOY = Options(toy=True)


def test_every_promise_is_kept():
    tried = [kind for kind in faults.KINDS if kind is not faults_memory.trial]
    assert {faults_kill.trial, faults_clock.trial, faults_disk.full, faults_bytes.trial} <= {*tried}
    tallies = [kind(TOY) for kind in tried]
    faults_seen = [f"{tally.kind}: {fault}" for tally in tallies for fault in tally.faults]
    assert not faults_seen
    for tally in tallies:
        assert all(check.kept for check in tally.checks)
        assert tally.left_out or (tally.survived == tally.injected > 0 and tally.checks), tally.kind
    assert sum(tally.injected for tally in tallies) > 200


def test_a_careless_writer_is_seen(tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    tally = Tally("careless")
    subject = faults_bytes.deliberately_bad(folder)
    cut(subject, folder, tmp_path / "left", tally, lambda one: cuts(one, False, None))
    check = tally.promise("A save leaves the old or the new state").checks[0]
    assert not check.kept and "neither the old nor the new state" in tally.faults[0]
    assert "power cut" in " ".join(tally.faults), "it never asks the system to keep what it has written"
    n_bytes = len('{"state": "new"}')
    assert tally.injected >= n_bytes


def test_a_reader_that_raises_is_seen(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "n").write_text("1")

    def save(folder):
        with open(folder / "n", "w") as file:
            file.write("22")

    tally = Tally("numbers")
    subject = Subject("a number", save, lambda folder: int((folder / "n").read_text()))
    cut(subject, tmp_path / "made", tmp_path / "left", tally, lambda one: [0, 1])
    assert "ValueError" in tally.faults[0]


def test_what_is_recorded_is_what_happened(tmp_path):
    """The last state that is made of the operations is the one that is on the disk."""
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "a").write_bytes(b"old")
    before = tree_of(tmp_path / "f")
    with recorded(tmp_path / "f") as operations:
        with open(tmp_path / "f" / "a", "a") as file:
            file.write("+new")
        (tmp_path / "f" / "folder").mkdir()
        (tmp_path / "f" / "folder" / "b").write_bytes(b"b" * 10)
        (tmp_path / "f" / "folder").rename(tmp_path / "f" / "other")
        (tmp_path / "f" / "a").unlink()
    *_, last = (crash for crash in crashes(before, operations, lambda one: []) if crash.done)
    assert last.tree == tree_of(tmp_path / "f") == {"other": None, "other/b": b"b" * 10}
    states = [crash.tree for crash in crashes(before, operations, lambda one: [2])]
    assert {"a": b"old+n"} in states, "half of the appended text"


def test_a_curve_with_a_gap_or_a_step_twice_is_seen(tmp_path):
    from engine.runs import RunStore

    store = RunStore(tmp_path)
    one, whole = whole_run(store), whole_run(store)
    file = store.root / one / "metrics.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    assert broken_curve(store.root / one, store.root / whole) == ""
    at = next(i for i, line in enumerate(lines) if b'"step", "step": 7,' in line)
    for wrong in (lines[:at] + lines[at + 1 :], lines[: at + 1] + lines[at:]):
        file.write_bytes(b"".join(wrong))
        assert "not each once" in broken_curve(store.root / one, store.root / whole)


def test_looks_are_no_faults_and_one_that_finds_something_breaks_the_promise():
    tally = Tally("disk full")
    tally.count()
    tally.look("")
    assert tally.promise("It is well").checks[0].kept and (tally.injected, tally.survived) == (1, 1)
    tally.look("/tokens is empty")
    check = tally.promise("It is well").checks[-1]
    assert not check.kept and check.seen == "1 of 1 survived; 2 looks besides; first: /tokens is empty"


def test_a_clock_that_never_jumped_is_seen(monkeypatch):
    monkeypatch.setattr(faults_clock, "CLOCK", "")
    tally = Tally("clock")
    with faults_kit.at_work() as store:
        faults_clock._while_it_trains(store, tally, {"an hour back": -3600.0})
    assert "the worker's clock was" in tally.faults[0]
