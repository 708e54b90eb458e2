"""Every row at toy size: the programs agree, and each row can be read. Its times mean nothing."""

from itertools import groupby

import pytest

from benchmarks.__main__ import main
from benchmarks.one_row import MODULES, ROOT
from benchmarks.results import results

GROUPS = {module: list(rows) for module, rows in groupby(MODULES, key=lambda row: MODULES[row])}


@pytest.mark.parametrize("module", GROUPS)
def test_rows_at_toy_size(module, tmp_path, capsys):
    if not (ROOT / "benchmarks" / f"{module}.py").exists():
        pytest.skip(f"benchmarks/{module}.py is not written yet")
    file = tmp_path / "results.json"
    status = main(["--toy", "--only", ",".join(GROUPS[module]), "--save", str(file)])
    assert status == 0, capsys.readouterr().out
    found = results(file)
    assert [result.row.id for result in found] == GROUPS[module]
    for result in found:
        assert result.row.what and result.row.unit
        assert result.row.figures or result.row.notes  # which say what isn't there
        assert result.conditions.toy
        seen = [*result.row.figures.values(), *(goal.seen for goal in result.row.goals)]
        assert all(0 <= spread.low <= spread.median <= spread.high < float("inf") for spread in seen)
