"""Worked merges: whoever puts the numbers in gets the result that is shown."""

import re

import pytest

from ui import worked_merges


@pytest.mark.parametrize(("before", "count", "n_bytes"), [(11, 2, 11), (903_236, 1, 2_187_406), (7, 2, 11)])
def test_every_line_follows(before: int, count: int, n_bytes: int) -> None:
    formula = worked_merges.merge(before, count, n_bytes)
    assert f"{before} - {count} = {before - count}" in formula
    top, bottom, result = re.findall(r"\\frac\{(\d+)\}\{(\d+)\} = ([\d.]+)", formula)[0]
    assert (int(top), int(bottom)) == (n_bytes, before - count)
    assert f"{int(top) / int(bottom):.4g}" == f"{float(result):.4g}"


def test_the_share_of_a_token() -> None:
    assert worked_merges.share_of(1, 8) == r"\frac{1\ \text{uses}}{8\ \text{tokens}} = 12.5\,\%"
    assert worked_merges.share_of(0, 8).endswith(r"= 0\,\%")
