"""Bars of the parts of a model."""

import math

import numpy as np

from viz import alt_text
from viz.one_step import part_bars

NAMES = ["token vectors", "layer 1 <b>", "final norm"]


def test_a_bar_for_each_part_with_its_number() -> None:
    fig = part_bars(NAMES, [0.5, 2.0, 0.0], title="length")
    (bars,) = fig.data
    assert list(bars.x) == [0.5, 2.0, 0.0] and list(bars.text) == ["0.500", "2.00", "0"]
    assert list(fig.layout.yaxis.ticktext)[1] == "layer 1 &lt;b&gt;"
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # the first on top
    assert fig.layout.xaxis.title.text == "length" and "Largest: layer 1 <b>, 2.00" in alt_text(fig)


def test_on_a_log_axis_nothing_has_no_bar() -> None:
    fig = part_bars(NAMES, [0.01, 10.0, 0.0], title="update, %", log_x=True)
    assert fig.layout.xaxis.type == "log"
    assert np.isnan(fig.data[0].x[2]) and fig.data[0].text[2] == "0"
    low, high = fig.layout.xaxis.range
    assert low < math.log10(0.01) and high > math.log10(10)
    assert all(10**low <= tick <= 10**high for tick in fig.layout.xaxis.tickvals)
    assert part_bars(NAMES, [0.0, 0.0, 0.0], title="update", log_x=True).data  # all 0 is no error
