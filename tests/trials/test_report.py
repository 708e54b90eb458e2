"""The report keeps the newest outcome of each part, and says when a promise is broken."""

import json
import os
import subprocess
import sys

import pytest

import trials.__main__ as command
from tests.engine.small_runs import wait_for
from trials.outcomes import Check, Options, Part
from trials.report import lines, merge

GOOD = Part(
    "load",
    [Check("Clicks are answered within 1 s", "0.4 s", True)],
    {"look": {"acts": 12, "p95 ms": 400}, "train": {"acts": 3}},
    ["Thirty people."],
)
BAD = Part("faults", [Check("Nothing is lost", "2 of 9 runs lost | a pipe", False)])


def test_a_part_survives_json():
    assert Part.from_json(json.loads(json.dumps(GOOD.to_json()))) == GOOD
    assert GOOD.kept and not BAD.kept


def test_a_broken_promise_is_seen_in_the_terminal():
    assert lines(BAD) == ["Faults", "  - Nothing is lost: 2 of 9 runs lost | a pipe"]


def test_the_page_keeps_other_parts_in_order(tmp_path):
    page = tmp_path / "trials.md"
    merge(page, BAD, Options())
    merge(page, GOOD, Options(seed=7))
    told = page.read_text("utf-8")
    assert told.index("## A class at work") < told.index("## Faults")
    assert "| Nothing is lost | 2 of 9 runs lost \\| a pipe | broken |" in told
    assert "| look | 12 | 400 |" in told and "| train | 3 |  |" in told and "seed 7." in told
    merge(page, Part("faults", [Check("Nothing is lost", "0 lost", True)]), Options())
    assert "broken" not in page.read_text("utf-8")


def test_toy_size_never_takes_the_place_of_the_real_one(tmp_path):
    page = tmp_path / "trials.md"
    merge(page, GOOD, Options())
    with pytest.raises(ValueError, match="toy"):
        merge(page, GOOD, Options(toy=True))


def test_the_command_fails_for_a_broken_promise_and_for_a_part_that_failed(monkeypatch, capsys):
    for answer, status in ((GOOD, 0), (BAD, 1), ("its process ended with status 3", 1)):
        monkeypatch.setattr(command, "in_own_process", lambda name, options, answer=answer: answer)
        assert command.main(["--only", "load"]) == status
    assert "FAILED: its process ended with status 3" in capsys.readouterr().out


def test_parts_that_do_not_exist_are_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["--only", "load,weather"])
    assert "weather: parts are load, faults" in capsys.readouterr().err


# In place of the load trial: something that has to be ended in order.
PART = """
import sys, time, types

def trial(options):
    folder = {folder!r}
    try:
        open(folder + "/begun", "w").close()
        time.sleep(600)
    finally:
        time.sleep(0.3)
        open(folder + "/cleaned", "w").close()

sys.modules["trials.load"] = types.SimpleNamespace(trial=trial)
"""


@pytest.mark.skipif(os.name != "posix", reason="elsewhere to end a process is to kill it")
def test_a_command_that_is_ended_lets_its_part_end_what_it_started(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(PART.format(folder=str(tmp_path)))
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    asked = [sys.executable, "-m", "trials", "--only", "load"]
    with subprocess.Popen(
        asked, cwd=command.ROOT, env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE
    ) as process:
        wait_for((tmp_path / "begun").exists)
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode != 0 and (tmp_path / "cleaned").exists()
