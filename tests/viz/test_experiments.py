"""Pictures of the studies: the values drawn, the axes, markup in names."""

import pytest

from viz import alt_text
from viz.experiments import leak_figure, loss_at, two_measures


def test_loss_at_each_setting_marks_the_best_by_shape_and_size() -> None:
    fig = loss_at(["8", "<b>64</b>"], [1.4, 0.9], x_title="context length", floor=0.25, best=1)
    (dots,) = fig.data
    assert list(dots.y) == [1.4, 0.9] and list(dots.text) == ["1.40", "0.900"]
    assert list(dots.marker.symbol) == ["circle", "diamond"]
    assert list(fig.layout.xaxis.ticktext) == ["8", "&lt;b&gt;64&lt;/b&gt;"]
    low, high = fig.layout.yaxis.range
    assert low < 0.25 and high > 1.4 and fig.layout.xaxis.title.text == "context length"
    assert "nats" in fig.layout.yaxis.title.text and "8 1.40" in alt_text(fig)


def test_equal_losses_leave_a_range() -> None:
    names = loss_at(["8 layers of 32", "128 tokens"], [1.0, 1.0], x_title="shape").layout.xaxis
    assert list(names.ticktext) == ["8 layers<br>of 32", "128<br>tokens"] and names.tickangle == 0
    low, high = loss_at(["a", "b"], [1.0, 1.0], x_title="shape").layout.yaxis.range
    assert low < 1.0 < high


def test_the_leak_has_two_lines_told_apart_by_more_than_colour() -> None:
    fig = leak_figure([0, 50, 100], [4.0, 3.0, 1.5], [4.1, 4.1, 4.2], floor=1.3)
    named = {trace.name: trace for trace in fig.data}
    leaked, clean = named["test text that leaked"], named["fresh stories"]
    assert list(leaked.y) == [4.0, 3.0, 1.5] and list(clean.y) == [4.1, 4.1, 4.2]
    assert (
        leaked.textposition[0] == "bottom center" and clean.textposition[0] == "top center"
    )  # 4.0 below 4.1
    assert leaked.line.dash != clean.line.dash and leaked.marker.symbol != clean.marker.symbol
    assert fig.layout.yaxis.title.text == "perplexity" and "%" in fig.layout.xaxis.title.text
    assert fig.layout.shapes[0].y0 == 1.3


def test_two_measures_never_share_an_axis() -> None:
    fig = two_measures(["bytes", "BPE"], [0.58, 0.5], [0.4, 1.2], floors=([0.1, 0.1], [0.07, 0.25]))
    bars = [t for t in fig.data if t.type == "bar"]
    assert [list(t.x) for t in bars] == [[0.58, 0.5], [0.4, 1.2]]
    assert {t.xaxis for t in bars} == {"x", "x2"}
    assert "bits per byte" in fig.layout.xaxis.title.text and "nats per token" in fig.layout.xaxis2.title.text
    floors = [t for t in fig.data if t.type == "scatter"]
    assert [list(t.x) for t in floors] == [[0.1, 0.1], [0.07, 0.25]]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # the first one on top
    assert fig.layout.xaxis.range[1] == pytest.approx(1.25 * 0.58)
