"""Bad input at toy size keeps every promise; and readers that lack a check are caught."""

from pathlib import Path

import pytest
from hypothesis import strategies as some

from trials import inputs
from trials.inputs_changes import Change, Cut, changed, cut_up
from trials.inputs_kind import ROOT, Kind, fault_of, tried
from trials.inputs_watch import Watch
from trials.outcomes import Options


@pytest.fixture(scope="module")
def part():
    return inputs.trial(Options(toy=True))


def test_the_toy_size_keeps_every_promise(part):
    assert part.kept, "\n".join([*(f"{c.what}: {c.seen}" for c in part.checks if not c.kept), *part.notes])


def test_every_kind_is_tried_with_many_cases(part):
    assert set(part.figures) == {*inputs.KINDS, "links", "widgets"}
    tried_cases = {name: line["cases"] for name, line in part.figures.items()}
    assert min(tried_cases[name] for name in inputs.KINDS) >= inputs.TOY
    assert sum(tried_cases.values()) > 500
    assert all(part.figures[name]["taken in"] for name in inputs.KINDS), "good files must be among them"
    assert all(part.figures[name]["refused"] for name in inputs.KINDS if name not in ("texts", "runs"))


# ---- what would be seen: each in a process of its own, as the hook of a watch can't be taken down

BAD = """
import sys
from pathlib import Path
from hypothesis import strategies as some
from trials import inputs_child
from trials.inputs_kind import Kind

def attempt(case, home):
    {body}

inputs_child.kind_of = lambda name: Kind("bad", some.integers(0, 3), attempt, seconds=0.3, megabytes=100)
inputs_child.main()
"""


def outcome_of(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> inputs.Found:
    (folder / "badly.py").write_text(BAD.format(body=body), "utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
    return inputs.tried(["bad"], 2, 1, module="badly")["bad"]


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("return {}[case]", "KeyError in"),
        ("raise ValueError('Not a sentence of ours, as it comes from elsewhere.')", "ValueError in"),
        ("open(home.parent / 'evil', 'w').close()", "touched: open"),
        ("(home.parent / 'outside' / 'secret.txt').write_text('x')", "touched: open"),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 9))", "touched: socket.connect"),
        ("import pickle; pickle.loads(pickle.dumps(Path))", "touched: pickle.find_class"),
        ("exec('while True: pass')", "TooLong"),
        ("bytearray(200_000_000)", "memory: 2"),
        ("bytearray(10**11)", "MemoryError"),
    ],
)
def test_a_reader_without_its_check_is_caught(body, seen, tmp_path, monkeypatch):
    found = outcome_of(body, tmp_path, monkeypatch)
    assert found.counts["fault"] and not found.died
    assert found.faults[0][0].startswith(seen), found.faults
    part = inputs.told({"bad": found})
    assert not part.kept and part.figures["bad"]["faults"] == found.counts["fault"]


def test_a_process_that_dies_is_told_with_its_case(tmp_path, monkeypatch):
    found = outcome_of("import os; os._exit(3)", tmp_path, monkeypatch)
    assert "ended with 3 at" in found.died and not inputs.told({"bad": found}).kept


def test_faults_come_with_a_small_case(tmp_path, monkeypatch):
    found = outcome_of("assert case < 2", tmp_path, monkeypatch)
    assert not found.faults or found.faults[0][1] == "2"


def test_pythons_words_are_no_sentence():
    from engine.tokenizers import tokenizer_from_json

    try:
        tokenizer_from_json({"kind": "nothing"})
    except ValueError as error:
        assert fault_of(error) == ""
        told = ValueError(f"This file is damaged ({TypeError('unhashable type')!r}).")
        told.__traceback__ = error.__traceback__
        assert fault_of(told).startswith("Python's words (TypeError)")


def test_changes_are_made_where_they_are_said():
    assert changed({"a": [1, 2]}, [Change(1, "set", 9)]) == {"a": [9, 2]}
    assert changed({"a": [1, 2]}, [Change(0, "drop")]) == {}
    assert changed({"a": 3}, [Change(0, "rename", "b")]) == {"b": 3}
    assert cut_up(b"abc", [Cut("cut", 1)]) == b"a"
    assert cut_up(b"abc", [Cut("flip", 0, b"\x00")]) == b"\x60bc"
    assert cut_up(b"abc", [Cut("put", 3, b"x")]) == b"xabc"


def test_a_kind_is_a_strategy_and_an_attempt():
    assert Kind("x", some.none(), lambda case, place: None).seconds > 0
    assert callable(tried) and Watch is not None
