"""A word in two contexts: one line for each model; a map whose groups differ in colour and shape."""

import numpy as np
import pytest

import viz
from viz.contexts import similarity_lines, use_map


def test_each_model_has_a_line_of_its_own_look() -> None:
    fig = similarity_lines({"clm": [1, 1, 1], "mlm": [1, 0.5, -0.25]}, layer=2)
    assert [list(t.y) for t in fig.data] == [[1, 1, 1], [1, 0.5, -0.25]]
    assert [t.name for t in fig.data] == ["causal model", "masked model"]
    assert [t.line.color for t in fig.data] == [viz.CAUSAL, viz.MASKED]
    assert len({t.line.dash for t in fig.data}) == len({t.marker.symbol for t in fig.data}) == 2
    assert list(fig.layout.xaxis.ticktext) == ["embedding", "1", "2"]
    assert fig.layout.xaxis.title.text == "after block" and "cosine" in fig.layout.yaxis.title.text
    assert fig.layout.yaxis.range[0] < -0.25 and fig.layout.yaxis.range[1] > 1
    assert fig.layout.shapes[0].x0 == 2
    assert "masked -0.25" in viz.alt_text(fig).replace("−", "-")


def test_one_model_alone_and_a_cosine_that_is_missing() -> None:
    fig = similarity_lines({"mlm": [np.nan, 0.5]})
    assert len(fig.data) == 1 and fig.data[0].y[1] == 0.5


def test_uses_that_go_on_alike_share_a_look() -> None:
    groups = ["day"] * 4 + [".", "."] + ["night"] + list("uvwx")
    points = np.arange(22, dtype=float).reshape(11, 2)
    said = [f"<{i}>" for i in range(11)]
    fig = use_map(points, groups, said, shares=(0.5, 0.25), chosen=0, near=[4, 6])
    named = {t.name: t for t in fig.data}
    assert list(named) == ["day", ".", "night", "u", "v", "other", "chosen"]
    np.testing.assert_allclose(named["day"].x, points[:4, 0])
    np.testing.assert_allclose(named["other"].y, points[[9, 10], 1])
    assert list(named["."].customdata) == ["&lt;4&gt;", "&lt;5&gt;"]
    looks = [(t.marker.color, t.marker.symbol) for t in fig.data]
    assert len({color for color, _ in looks}) == len({symbol for _, symbol in looks}) == len(looks)
    assert [(s.x1, s.y1) for s in fig.layout.shapes] == [(8, 9), (12, 13)]
    assert "50 %" in fig.layout.xaxis.title.text and "25 %" in fig.layout.yaxis.title.text
    assert "11 uses" in viz.alt_text(fig) and "day" in viz.alt_text(fig)


def test_the_map_without_a_choice_has_no_ring() -> None:
    fig = use_map([[0, 0], [1, 1]], ["a", "b"], ["", ""], shares=(1.0, 0.0))
    assert [t.name for t in fig.data] == ["a", "b"] and not fig.layout.shapes
    assert pytest.approx([1]) == list(fig.data[1].x)
