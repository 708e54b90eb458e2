"""How long the vectors of a whole vocabulary are."""

import numpy as np
import pytest

import viz
from viz.length_spread import BINS, length_spread

NORMS = np.concatenate([np.linspace(1, 2, 500), [5.0]])
NAMES = [f"t{i}" for i in range(500)] + ["<b>"]


def test_every_vector_is_counted_once():
    fig = length_spread(NORMS, NAMES, marked=[3, 500], chosen=500)
    bars, marks = fig.data
    assert len(bars.y) == BINS and sum(bars.y) == 501
    width = bars.width
    for x, y in zip(bars.x, bars.y, strict=True):
        low, high = x - width / 2, x + width / 2
        inside = sum(low - 1e-6 <= norm < high - 1e-6 for norm in NORMS.tolist())
        assert abs(int(y) - int(inside)) <= 1
    assert list(marks.x) == [pytest.approx(NORMS[3])] and marks.customdata[0][0] == "t3"


def test_the_chosen_one_has_a_line_and_its_name_is_no_markup():
    fig = length_spread(NORMS, NAMES, marked=[], chosen=500, color=viz.MASKED)
    line = fig.layout.shapes[0]
    assert line.x0 == line.x1 == 5.0 and line.line.color == viz.MASKED
    assert fig.layout.annotations[0].text == "&lt;b&gt;"
    assert fig.layout.xaxis.title.text and fig.layout.yaxis.title.text
    assert "501" in viz.alt_text(fig) and "from 1.00 to 5.00" in viz.alt_text(fig)


def test_vectors_of_one_length_are_one_bar():
    bars = length_spread(np.ones(7), ["a"] * 7, chosen=0).data[0]
    assert sum(bars.y) == 7 and max(bars.y) == 7
