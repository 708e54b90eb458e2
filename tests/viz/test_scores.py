"""Logits, log-probabilities, KL and surprisal along a text: the numbers given, with their units."""

import math

import numpy as np
import pytest

import viz
from viz.along import block_means, kl_bars, surprisal_by_block
from viz.scores import score_bars

LABELS = ["the", "·cat", "the", "$x$ <b>"]


def test_score_bars_draw_the_values_and_count_what_is_left_out():
    fig = score_bars(
        LABELS, [2.5, 1.0, -0.5, -3.0], title="logit", n_left=1020, true_index=3, true_note="came, rank 9"
    )
    assert fig.data[0].x == pytest.approx([2.5, 1.0, -0.5, -3.0])
    assert list(fig.data[0].y) == [0, 1, 2, 3]
    assert fig.layout.xaxis.title.text == "logit<br>(1,020 more tokens are not drawn)"
    assert "came, rank 9" in fig.data[0].text[3] and "came" not in "".join(fig.data[0].text[:3])
    low, high = fig.layout.xaxis.range
    assert low < -3.0 and high > 2.5
    assert fig.layout.yaxis.ticktext[3] == "&#36;x&#36; &lt;b&gt;"
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]
    assert "the" in viz.alt_text(fig)


def test_score_bars_say_never_where_the_truth_has_no_logarithm():
    fig = score_bars(
        LABELS[:2], [-1.0, -2.0], title="log-probability (nats)", n_left=0, second=[-0.5, -math.inf]
    )
    assert fig.data[1].x[0] == -0.5 and np.isnan(fig.data[1].x[1])  # no bar, and no number in the table
    never = fig.data[2]
    assert list(never.text) == ["−∞ (never)"] and never.x == pytest.approx([0])
    assert never.textposition == "middle left"  # on the side where the bars are: on the other is no room
    assert 1 < never.y[0] < 1.5 and not never.showlegend  # beside the second bar of row 1
    assert fig.layout.xaxis.range[1] < 0.1
    assert fig.layout.xaxis.title.text == "log-probability (nats)"
    assert fig.data[1].marker.pattern.shape == "/"


def test_kl_bars_leave_gaps_where_nothing_is_true():
    fig = kl_bars(["a", "b", "a"], [0.5, np.nan, 0.25], unit="bits", selected=2)
    assert fig.data[0].y[[0, 2]] == pytest.approx([0.5, 0.25]) and np.isnan(fig.data[0].y[1])
    assert list(fig.data[0].x) == [0, 1, 2]
    assert "bits" in fig.layout.yaxis.title.text and "position" in fig.layout.xaxis.title.text
    assert list(fig.data[0].marker.line.width) == [0, 0, 2]
    assert "Largest: 0.500 after a at position 0" in viz.alt_text(fig)
    assert "0 tokens" in viz.alt_text(kl_bars(["a"], [np.nan]))


@pytest.mark.parametrize("n", [1, 5, 199, 200, 201, 1000, 28_845])
def test_block_means_keep_the_mean_of_all(n):
    values = np.random.default_rng(n).exponential(size=n)
    begins, means, size = block_means(values)
    assert len(begins) <= 200 and begins[0] == 0
    counts = np.diff([*begins, n])
    assert max(counts) == size and counts.sum() == n
    assert np.average(means, weights=counts) == pytest.approx(values.mean())
    assert means[-1] == pytest.approx(values[begins[-1] :].mean())


def test_surprisal_by_block_names_unit_and_size():
    fig = surprisal_by_block(np.arange(1000.0), unit="bits")
    assert "bits" in fig.layout.yaxis.title.text and "mean of 5 tokens" in fig.layout.xaxis.title.text
    assert fig.data[0].y[0] == pytest.approx(2.0) and "tokens 1 to 5" in fig.data[0].customdata[0]
    few = surprisal_by_block([1.0, 3.0])
    assert few.data[0].y == pytest.approx([1, 3]) and "mean of" not in few.layout.xaxis.title.text
    assert list(few.data[0].x) == [1, 2]
