"""The time machine's numbers: bars that add up to 1, lines with looks of their own, base64 of one head."""

import base64
import math

import numpy as np
import pytest

from tests.viz.test_theme import CONFIG, contrast
from viz import NEUTRAL, TRUE, Reference, Series
from viz.moments import LINE_LOOKS, MOST_POINTS, bar_rows, chip_looks, curve, head_weights, prob_lines


def test_bars_and_their_tail_are_one_and_name_their_lines() -> None:
    rows = bar_rows([7, 3], [0.5, 0.2], tail=0.3, true=[0.25, 0.0], true_tail=0.75, came=3, lines=[3, 9])
    assert [row["id"] for row in rows] == [7, 3, None]
    assert sum(row["p"] for row in rows) == pytest.approx(1)
    assert sum(row["true"] for row in rows) == pytest.approx(1)
    assert rows[1]["came"] and rows[1]["line"] == 0 and "line" not in rows[0] and "came" not in rows[0]
    assert rows[1]["trueText"] == "0" and rows[0]["text"] == "0.500"


def test_bars_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ValueError, match="model bars and their tail"):
        bar_rows([1], [0.5], tail=0.4)
    with pytest.raises(ValueError, match="true bars and their tail"):
        bar_rows([1], [0.5], tail=0.5, true=[0.5], true_tail=0.4)


def test_each_line_has_its_own_look_and_stands_out_on_both_pages() -> None:
    assert len(set(LINE_LOOKS)) == len(LINE_LOOKS)
    for color, _ in LINE_LOOKS:
        for mode in ("light", "dark"):
            assert contrast(color, CONFIG[mode]["backgroundColor"]) >= 3
    lines = prob_lines(["a", "a"], [[0.1, 0.2], [0.3, 0.4]], true=[0.5, 0.0], came=1)
    assert [line["values"] for line in lines] == [[0.1, 0.3], [0.2, 0.4]]  # equal names stay apart
    assert [line["came"] for line in lines] == [False, True] and lines[0]["true"] == 0.5
    with pytest.raises(ValueError, match="looks for 7 lines"):
        prob_lines(["x"] * 8, np.zeros((2, 8)))


def test_surprise_under_tokens() -> None:
    texts, colors = chip_looks([math.nan, math.log(0.5), -math.inf, 0.0, -0.001, -12.34], math.log(100))
    assert texts == ["–", "0.69", "inf", "0.00", "<0.01", "12.3"]
    assert colors[0] == NEUTRAL and len({colors[1], colors[2], colors[3]}) == 3


def test_a_long_curve_is_thinned_and_gaps_stay() -> None:
    values = np.linspace(5, 1, 4000)
    values[100] = math.nan
    drawn = curve(
        [Series("train", np.arange(4000), values, "train")],
        [Reference(0.5, "floor", "floor"), Reference(math.nan, "none", "floor")],
        "Loss",
    )
    (line,) = drawn["series"]
    assert len(line["x"]) <= MOST_POINTS and line["x"][0] == 0 and line["x"][-1] == 3999
    assert None in line["y"] and line["y"][-1] == 1
    (mark,) = drawn["references"]
    assert mark["color"] == TRUE and mark["label"] == "floor 0.500"


def test_weights_are_rounded_to_bytes_moment_by_moment() -> None:
    weights = np.zeros((2, 3, 3))
    weights[1, 2] = [0.2, 0.3, 0.5]
    data = np.frombuffer(base64.b64decode(head_weights(weights)), np.uint8).reshape(2, 3, 3)
    assert data[1, 2].tolist() == [51, 76, 128] and data[0].sum() == 0  # 0.3 · 255 is 76.5: to even
    assert head_weights(data) == head_weights(weights)
