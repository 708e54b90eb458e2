"""Bad input at toy size keeps every promise; and readers that lack a check are caught."""

import os

import pytest

from trials import inputs
from trials.inputs_changes import Change, Cut, changed, cut_up
from trials.inputs_kind import ROOT, fault_of
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
    assert sum(tried_cases.values()) > 400
    assert all(part.figures[name]["taken in"] for name in inputs.KINDS), "good files must be among them"
    assert all(part.figures[name]["refused"] for name in inputs.KINDS if name not in ("texts", "runs"))


# ---- what would be seen: in a process of its own, as the hook of a watch can't be taken down

BODIES = {
    "key": ("return {}[case]", "KeyError in"),
    "stranger": ("raise ValueError('Not a sentence of ours, as it comes from elsewhere.')", "ValueError in"),
    "beside": ("open(home.parent / 'home2', 'w').close(); (home.parent / 'home2').unlink()", "touched: open"),
    "outside": ("(home.parent / 'outside' / 'more.txt').write_text('x')", "touched: open"),
    "read": ("(home.parent / 'outside' / 'secret.txt').read_text()", "touched: open"),
    "socket": (
        "import socket\n    with socket.socket() as one: one.connect_ex(('127.0.0.1', 9))",
        "touched: socket.connect",
    ),
    "pickle": ("import pickle; pickle.loads(pickle.dumps(Path))", "touched: pickle.find_class"),
    "slow": ("exec('while True: pass')", "TooLong"),
    "large": ("bytearray(200_000_000)", "memory: "),
    "huge": ("bytearray(10**11)", "MemoryError"),
    "few": ("assert case < 2", "AssertionError"),
    "dies": ("import os; os._exit(3)", ""),
}
BAD = """
from pathlib import Path
from hypothesis import strategies as some
from trials import inputs_child
from trials.inputs_kind import Kind

{attempts}

def kind_of(name):
    return Kind(name, some.integers(0, 3), globals()[name], seconds=0.3, megabytes=100)

inputs_child.kind_of = kind_of
inputs_child.main()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("badly")
    attempts = "\n".join(f"def {name}(case, home):\n    {body}\n" for name, (body, _) in BODIES.items())
    (folder / "badly.py").write_text(BAD.format(attempts=attempts), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{ROOT}")
        return inputs.tried(tuple(BODIES), 4, 1, module="badly")


@pytest.mark.parametrize("name", [name for name in BODIES if name != "dies"])
def test_a_reader_without_its_check_is_caught(name, found):
    one = found[name]
    assert one.counts["fault"] and not one.died
    assert one.faults[0][0].startswith(BODIES[name][1]), one.faults
    part = inputs.told({name: one})
    assert not part.kept and part.figures[name]["faults"] == one.counts["fault"]


def test_a_process_that_dies_is_told_with_its_case(found):
    assert "ended with 3 at" in found["dies"].died and not inputs.told({"dies": found["dies"]}).kept


def test_a_fault_is_told_with_the_smallest_case_that_shows_it(found):
    assert found["few"].faults[0][1] == "2"


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
