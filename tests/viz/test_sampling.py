"""The bars of the steps: their lengths, their sums, and what is left to see of a token that was removed."""

import numpy as np
import pytest

from viz.sampling import BarColumn, bar_cells

SOFT = BarColumn("softmax", [0.5, 0.3, 0.1], [True] * 3, (0.1, 0.0))
CUT = BarColumn("top-k", [0.5, 0.3, 0.1], [True, True, False], (0.0, 0.1), "k = 2", True, ("0.200", "2"))
LEFT = BarColumn("drawn from", [0.625, 0.375, 0.0], [True, True, False], (0.0, 0.0))


def sums(column: dict) -> float:
    return sum(cell["size"] + (cell["lost"] if cell["state"] != "gone" else 0) for cell in column["cells"])


def test_each_column_of_probabilities_adds_up_to_1() -> None:
    for column in bar_cells([SOFT, CUT, LEFT], n_tail=97):
        assert sums(column) * 0.625 == pytest.approx(1, abs=1e-3)  # all share the scale of the longest bar


def test_what_a_step_removes_is_hatched_and_named_and_stays_to_be_seen() -> None:
    _, cut, left = bar_cells([SOFT, CUT, LEFT], n_tail=97)
    assert [cell["state"] for cell in cut["cells"]] == ["kept", "kept", "removed", "removed"]
    third = cut["cells"][2]
    assert (third["size"], third["lost"], third["text"]) == (0, pytest.approx(0.1 / 0.625), "0.100")
    after = left["cells"][2]
    assert (after["size"], after["text"], after["state"]) == (0, "removed", "gone")
    assert after["lost"] == pytest.approx(0.1 / 0.625)  # as long as it was
    assert [cell["text"] for cell in left["cells"]] == ["0.625", "0.375", "removed", "0"]


def test_a_token_removed_between_two_columns_keeps_the_length_of_the_first() -> None:
    _, after = bar_cells([SOFT, LEFT], n_tail=97)
    assert (after["cells"][2]["lost"], after["cells"][2]["state"]) == (pytest.approx(0.16), "removed")
    assert after["cells"][2]["text"] == "removed"


def test_the_tail_may_be_cut_in_part() -> None:
    (column,) = bar_cells([BarColumn("top-p", [0.6], [True], (0.3, 0.1))], n_tail=9)
    tail = column["cells"][1]
    assert (tail["size"], tail["lost"]) == (pytest.approx(0.5), pytest.approx(0.1 / 0.6, abs=1e-4))
    assert tail["text"] == "0.300" and tail["state"] == "kept"


def test_logits_grow_from_zero_to_both_sides_and_have_no_tail() -> None:
    (column,) = bar_cells([BarColumn("logits", [3.0, -1.0, -np.inf], [True] * 3)], n_tail=5)
    up, down, never, tail = column["cells"]
    assert (up["at"], up["size"]) == (0.25, 0.75)  # from -1 to 3 the zero stands at a quarter
    assert (down["at"], down["size"], down["text"]) == (0, 0.25, "−1.00")
    assert (never["size"], never["text"]) == (0, "−∞")
    assert tail["text"] == ""


def test_no_tail_no_row_and_the_rest_is_passed_on() -> None:
    (column,) = bar_cells([BarColumn("top-k", [1.0], [True], (0, 0), "off", False, ("a", "b"))], n_tail=0)
    assert len(column["cells"]) == 1
    assert (column["title"], column["note"], column["on"], column["facts"]) == (
        "top-k",
        "off",
        False,
        ["a", "b"],
    )


def test_bars_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'p' and their tail must add up to 1, but they add up to 0\.8"):
        bar_cells([BarColumn("p", [0.5, 0.3], [True, True], (0.0, 0.0))], n_tail=4)
