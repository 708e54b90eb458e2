"""The table of benchmarks: how it is written, how its file grows, and that the README shows it."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.one_row import (
    IN_THE_APP,
    MODULES,
    Conditions,
    environment,
    options_from_json,
    options_to_json,
)
from benchmarks.results import FILE, Result, merge, read, results
from benchmarks.rows import Goal, Options, Row, Spread
from benchmarks.table import BEGIN, END, README, lines, markdown, promise, short, spread, with_table

CONDITIONS = Conditions(
    date="2026-01-02",
    cores=2,
    processor="A Processor | fast",
    versions={"python": "3.12.1", "torch": "2.13.0"},
    threads={"torch": 1},
    load_before=0.1,
    load_after=1.25,
    seconds=3.0,
    rounds=5,
    seeds=[1, 2, 3],
    toy=False,
)
SPEED = Row(
    "P6",
    "Writing",
    "tokens/s",
    {"Loupe": Spread(1486.0, 1400.0, 1502.0), "transformers": Spread(440.0, 440.0, 440.0)},
    [
        Goal("x transformers", Spread(3.377, 3.2, 3.41), 3),
        Goal("ms to begin", Spread(9.0, 8.0, 9.5), 8, False),
    ],
    "One row at a time.",
    {"seconds": [1, 2]},
)
LOSS = Row("P3", "Learning", "nats", {"Loupe": Spread(1.5561, 1.551, 1.56)}, [])


def saved(row: Row, **changed: object) -> dict:
    return {"row": row.to_json(), "conditions": asdict(replace(CONDITIONS, **changed))}


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (21345.6, 3, "21,300"),
        (9.999, 3, "10.0"),
        (0.0012345, 3, "0.00123"),
        (0.0, 3, "0"),
        (1.5561, 4, "1.556"),
    ],
)
def test_numbers_have_significant_digits(value, digits, shown):
    assert short(value, digits) == shown


def test_a_spread_shows_its_ends_and_a_single_value_none():
    assert spread(Spread.of([3.0, 1.0, 2.0])) == "2.00 (1.00–3.00)"
    assert spread(Spread.of([2.0])) == "2.00"


def test_a_promise_says_in_which_direction():
    assert promise(SPEED.goals[0]) == "≥ 3 × transformers"
    assert promise(SPEED.goals[1]) == "≤ 8 ms to begin"


def test_a_row_for_the_terminal_says_what_was_reached():
    shown = "\n".join(lines(SPEED))
    assert re.search(r"\+ ≥ 3 × transformers +3\.38 \(3\.20–3\.41\) +reached", shown)
    assert re.search(r"- ≤ 8 ms to begin +9\.00 \(8\.00–9\.50\) +missed", shown)
    assert "One row at a time." in shown
    assert "1.556 (1.551–1.560)" in "\n".join(lines(LOSS))


def test_the_table_has_a_line_for_each_goal_and_one_for_a_row_without():
    table = markdown([Result(LOSS, CONDITIONS), Result(SPEED, CONDITIONS)])
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 1 + 2
    assert rows[3].startswith(
        "| P6 | Writing, tokens/s | Loupe 1,490 (1,400–1,500); transformers 440 | ≥ 3 ×"
    )
    assert rows[4] == "|  |  |  | ≤ 8 ms to begin | 9.00 (8.00–9.50) | missed |"
    assert {line.count("|") for line in rows} == {7}
    assert "P3, P6 measured on 2026-01-02, 2 cores of A Processor | fast; python 3.12.1" in table
    assert "P3 0.1, 1.2; P6 0.1, 1.2" in table


def test_a_bar_in_a_name_breaks_no_table():
    row = replace(LOSS, what="a | b")
    assert "| a \\| b, nats |" in markdown([Result(row, CONDITIONS)])


def test_a_row_at_toy_size_says_that_its_times_mean_nothing():
    assert "TOY" in markdown([Result(LOSS, replace(CONDITIONS, toy=True))])
    assert "TOY" not in markdown([Result(LOSS, CONDITIONS)])


def test_a_row_that_was_left_out_says_why():
    row = Row("P8", "Writing", "tokens/s", {}, [], "There is no SmolLM2 here.")
    assert lines(row) == ["P8  Writing (tokens/s)", "      There is no SmolLM2 here."]
    assert "P8: There is no SmolLM2 here." in markdown([Result(row, CONDITIONS)])


def test_results_come_back_as_they_were(tmp_path):
    file = tmp_path / "results.json"
    merge(file, {"P6": saved(SPEED)})
    assert results(file) == [Result(SPEED, CONDITIONS)]


def test_a_new_row_takes_the_place_of_its_own_and_leaves_the_others(tmp_path):
    file = tmp_path / "results.json"
    merge(file, {"P6": saved(SPEED)})
    merge(file, {"P3": saved(LOSS)})
    newer = replace(SPEED, notes="again")
    merge(file, {"P6": saved(newer, date="2026-01-03")})
    assert list(read(file)) == ["P3", "P6"]  # in the order of the table
    assert [found.row for found in results(file)] == [LOSS, newer]
    assert [found.conditions.date for found in results(file)] == ["2026-01-02", "2026-01-03"]


def test_a_toy_row_never_takes_the_place_of_a_real_one(tmp_path):
    file = tmp_path / "results.json"
    merge(file, {"P6": saved(SPEED)})
    with pytest.raises(ValueError, match="P6 at its real size"):
        merge(file, {"P6": saved(SPEED, toy=True)})
    assert results(file) == [Result(SPEED, CONDITIONS)]


def test_the_readme_keeps_all_but_the_table():
    readme = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_table(readme, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert with_table(with_table(readme, "new"), "new") == with_table(readme, "new")
    for broken in (f"{END} {BEGIN}", BEGIN, END, readme + readme, ""):
        with pytest.raises(ValueError, match="once each"):
            with_table(broken, "new")


def test_the_readme_shows_the_table_of_the_results():
    readme = README.read_text("utf-8")
    assert readme == with_table(readme, markdown(results(FILE))), "run: python -m benchmarks --readme"


def test_no_result_is_at_toy_size_or_tells_where_its_files_lay():
    text = FILE.read_text("utf-8")
    assert not any(found.conditions.toy for found in results(FILE))
    assert not re.search(r'"/|[A-Z]:\\\\|/(work|home|root|tmp|Users)/', text)


def test_the_readme_explains_every_row():
    section = README.read_text("utf-8").partition("\n## How fast\n")[2].partition("\n## ")[0]
    after = section.partition(END)[2]
    assert re.findall(r"^- \*\*(P\d+)\*\*", after, flags=re.MULTILINE) == list(MODULES)


def test_options_reach_the_process_that_measures(tmp_path):
    options = Options(True, 2, (7,), tmp_path, None, tmp_path / "models")
    assert options_from_json(options_to_json(options)) == options


def test_a_row_starts_without_the_threads_of_the_one_who_asks(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("KEPT", "yes")
    assert "OMP_NUM_THREADS" not in environment("P1")
    assert environment("P1")["KEPT"] == "yes"
    assert environment("P9").items() >= IN_THE_APP.items()


def test_rows_are_asked_for_by_name_in_any_order():
    assert command.rows_named("p10, P2") == ["P2", "P10"]
    with pytest.raises(Exception, match="P77: rows are P1"):
        command.rows_named("P77")


@pytest.fixture
def process(monkeypatch):
    """Measuring without a process: P2 fails, P3 breaks its process, the others give `SPEED`."""
    asked = []

    def process(rows: list[str], options: Options, answer: Path) -> str:
        asked.append(rows)
        for row in rows:
            if row == "P2":
                return "Traceback …\nValueError: nothing there"
            if row == "P3":
                return ""
            with open(answer, "a", encoding="utf-8") as file:
                file.write(json.dumps(saved(replace(SPEED, id=row), toy=options.toy)) + "\n")
        return ""

    monkeypatch.setattr(command, "process", process)
    return asked


def test_a_row_that_fails_says_why_and_the_others_go_on(process, capsys, tmp_path):
    file = tmp_path / "results.json"
    assert command.main(["--only", "P1,P2,P3,P4", "--save", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "P2  FAILED: ValueError: nothing there" in shown
    assert "P3  FAILED: its process wrote nothing" in shown
    assert shown.endswith("2 of 4 goals reached; failed: P2, P3\n")
    assert list(read(file)) == ["P1", "P4"]
    assert process == [["P1"], ["P2"], ["P3"], ["P4"]]


def test_at_toy_size_the_rows_of_a_module_share_a_process(process, capsys):
    assert command.main(["--only", "P1,P2,P6", "--toy"]) == 1
    assert process == [["P1", "P2"], ["P6"]]
    assert "P1  Writing" in capsys.readouterr().out


def test_nothing_is_written_unless_asked(process, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "merge", None)
    monkeypatch.setattr(command, "README", None)
    assert command.main(["--only", "P1"]) == 0


def test_readme_alone_measures_nothing(process, capsys, monkeypatch, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    monkeypatch.setattr(command, "README", readme)
    assert command.main(["--readme"]) == 0
    assert not process
    assert markdown(results(FILE)) in readme.read_text("utf-8")
