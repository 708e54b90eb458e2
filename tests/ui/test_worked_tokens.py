"""The formulas of the Tokens page tie out with a calculator."""

import re

import pytest

from ui import worked_tokens


@pytest.mark.parametrize(
    "numbers", [(13, 55, 55, 11), (1, 1, 4, None), (116, 74, 192, 15), (999_999, 7, 13, 0)]
)
def test_every_line_is_a_division_that_ties_out(numbers):
    n_tokens, characters, n_bytes, words = numbers
    formula = worked_tokens.cost(n_tokens, characters, n_bytes, words)
    found = re.findall(r"\\frac\{(\d+)\}\{(\d+)\} = ([\d.]+)(\\times10\^\{(-?\d+)\})?", formula)
    wanted = [(n_tokens, words)] if words else []
    wanted += [(characters, n_tokens), (n_bytes, n_tokens)]
    assert [(int(top), int(bottom)) for top, bottom, *_ in found] == wanted
    for top, bottom, value, _, power in found:
        assert float(f"{value}e{power or 0}") == pytest.approx(int(top) / int(bottom), rel=6e-4)
    assert ("tokens per word" in formula) == bool(words)


def test_times_as_many():
    formula = worked_tokens.times(116, 19, "Hindi", "English")
    assert formula.endswith("= 6.11") and "116" in formula and "19" in formula  # 116 / 19 = 6.105…
    assert r"\text{tokens, Hindi}" in formula
