"""Filled blanks: the numbers, the ticks at what is right, the intervals."""

import numpy as np
import plotly.graph_objects as go
import pytest

import viz
from viz.fill import fill_grid, gibbs_shares, right_shares

WAYS = ["one\npass", "left to\nright"]
PROBS = [[0.5, 0.25], [1.0, 0.0], [0.1, 0.9]]


def grid() -> go.Figure:
    return fill_grid(
        [3, 7, 8],
        ["·fox", "?", "<b>"],
        WAYS,
        [["·fox", "·fox"], ["·the", "·ambulance"], ["·owl", "<b>"]],
        PROBS,
        [[True, True], [False, False], [False, True]],
    )


def test_the_grid_has_blanks_as_rows_and_ways_as_columns() -> None:
    fig = grid()
    heat = next(trace for trace in fig.data if trace.type == "heatmap")
    np.testing.assert_allclose(heat.z, np.float32(PROBS))
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert list(fig.layout.xaxis.ticktext) == ["one<br>pass", "left to<br>right"]
    assert list(fig.layout.yaxis.ticktext) == ["3 ·fox", "7 ?", "8 &lt;b&gt;"]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1], "the first blank is on top"
    assert fig.layout.yaxis.title.text and "probability" in heat.colorbar.title.text


def test_only_right_cells_are_framed_and_texts_are_escaped() -> None:
    fig = grid()
    texts = next(trace for trace in fig.data if trace.name == "cells")
    there = {(int(y), int(x)): text for x, y, text in zip(texts.x, texts.y, texts.text, strict=True)}
    assert there == {
        (0, 0): "·fox", (0, 1): "·fox", (1, 0): "·the", (1, 1): viz.clip("·ambulance", 7),
        (2, 0): "·owl", (2, 1): "&lt;b&gt;",
    }  # fmt: skip
    framed = {((s.y0 + s.y1) / 2, (s.x0 + s.x1) / 2) for s in fig.layout.shapes}
    assert framed == {(0, 0), (0, 1), (2, 1)}
    assert {s.line.color for s in fig.layout.shapes} == {viz.TRUE}


def test_the_grid_says_in_words_how_many_are_right() -> None:
    alt = viz.alt_text(grid())
    assert "3 blanks" in alt and "one pass 1" in alt and "left to right 2" in alt
    assert "position 8, hidden: &lt;b&gt;" in grid().data[0].customdata[2][0]


def test_the_grid_has_room_for_a_single_blank_and_for_forty() -> None:
    one = fill_grid([0], ["a"], WAYS, [["a", "b"]], [[0.5, 0.5]], [[True, False]])
    many = fill_grid(range(40), ["a"] * 40, ["x"], [["a"]] * 40, [[0.5]] * 40, [[False]] * 40)
    assert one.layout.height >= 200
    assert many.layout.height >= 40 * 30


def test_shares_have_their_intervals_and_the_best_possible_is_a_line() -> None:
    fig = right_shares(
        ["A", "B"],
        ["mlm", "clm"],
        [[0.8, 0.7, 0.9], [0.5, 0.4, 0.65]],
        [[0.6, 0.5, 0.7], [1, 0.8, 1]],
        best=0.9,
    )
    marks = [(t.name, t.x[0], t.error_x.arrayminus[0], t.error_x.array[0]) for t in fig.data]
    expected = [
        ("tokens right", 0.8, 0.1, 0.1), ("tokens right", 0.5, 0.1, 0.15),
        ("whole text possible", 0.6, 0.1, 0.1), ("whole text possible", 1, 0.2, 0),
    ]  # fmt: skip
    for (name, *numbers), (wanted, *values) in zip(marks, expected, strict=True):
        assert name == wanted and numbers == pytest.approx(values)
    assert [t.marker.color for t in fig.data[:2]] == [viz.MASKED, viz.CAUSAL]
    assert {t.marker.symbol for t in fig.data} == {"circle", "square-open"}, "not by colour alone"
    assert [t.showlegend for t in fig.data] == [True, False, True, False]
    assert fig.layout.shapes[0].x0 == 0.9
    assert fig.data[0].y[0] < fig.data[2].y[0] < fig.data[1].y[0], "both marks of a way stand together"
    assert "B 0.500" in viz.alt_text(fig)


def test_without_an_exact_answer_there_is_no_line() -> None:
    fig = right_shares(["A"], ["mlm"], [[0.8, 0.7, 0.9]], [[0.6, 0.5, 0.7]])
    assert not fig.layout.shapes and not fig.layout.annotations


def test_draws_stand_beside_the_exact_shares() -> None:
    fig = gibbs_shares(["·Max", "·Tom"], [0.75, 0.25], 20, exact=[0.5, 0.3])
    assert [list(map(float, t.x)) for t in fig.data] == [
        pytest.approx([0.75, 0.25]),
        pytest.approx([0.5, 0.3]),
    ]
    assert "20 draws" in fig.data[0].name
    assert fig.data[1].marker.pattern.shape == "/"
    assert len(gibbs_shares(["a"], [1.0], 3).data) == 1
