"""Cells of a table that a spreadsheet opens: text of users stays text and never becomes a formula."""

import csv

import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def safe_cell(text: str) -> str:
    """A text cell for CSV; one that a spreadsheet would take for a formula gets an apostrophe before it.

    >>> [safe_cell(text) for text in ("=1+1", "@SUM(A1)", "cat", "-5", "")]
    ["'=1+1", "'@SUM(A1)", 'cat', "'-5", '']
    """
    return "'" + text if text.startswith(_FORMULA) else text


def table_csv(table: pd.DataFrame) -> str:
    """A table as CSV: names and texts made safe, numbers in full, what is missing left empty."""
    safe = table.rename(columns=lambda name: safe_cell(str(name)))
    texts = [name for name in safe.columns if not pd.api.types.is_numeric_dtype(safe[name])]
    safe = safe.assign(**{name: [_cell(x) for x in safe[name]] for name in texts})
    return safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)


def _cell(value: object) -> str:
    missing = value is None or value is pd.NaT or (isinstance(value, float) and value != value)
    return "" if missing else safe_cell(str(value))
