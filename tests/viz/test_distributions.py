"""Bars and best guesses show the numbers they were given, apart even when labels repeat."""

import numpy as np
import pytest

import viz

LABELS = ["the", "·cat", "the", "$x$ <b>b</b>"]
PROBS = np.array([0.328504, 0.25, 0.2, 0.1], dtype=np.float32)
TAIL = 1 - 0.878504


def bars(**more):
    return viz.distribution_bars(LABELS, PROBS, tail=TAIL, n_tail=508, **more)


def test_bars_and_tail_are_one():
    fig = bars()
    assert fig.data[0].x.dtype == np.float32
    assert fig.data[0].x.sum() == pytest.approx(1, abs=1e-6)
    assert fig.data[0].x[:4] == pytest.approx(PROBS)
    assert fig.layout.yaxis.ticktext[-1] == "all other<br>508 tokens"


def test_bars_that_are_not_one_are_refused():
    with pytest.raises(ValueError, match="add up to 1, but they add up to 0.9785"):
        viz.distribution_bars(LABELS, PROBS, tail=0.1, n_tail=508)


def test_repeated_labels_keep_their_own_bars():
    fig = bars()
    assert list(fig.data[0].y) == [0, 1, 2, 3, 4]
    assert list(fig.layout.yaxis.tickvals) == [0, 1, 2, 3, 4]
    assert fig.layout.yaxis.ticktext[0] == fig.layout.yaxis.ticktext[2] == "the"


def test_first_bar_is_on_top():
    low, high = bars().layout.yaxis.range
    assert low > high


def test_labels_are_literal_in_ticks_and_hover():
    fig = bars()
    literal = "&#36;x&#36; &lt;b&gt;b&lt;/b&gt;"
    assert fig.layout.yaxis.ticktext[3] == literal
    assert fig.data[0].customdata[3][0] == literal
    assert "$" not in fig.data[0].hovertemplate


def test_values_three_digits_on_bars_and_exact_on_hover():
    fig = bars()
    assert fig.data[0].text[0] == "0.329"
    assert float(fig.data[0].customdata[0][1]) == pytest.approx(0.328504, abs=1e-8)


def test_true_token_is_marked_in_words():
    fig = bars(true_index=1)
    assert "came next" in fig.data[0].text[1]
    assert all("came next" not in fig.data[0].text[i] for i in (0, 2, 3, 4))
    assert "·cat" in viz.alt_text(fig)


def test_second_distribution_has_its_own_tail_look_and_name():
    fig = bars(second=[0.4, 0.3, 0.1, 0.1])
    assert [t.name for t in fig.data] == ["model", "true distribution"]
    assert fig.data[1].x[-1] == pytest.approx(0.1, abs=1e-6)
    assert fig.data[1].marker.pattern.shape == "/"
    assert fig.data[1].marker.color == viz.TRUE


@pytest.mark.parametrize("top", [0.9996, 0.95, 1.0])
def test_the_axis_of_probabilities_reaches_the_end_of_a_long_bar(top):
    fig = viz.distribution_bars(["a", "b"], [top, 1 - top], tail=0, n_tail=0)
    assert list(fig.layout.xaxis.tickvals) == [0, 0.5, 1]
    assert fig.layout.xaxis.range[1] > 1


def test_axis_is_named_and_no_tail_bar_without_a_tail():
    fig = viz.distribution_bars(["a", "b"], [0.5, 0.5], tail=0, n_tail=0)
    assert fig.layout.xaxis.title.text == "probability"
    assert len(fig.data[0].x) == 2


def test_position_heatmap():
    tokens = ["the", "·cat", "the"]
    labels = [["a", "<b>"], ["c", "d"], ["e", "f"]]
    probs = np.array([[0.5, 0.25], [0.4, 0.3], [0.9, 0.05]], dtype=np.float32)
    fig = viz.position_heatmap(tokens, labels, probs, true_rank=[2, None, 9])
    heat, words = fig.data
    assert heat.z == pytest.approx(probs)
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert list(fig.layout.yaxis.ticktext) == ["0 the", "1 ·cat", "2 the"]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]
    assert words.text[1] == "&lt;b&gt;"
    assert (words.x[1], words.y[1]) == (1, 0)
    assert "rank 2: &lt;b&gt;" in heat.customdata[0][1]
    assert "came next" in heat.customdata[0][1]
    assert [(s.x0, s.y0) for s in fig.layout.shapes] == [(0.5, -0.5)]
    assert "rank" in fig.layout.xaxis.title.text
    chosen = viz.position_heatmap(tokens, labels, probs, selected=2)
    assert list(chosen.layout.yaxis.ticktext) == ["0 the", "1 ·cat", "<b>2 the</b>"]
    assert [(s.y0, s.y1, s.x1) for s in chosen.layout.shapes] == [(1.5, 2.5, 1.5)]
