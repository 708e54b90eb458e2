"""Pictures of the worked examples: numbers in their cells, windows where they lie, points on their curves."""

import numpy as np
import pytest

from viz import alt_text
from viz.examples import curve_with_point, number_grid, power_bars, window_map


def test_a_grid_holds_its_numbers_with_nothing_where_none_is() -> None:
    fig = number_grid(
        [[1.0, -2.0], [np.nan, np.inf]], ["a", "a"], ["<b>", "c"], alt="A grid.", row=1, cells=[(0, 1)]
    )
    heat, texts = fig.data
    assert heat.zmin == -heat.zmax == -2 and np.isnan(heat.z[1]).all()
    assert list(zip(texts.x, texts.y, texts.text, strict=True)) == [(0, 0, "1.00"), (1, 0, "−2.00")]
    assert fig.layout.xaxis.ticktext[0] == "&lt;b&gt;" and list(fig.layout.yaxis.ticktext) == ["a", "a"]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # row 0 on top
    assert [(s.x0, s.x1, s.y0, s.y1) for s in fig.layout.shapes] == [
        (-0.5, 1.5, 0.5, 1.5),
        (0.5, 1.5, -0.5, 0.5),
    ]
    assert alt_text(fig) == "A grid."


def test_a_grid_of_noughts_is_drawn() -> None:
    assert number_grid([[0.0]], ["a"], ["b"], alt="").data[0].zmax == 1


def test_windows_lie_where_they_begin() -> None:
    fig = window_map(list("abcdefgh"), [0, 3], 4, last_start=3)
    inputs, last = fig.data
    assert np.array(inputs.base) == pytest.approx([-0.46, 2.54]) and np.array(inputs.x) == pytest.approx(
        [3.92] * 2
    )
    assert np.array(last.base) == pytest.approx([3.54, 6.54]) and np.array(last.x) == pytest.approx(
        [0.92] * 2
    )
    assert fig.layout.shapes[0].x0 == 3.5 and "0, 3" in alt_text(fig)
    assert list(fig.layout.xaxis.ticktext) == list("abcdefgh")


def test_a_curve_has_today_s_point_on_it() -> None:
    fig = curve_with_point(
        [1, 10, 100], [3, 2, 1], (10, 2), x_title="weights", y_title="loss (nats)", point_name="<2>", alt="x",
        log_x=True, log_y=True, level=(0.5, "floor"), second=(100, 1, "yours"),
    )  # fmt: skip
    curve, point, second = fig.data
    assert (point.x[0], point.y[0], point.text[0]) == (10, 2, "&lt;2&gt;") and second.text[0] == "yours"
    assert fig.layout.xaxis.type == fig.layout.yaxis.type == "log"
    assert fig.layout.annotations[0].y == pytest.approx(np.log10(0.5))
    assert fig.layout.yaxis.title.text == "loss (nats)" and list(curve.x) == [1, 10, 100]


def test_powers_are_bars_of_their_exponents() -> None:
    fig = power_bars(["all", "few"], [46.99, 5.7], x_title="powers of ten", alt="x")
    assert list(fig.data[0].x) == [46.99, 5.7] and "47.0" in fig.data[0].text[0]
    assert fig.layout.xaxis.range[0] == 0 and fig.layout.xaxis.range[1] > 46.99
