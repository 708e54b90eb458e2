"""Curves: gaps, thinning, reference lines, the second scale."""

import math

import numpy as np
import pytest

import viz
from viz.curves import FAINT, REFERENCE_LOOKS, SERIES_LOOKS, round_ticks


def test_thin_keeps_ends_extremes_and_gaps():
    y = np.random.default_rng(0).normal(size=100_000)
    y[31_234], y[77_777], y[500] = 50.0, -50.0, np.nan
    steps, values = viz.thin(np.arange(100_000), y, 400)
    assert len(steps) == len(values) <= 400
    assert (steps[0], steps[-1]) == (0, 99_999)
    assert {31_234, 77_777, 500} <= set(steps.tolist())
    assert (np.nanmax(values), np.nanmin(values)) == (50.0, -50.0)
    assert np.isnan(values[list(steps).index(500)])
    assert (np.diff(steps) > 0).all()
    assert values.dtype == np.float32


def test_thin_leaves_a_short_line_alone():
    steps, values = viz.thin([3, 5, 9], [1.0, np.inf, 2.0], 400)
    assert steps.tolist() == [3, 5, 9]
    assert values.tolist() == [1.0, np.inf, 2.0]
    assert len(viz.thin([], [], 400)[0]) == 0


@pytest.mark.parametrize("n", [5, 6, 7, 8, 50, 401])
def test_thin_never_exceeds_its_limit(n):
    y = np.where(np.arange(1000) % 7 == 0, np.nan, np.sin(np.arange(1000)))
    assert len(viz.thin(np.arange(1000), y, n)[0]) <= n


def test_thin_of_nothing_finite():
    assert np.isnan(viz.thin(np.arange(1000), np.full(1000, np.nan), 50)[1]).all()


def test_thin_refuses_too_few_points():
    with pytest.raises(ValueError, match="n is 4"):
        viz.thin(np.arange(10), np.arange(10), 4)


def curve(values, **more):
    line = viz.Series("train loss", np.arange(len(values)), values, "train")
    references = [
        viz.Reference(math.log(512), "start: guessing uniformly", "start"),
        viz.Reference(1.25, "floor: no model can beat this", "floor"),
    ]
    return viz.loss_curve([line], references=references, **more)


def test_not_finite_is_a_gap():
    fig = curve([2.1, math.nan, 2.0, math.inf, 1.9])
    y = fig.data[0].y
    assert np.isnan(y[[1, 3]]).all()
    assert y[[0, 2, 4]] == pytest.approx([2.1, 2.0, 1.9])
    assert fig.data[0].connectgaps is False


def test_units_and_reference_lines_are_named():
    fig = curve([6.0, 3.0, 1.5])
    assert fig.layout.xaxis.title.text == "step"
    assert fig.layout.yaxis.title.text == "loss (nats per token)"
    assert [a.text for a in fig.layout.annotations] == [
        "start: guessing uniformly · 6.24",
        "floor: no model can beat this · 1.25",
    ]
    assert [s.y0 for s in fig.layout.shapes] == pytest.approx([math.log(512), 1.25])
    low, high = fig.layout.yaxis.range
    assert low < 1.25 < math.log(512) < high


def test_lines_are_told_apart_without_their_colour():
    counted = [REFERENCE_LOOKS[role][1] for role in ("start", "unigram", "bigram", "trigram")]
    assert len(set(counted)) == 4
    looks = {
        role: (*SERIES_LOOKS[role][1:], FAINT.get(role, 1.0)) for role in ("raw", "smooth", "valid", "other")
    }
    assert len(set(looks.values())) == 4 and looks["raw"][-1] < 1


def test_right_scale_is_the_exponential_of_the_left():
    axis = curve([6.0, 3.0, 1.5]).layout.yaxis2
    assert axis.matches == "y"
    assert axis.title.text == "perplexity = exp(loss)"
    shown = [float(t.replace(",", "")) for t in axis.ticktext]
    assert np.exp(axis.tickvals) == pytest.approx(shown)
    assert len(shown) >= 4


def test_masked_perplexity_has_its_own_name():
    fig = curve([6.0, 3.0], objective="mlm")
    assert fig.layout.yaxis2.title.text.startswith("masked-token perplexity")
    assert "masked-token perplexity" in fig.data[0].hovertemplate


def test_logarithmic_axes_have_readable_ticks_and_no_step_0():
    fig = curve(np.linspace(6, 1.5, 500), log_x=True, log_y=True)
    assert fig.layout.xaxis.type == fig.layout.yaxis.type == "log"
    assert list(fig.layout.xaxis.ticktext) == ["1", "2", "5", "10", "20", "50", "100", "200"]
    assert fig.data[0].x[0] == 1
    assert fig.layout.annotations[1].y == pytest.approx(math.log10(1.25))


