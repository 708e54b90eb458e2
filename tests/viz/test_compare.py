"""Differences of two models: sign, colour, order."""

import numpy as np
import pytest

import viz
from viz.compare import difference_bars, difference_color


def test_differences_are_drawn_with_their_sign_and_zero_in_the_middle():
    fig = difference_bars(["the", "the", "<b>"], [0.5, -2.0, 0.0], unit="bits", selected=1)
    bar = fig.data[0]
    assert bar.y == pytest.approx([0.5, -2.0, 0.0])
    assert (bar.marker.cmin, bar.marker.cmax) == (-2.0, 2.0)
    assert fig.layout.yaxis.range[0] == -fig.layout.yaxis.range[1] and fig.layout.yaxis.range[1] > 2
    assert fig.layout.yaxis.title.text == "A minus B (bits)"
    assert list(bar.marker.line.width) == [0, 2, 0]
    assert list(fig.layout.xaxis.ticktext) == ["the", "the", "&lt;b&gt;"]
    assert "−2.00 at piece 1" in viz.alt_text(fig)
    where = {a.text: a.y for a in fig.layout.annotations}
    assert where["B does better"] > where["A does better"]  # A minus B above 0: A is more surprised


def test_pieces_have_the_numbers_of_their_tokens():
    names = [f"w{i}" for i in range(5)]
    fig = difference_bars(names, [0.5, -2.0, 0.0, 0.1, 0.2], first=3, place="position")
    assert list(fig.data[0].x) == list(fig.layout.xaxis.tickvals) == [3, 4, 5, 6, 7]
    assert fig.data[0].customdata[1].startswith("position 4: w1")
    assert fig.layout.xaxis.title.text == "token (position)" and fig.layout.xaxis.range == (2.4, 7.6)
    assert "−2.00 at position 4" in viz.alt_text(fig)
    many = difference_bars(["x"] * 200, np.ones(200), first=3)
    assert all(
        text == f"{place} x"
        for place, text in zip(many.layout.xaxis.tickvals, many.layout.xaxis.ticktext, strict=True)
    )


def test_many_pieces_are_drawn_as_means():
    y = np.random.default_rng(1).normal(size=1000)
    fig = difference_bars(["x"] * 1000, y)
    assert len(fig.data[0].y) == 200 and fig.data[0].y[0] == pytest.approx(y[:5].mean(), abs=1e-6)
    assert "mean of 5 each" in fig.layout.xaxis.title.text


def test_the_colour_of_no_difference_is_the_middle():
    low, middle, high = (difference_color(x, 2.0) for x in (-2.0, 0.0, 2.0))
    assert (low, high) == ("#1F4FB8", "#A34B05")
    assert middle == difference_color(0.0, 0.0) == difference_color(1.0, 0.0)
    red, green, blue = (int(middle[i : i + 2], 16) for i in (1, 3, 5))
    assert max(red, green, blue) - min(red, green, blue) < 16  # neither blue nor orange
