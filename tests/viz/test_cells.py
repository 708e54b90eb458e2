"""Tables of cells: places, scales, marks."""

import numpy as np
import pytest

import viz
from viz import theme
from viz.cells import scale_of
from viz.kept import forget

ROWS = ["0 the", "1 the", "2 <b>"]
COLUMNS = ["embed", "1"]


def drawn(**changes):
    settings = {
        "texts": [["a", "b"], ["$x$", "d"], ["e", "f"]],
        "hover": [["h", "i"], ["<i>", "k\nl"], ["m", "n"]],
        "scale": "probability",
        "unit": "probability",
        "x_title": "block",
        "y_title": "position",
        "alt": "A map.",
    }
    return viz.cell_map(ROWS, COLUMNS, [[0.1, 0.2], [0.3, 0.4], [0.5, np.nan]], **{**settings, **changes})


def test_cells_stand_row_by_row_from_the_top():
    fig = drawn()
    heat = fig.data[0]
    assert heat.z == pytest.approx(np.array([[0.1, 0.2], [0.3, 0.4], [0.5, np.nan]]), nan_ok=True)
    assert heat.z.dtype == np.float32 and (heat.zmin, heat.zmax) == (0, 1)
    assert list(fig.layout.yaxis.range) == [2.5, -0.5]
    assert list(heat.x) == [0, 1] and list(heat.y) == [0, 1, 2]
    assert (fig.layout.xaxis.title.text, fig.layout.yaxis.title.text) == ("block", "position")
    assert viz.alt_text(fig) == "A map."


def test_equal_labels_keep_their_places_and_markup_stays_text():
    fig = drawn()
    assert list(fig.layout.yaxis.tickvals) == [0, 1, 2]
    assert list(fig.layout.yaxis.ticktext) == ["0 the", "1 the", "2 &lt;b&gt;"]
    words = fig.data[1]
    assert "&#36;x&#36;" in words.text and "$x$" not in words.text
    assert fig.data[0].customdata[1][0] == "&lt;i&gt;" and fig.data[0].customdata[1][1] == "k<br>l"


def test_every_cell_can_be_pressed_up_to_a_limit(monkeypatch):
    points = drawn().data[-1]
    assert list(zip(points.x, points.y, strict=True)) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert list(points.customdata) == ["h", "i", "&lt;i&gt;", "k<br>l", "m", "n"]
    assert points.marker.opacity == points.unselected.marker.opacity == 0
    monkeypatch.setattr("viz.cells.MOST_PRESSED", 5)
    forget()
    assert all(t.name != "cells:press" for t in drawn().data)


def test_the_chosen_cell_and_those_that_came_true_are_framed():
    shapes = drawn(chosen=(1, 0), framed=[(2, 1)], color=viz.MASKED).layout.shapes
    boxes = [((s.x0, s.x1, s.y0, s.y1), s.line.color) for s in shapes]
    assert boxes == [
        ((0.5, 1.5, 1.5, 2.5), viz.TRUE),
        ((-0.5, 1.5, 0.5, 1.5), viz.MASKED),
        ((-0.5, 0.5, 0.5, 1.5), viz.MASKED),
    ]
    assert not drawn().layout.shapes


def test_a_column_aside_has_no_colour():
    fig = drawn(aside=("truth", ["x", "<y>", ""]))
    aside = next(t for t in fig.data if t.name == "truth")
    assert list(aside.x) == [2, 2, 2] and list(aside.text) == ["x", "&lt;y&gt;", ""]
    assert list(fig.layout.xaxis.ticktext) == ["embed", "1", "truth"]
    assert fig.data[0].z.shape == (3, 2)


@pytest.mark.parametrize(
    ("kind", "values", "ends"),
    [
        ("probability", [0.2, 0.3], (0, 1)),
        ("signed", [-3.0, 1.0, np.nan], (-3, 3)),
        ("size", [2.0, 8.0], (0, 8)),
        ("signed", [0.0, 0.0], (-1, 1)),
        ("size", [np.nan], (0, 1)),
    ],
)
def test_scales(kind, values, ends):
    scale = scale_of(kind, values)
    assert (scale.low, scale.high) == ends


def test_zero_is_the_middle_of_a_signed_scale():
    scale = scale_of("signed", [-3, 1])
    red, _, blue = theme.rgb(scale.color(0))
    assert abs(red - blue) < 30  # between the pale blue and the pale orange
    assert scale.color(-3) == theme.DIVERGING_COLORS[0] and scale.color(3) == theme.DIVERGING_COLORS[-1]


def test_cell_numbers_share_their_decimals():
    assert viz.cell_numbers([[6.1, -0.06], [0.001, np.nan]]) == [["6.10", "−0.06"], ["0.00", ""]]
    assert viz.cell_numbers([[331.6, 2.04]]) == [["332", "2"]]
    assert viz.cell_numbers([[45.26, -0.4]]) == [["45.3", "−0.4"]]
    assert viz.cell_numbers([[0.0]]) == [["0.00"]]
    assert viz.cell_numbers([[22143.0, -9999.4, 730.4]]) == [["22k", "−9999", "730"]]  # a cell holds 4 digits
    assert viz.cell_numbers([[1.2e-7]]) == [["1×10⁻⁷"]]


def test_numbers_in_cells_are_never_cut():
    values = [[22143.0] * 12]
    fig = viz.cell_map(
        ["a"], [str(n) for n in range(12)], values, texts=viz.cell_numbers(values), hover=[[""] * 12],
        scale="size", unit="u", x_title="x", y_title="y", alt="",
    )  # fmt: skip
    (written,) = [trace for trace in fig.select_traces({"type": "scatter", "mode": "text"})]
    assert set(written.text) == {"22k"}


def test_a_large_map_stays_small():
    fig = viz.cell_map(
        ["512 token"] * 14, [str(n) for n in range(13)], np.zeros((14, 13)),
        texts=[["word"] * 13] * 14, hover=[["some words about this cell"] * 13] * 14,
        scale="size", unit="u", x_title="x", y_title="y", alt="",
    )  # fmt: skip
    assert len(fig.to_json()) < 100_000


@pytest.mark.parametrize("layers", [1, 4, 6, 12])
def test_words_fit_into_their_cells_on_a_telephone(layers):
    """230 pixels for all cells; a letter is 7.2 wide. A number is never cut: it would be another number."""
    fig = viz.cell_map(
        ["a", "b"], ["x"] * layers, np.ones((2, layers)),
        texts=[["·princess"] * layers, ["−1,024"] * layers], hover=[["h"] * layers] * 2,
        scale="probability", unit="u", x_title="x", y_title="y", alt="alt",
        aside=("truth", ["·princess", ""]),
    )  # fmt: skip
    words, aside = (trace.text for trace in fig.data[1:] if trace.mode == "text")
    assert set(words[layers:]) == {"−1,024"}
    for word in (*words[:layers], aside[0]):
        assert word.endswith("…") and (len(word) * 7.2 <= 230 / (layers + 1) or len(word) == 2)


def test_a_map_with_a_width_of_its_own_shows_longer_words():
    def first_word(**more):
        fig = viz.cell_map(
            ["r"], [str(i) for i in range(12)], [[0.5] * 12], texts=[["·princess"] * 12], hover=[[""] * 12],
            scale="probability", unit="p", x_title="x", y_title="y", alt="A.", **more,
        )  # fmt: skip
        return next(t for t in fig.data if t.type == "scatter" and t.mode == "text").text[0]

    assert first_word() == "·…" and first_word(width=760) == "·prin…"