def test_a_curve_without_points_is_drawn_empty():
    fig = viz.loss_curve([viz.Series("train loss", [], [], "train")])
    assert len(fig.data[0].x) == 0


def test_a_long_curve_is_thinned():
    assert len(curve(np.random.default_rng(0).normal(size=100_000) + 3).data[0].x) <= 2000


def test_round_ticks():
    assert round_ticks(1, 500) == [1, 2, 5, 10, 20, 50, 100, 200, 500]
    assert round_ticks(3.9, 4.6) == [4]
    assert round_ticks(1, 1e5)[:2] == [1, 10]


TOKENS = ["the", "·cat", "the", "<b>"]


def test_surprisal_bars():
    fig = viz.surprisal_bars(TOKENS, [math.nan, 1.5, 0.25, 4.0], unit="bits", mean=1.9167)
    bars = fig.data[0]
    assert np.isnan(bars.y[0])
    assert bars.y[1:] == pytest.approx([1.5, 0.25, 4.0])
    assert fig.layout.yaxis.title.text == "surprisal (bits)"
    assert list(fig.layout.xaxis.ticktext) == ["the", "·cat", "the", "&lt;b&gt;"]
    assert list(bars.text) == ["", "1.50", "0.250", "4.00"]
    assert fig.layout.annotations[0].text == "mean<br>1.92"
    assert "position 3" in viz.alt_text(fig)
    assert "not scored" in bars.customdata[0]


def test_surprisal_beside_the_true_distribution():
    fig = viz.surprisal_bars(TOKENS, [math.nan, 1, 2, 3], second=[math.nan, 0.5, 1, 2])
    assert fig.data[1].name == "true distribution"
    assert fig.data[1].marker.color == viz.TRUE
    assert fig.data[0].marker.color == viz.MODEL  # the legend has one colour
    assert fig.layout.yaxis.title.text == "surprisal (nats)"


def test_no_number_lies_under_the_mark_of_the_true_distribution():
    bars, marks = viz.surprisal_bars(
        TOKENS, [math.nan, 1.0, 2.0, 3.0], second=[math.nan, 1.1, 0.5, 9.0], selected=2
    ).data
    assert list(bars.text) == ["", "", "2.00", "3.00"]
    assert list(marks.text) == ["", "1.00", "", ""] and marks.textposition == "top center"
    assert list(bars.marker.line.width) == [0, 0, 2, 0]


def test_a_mark_above_all_bars_is_inside_the_picture():
    fig = viz.surprisal_bars(TOKENS, [math.nan, 1.0, 2.0, 3.0], second=[math.nan, 1.0, 9.0, 3.0])
    assert fig.layout.yaxis.range[1] > 9


def test_surprisal_of_one_token_is_an_empty_picture():
    fig = viz.surprisal_bars(["a"], [math.nan])
    assert viz.alt_text(fig) == "Surprisal of 1 tokens in nats."


def test_running_perplexity():
    fig = viz.running_perplexity(TOKENS, [math.nan, 8.0, 4.0, 5.0], floor=3.2)
    assert fig.layout.yaxis.type == "log"
    assert fig.layout.yaxis.title.text == "running perplexity (log scale)"
    assert fig.data[0].line.color == viz.CAUSAL
    assert fig.layout.annotations[0].text == "floor · 3.20"
    assert fig.layout.annotations[0].y == pytest.approx(math.log10(3.2))
    low, high = (10**v for v in fig.layout.yaxis.range)
    assert low < 3.2 < 8 < high
    assert viz.running_perplexity(TOKENS, [math.nan] * 4, objective="mlm").data[0].line.color == viz.MASKED


@pytest.mark.parametrize(
    "fig",
    [
        viz.surprisal_bars(TOKENS, [math.nan, 1, 2, 3]),
        viz.running_perplexity(TOKENS, [math.nan, 8.0, 4.0, 5.0]),
        curve([2.0, 1.0]),
        viz.attention_map(TOKENS, np.eye(4), objective="mlm"),
        viz.mask_matrix(TOKENS, "clm"),
        viz.distribution_bars(["a"], [1.0], tail=0, n_tail=0),
        viz.position_heatmap(["a"], [["b"]], [[1.0]]),
    ],
)
def test_every_figure_speaks_and_is_readable(fig):
    assert viz.alt_text(fig).endswith((".", "…"))
    for axis in [*fig.select_xaxes(), *fig.select_yaxes()]:
        assert axis.tickfont.size >= 12
        assert axis.automargin is True
    assert fig.layout.paper_bgcolor == "rgba(0,0,0,0)"
    for trace in fig.data:
        if getattr(trace, "textfont", None) and trace.textfont.size:
            assert trace.textfont.size >= 12
