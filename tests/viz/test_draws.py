"""The line that a random number falls on, and the counts of many draws."""

import math

import numpy as np
import pytest

import viz
from viz.draws import count_bars, draw_line

N = 1000
P = np.array([0.6, 0.25, 0.1, 0.05])
SD = np.sqrt(N * P * (1 - P))
COUNTS = np.array([612, 230, 101, 57])


def figure(**changes):
    given = {"counts": COUNTS, "expected": N * P, "errors": SD, "n": N, "n_tail": 97, **changes}
    return count_bars(
        ["the", "<b>", "$x$"], given.pop("counts"), given.pop("expected"), given.pop("errors"), **given
    )


def test_counts_expected_counts_and_two_standard_deviations() -> None:
    fig = figure()
    came, due = fig.data[0], fig.data[1]
    assert came.x.tolist() == COUNTS.tolist() and came.x.sum() == N
    assert due.x == pytest.approx(N * P)
    assert due.error_x.array == pytest.approx(2 * SD)
    assert due.error_x.array[0] == pytest.approx(2 * math.sqrt(1000 * 0.6 * 0.4))
    assert due.name == "(expected ± 2 standard deviations)"
    assert fig.data[2].text[0] == " 612  (600 ± 31.0)"


def test_whiskers_never_reach_below_no_draw_at_all() -> None:
    p = np.array([0.999, 0.001])
    fig = count_bars(["a"], [999, 1], N * p, np.sqrt(N * p * (1 - p)), n=N, n_tail=5)
    assert fig.data[1].error_x.arrayminus[1] == pytest.approx(1.0)
    assert fig.data[1].error_x.array[1] == pytest.approx(2 * math.sqrt(0.999))


def test_rows_are_places_top_first_literal_and_the_tail_is_counted() -> None:
    fig = figure()
    assert list(fig.layout.yaxis.ticktext) == ["the", "&lt;b&gt;", "&#36;x&#36;", "all other<br>97 tokens"]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]
    assert fig.layout.xaxis.title.text == "how often it came in 1,000 draws"
    assert fig.data[0].marker.color[3] == viz.NEUTRAL and fig.data[0].marker.color[0] == viz.MODEL


def test_the_alt_text_counts_the_outliers() -> None:
    assert "0 lie outside" in viz.alt_text(figure())
    off = COUNTS + np.array([40, -40, 0, 0])
    assert "2 lie outside" in viz.alt_text(figure(counts=off))


def test_a_token_that_was_cut_never_comes() -> None:
    fig = count_bars(["a", "b"], [100, 0], [100, 0], [0, 0], n=100, n_tail=0)
    assert fig.data[2].text[1] == " 0  (never)"
    assert len(fig.data[0].x) == 2


@pytest.mark.parametrize("which", ["counts", "expected"])
def test_what_does_not_add_up_is_refused(which: str) -> None:
    with pytest.raises(ValueError, match="must add up to n = 1000"):
        figure(**{which: COUNTS * 2})


def test_the_line_marks_the_stretch_in_which_the_number_fell() -> None:
    fig = draw_line(["a", "b", "2 rare"], [(0, 0.5), (0.5, 0.9), (0.9, 1)], u=0.7, chosen=1,
                    colors=["red", "blue", None])  # fmt: skip
    assert fig.data[0].marker.line.width == (0.5, 3, 0.5)
    assert fig.data[0].x.sum() == pytest.approx(1)
    assert fig.data[0].marker.pattern.shape == ("", "", "/")
    assert fig.layout.shapes[0].x0 == 0.7
    with pytest.raises(ValueError, match="does not lie between"):
        draw_line(["a", "b"], [(0, 0.5), (0.5, 1)], u=0.7, chosen=0)
