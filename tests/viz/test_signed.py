"""Bars both ways: signs, numbers, colours."""

import json

import pytest

import viz
from viz import theme


def test_signed_bars_go_both_ways_and_say_their_numbers():
    fig = viz.signed_bars(["a", "a", "c"], [1.5, -0.25, 0.0], unit="logit", alt="Bars.", total=("sum", 1.25))
    bars = fig.data[0]
    assert list(bars.x) == pytest.approx([1.5, -0.25, 0.0, 1.25])
    assert list(bars.text) == ["+1.50", "−0.250", "0", "+1.25"]
    assert list(fig.layout.yaxis.ticktext) == ["a", "a", "c", "sum"] and list(bars.y) == [0, 1, 2, 3]
    low, high = fig.layout.xaxis.range
    assert low < -0.25 and high > 1.5
    orange, blue, _, grey = bars.marker.color
    assert theme.rgb(orange)[0] > theme.rgb(orange)[2] and theme.rgb(blue)[2] > theme.rgb(blue)[0]
    assert grey == viz.NEUTRAL and bars.customdata[1][1] == "-0.25"


def test_small_bars_still_stand_out():
    colors = viz.signed_bars(["a", "b"], [100.0, 0.1], unit="logit", alt="").data[0].marker.color
    assert colors[1] not in (theme.DIVERGING_COLORS[4], theme.DIVERGING_COLORS[5])
    assert theme.rgb(colors[1])[0] > theme.rgb(colors[1])[2] + 60


def test_no_bars():
    json.loads(viz.signed_bars([], [], unit="logit", alt="").to_json())
