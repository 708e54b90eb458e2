"""Figures of what texts cost in tokens: look at their numbers, labels and orientation."""

import numpy as np
import pytest

import viz
from viz.theme import DIVERGING_COLORS, MODEL, NEUTRAL, ink_on, sample_scale
from viz.tokens import language_map, vocabulary_bars

NAMES = ["bytes", "<b>$x$</b>", "gpt2"]


def test_bars_stand_in_order_with_their_numbers():
    fig = vocabulary_bars(NAMES, [1200, 300, 299], unit="tokens", chosen=1, whole=True)
    (bars,) = fig.data
    assert list(bars.x) == [1200, 300, 299] and list(bars.y) == [0, 1, 2]
    assert list(bars.text) == ["1,200", "<b>300 ◀</b>", "299"]
    assert list(bars.marker.color) == [NEUTRAL, MODEL, NEUTRAL]
    assert list(fig.layout.yaxis.ticktext) == ["bytes", "&lt;b&gt;&#36;x&#36;&lt;/b&gt;", "gpt2"]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # the first on top
    assert fig.layout.xaxis.title.text == "tokens" and fig.layout.xaxis.range[1] > 1200
    assert "bytes: 1,200" in viz.alt_text(fig)


def test_nothing_chosen_paints_all_alike():
    assert set(vocabulary_bars(NAMES, [1, 2, 3], unit="tokens").data[0].marker.color) == {MODEL}


def test_a_number_that_does_not_exist_is_said():
    (bars,) = vocabulary_bars(NAMES, [None, None, None], unit="tokens per word").data
    assert list(bars.text) == ["none"] * 3 and list(bars.x) == [0] * 3


COUNTS = np.array([[20, 10], [40, 5], [160, 10]])
LANGUAGES = ["English", "Greek", "Thai"]


def test_the_map_shows_doublings_against_the_reference():
    fig = language_map(LANGUAGES, ["a: b", "gpt2"], COUNTS, chosen=(2, 0))
    heat, cells = fig.data
    assert heat.z.tolist() == [[0, 0], [1, -1], [3, 0]]
    assert (heat.zmin, heat.zmax) == (-3, 3)  # as many is the middle of the scale
    assert list(cells.text) == ["1.0", "1.0", "2.0", "0.50", "8.0", "1.0"]
    assert list(zip(cells.x, cells.y, strict=True))[:3] == [(0, 0), (1, 0), (0, 1)]
    assert list(fig.layout.yaxis.ticktext) == LANGUAGES
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]
    assert list(fig.layout.xaxis.ticktext) == ["a:<br>b", "gpt2"]
    assert "160 tokens, English has 20" in heat.customdata[2][0] and "8.000 times" in heat.customdata[2][0]
    (frame,) = fig.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-0.5, 0.5, 1.5, 2.5)
    assert list(heat.colorbar.ticktext) == ["0.125×", "0.25×", "0.5×", "1×", "2×", "4×", "8×"]
    assert "Highest: Thai in a: b, 8.0 times" in viz.alt_text(fig)
    assert fig.layout.xaxis.title.text == "vocabulary" and fig.layout.yaxis.title.text == "language"


def test_another_reference_is_one_everywhere():
    heat = language_map(LANGUAGES, ["x", "y"], COUNTS, reference=1).data[0]
    assert heat.z[1].tolist() == [0, 0] and heat.z[0].tolist() == [-1, 1]


def test_the_smallest_difference_does_not_fill_the_scale():
    heat = language_map(["English", "German"], ["x"], [[100], [101]]).data[0]
    assert heat.zmax == 1


@pytest.mark.parametrize("share", np.linspace(0, 1, 51))
def test_numbers_can_be_read_on_every_cell(share):
    from tests.viz.test_theme import contrast

    color = sample_scale(DIVERGING_COLORS, float(share))
    assert contrast(ink_on(color), color) >= 4.5
