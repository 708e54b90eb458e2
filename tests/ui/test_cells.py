"""Nothing that a user types becomes a formula in a spreadsheet."""

import csv
import io

import pandas as pd
import pytest

from ui.cells import safe_cell, table_csv


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=cmd|"/c"!A1']
)
def test_a_formula_stays_text(text: str) -> None:
    assert safe_cell(text) == "'" + text
    row = next(csv.reader(io.StringIO(table_csv(pd.DataFrame({"a": [text]})).split("\n", 1)[1], newline="")))
    assert row == ["'" + text]


@pytest.mark.parametrize("text", ["cat", "a=1", "·cat", "", "1", "👍"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert safe_cell(text) == text


def test_numbers_stay_numbers_and_names_are_safe() -> None:
    written = table_csv(pd.DataFrame({"=x": [-1.5, 2.0], "n": [-1, 2], "t": ["-1", 'a,"b"']}))
    rows = list(csv.reader(io.StringIO(written)))
    assert rows == [["'=x", "n", "t"], ["-1.5", "-1", "'-1"], ["2.0", "2", 'a,"b"']]
