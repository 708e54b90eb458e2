"""Bars of cosines: places, names, ends."""

import numpy as np

import viz


def test_cosine_bars_keep_equal_names_apart_and_leave_a_gap():
    fig = viz.cosine_bars(["a", "a", "<i>"], [0.9, 0.5, 0.25], ["z"], [-0.4], chosen=3)
    bar = fig.data[0]
    np.testing.assert_allclose(bar.x, [0.9, 0.5, 0.25, -0.4], atol=1e-7)
    assert list(bar.y) == [0, 1, 2, 4]
    assert list(fig.layout.yaxis.ticktext) == ["a", "a", "&lt;i&gt;", "z", "⋮"]
    assert list(fig.layout.yaxis.tickvals) == [0, 1, 2, 4, 3]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # the most alike on top
    assert bar.marker.color[3] != bar.marker.color[0]
    assert fig.layout.xaxis.range[0] < -0.4 and fig.layout.xaxis.range[1] > 0.9
    assert list(bar.text) == ["0.900", "0.500", "0.250", "−0.400"]


def test_cosine_bars_without_opposites():
    fig = viz.cosine_bars(["a"], [0.5], [], [])
    assert list(fig.layout.yaxis.ticktext) == ["a"]
