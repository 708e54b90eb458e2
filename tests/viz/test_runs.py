"""Runs side by side: their lines, bands and letters; how they stand."""

import itertools
import math

import numpy as np
import pytest

import viz
from tests.viz.test_theme import BLINDNESS, CONFIG, MODES, contrast, lab, linear
from viz.runs import RUN_LOOKS, RunLine, run_curves, spaced
from viz.standings import standing_dots
from viz.tables import table_of

MARKUP = "<b>$x$</b>"


def picture(*lines: RunLine, **more):
    titles = {"x_title": "step", "y_title": "validation loss (nats per token)", "unit": "nats"}
    return run_curves(lines, **{**titles, **more})


def line(values, look=0, **more) -> RunLine:
    return RunLine(
        f"{'ABCDEFGH'[look]} run", np.arange(len(values)), values, look, letter="ABCDEFGH"[look], **more
    )


def letters(fig) -> list[str]:
    return [a.text.split("<b>")[1].removesuffix("</b>") for a in fig.layout.annotations if "<b>" in a.text]


# ---- told apart


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("color", [color for color, _ in RUN_LOOKS])
def test_every_line_stands_out(color, mode):
    assert contrast(color, CONFIG[mode]["backgroundColor"]) >= 3


def test_eight_looks_of_which_no_two_are_alike_and_those_of_one_dash_stay_apart_for_colour_blind_eyes():
    assert len(set(RUN_LOOKS)) == len(RUN_LOOKS) == 8
    for (a, dash), (b, other) in itertools.combinations(RUN_LOOKS, 2):
        if dash != other:
            continue
        for kind in BLINDNESS.values():
            seen = [lab(np.clip(np.array(kind) @ linear(color), 0, 1)) for color in (a, b)]
            assert np.linalg.norm(seen[0] - seen[1]) > 17, (a, b)


def test_each_line_has_its_colour_its_dash_its_name_and_its_letter():
    fig = picture(line([3.0, 2.0]), line([3.0, 1.0], 1))
    assert [(t.line.color, t.line.dash) for t in fig.data] == list(RUN_LOOKS[:2])
    assert [t.name for t in fig.data] == ["A run", "B run"]
    assert letters(fig) == ["B", "A"]  # from below
    low, high = (a.y for a in fig.layout.annotations)
    assert low < high
    assert viz.alt_text(fig).endswith("A run ends at 2.00. B run ends at 1.00.")


def test_letters_of_lines_that_end_together_do_not_cover_each_other():
    fig = picture(*(line([3.0, 2.0 + look / 1e6], look) for look in range(8)))
    heights = sorted(a.y for a in fig.layout.annotations)
    assert letters(fig) == list("ABCDEFGH")
    assert min(np.diff(heights)) * 320 >= 16  # pixels of a plot that is at least so high


def test_a_line_that_ends_early_has_its_letter_there():
    fig = picture(line(np.linspace(3, 1, 11)), line([3.0, 2.5], 1))
    (there,) = [a for a in fig.layout.annotations if a.text == "<b>B</b>"]
    assert (there.x, there.y) == (1, 2.5)
    fig = picture(line(np.linspace(3, 1, 11)), line([3.0, 2.5, 2.25], 1), log_x=True, log_y=True)
    (there,) = [a for a in fig.layout.annotations if a.text == "<b>B</b>"]
    assert (there.x, there.y) == pytest.approx((math.log10(2), math.log10(2.25)))


def test_spaced_keeps_order_distance_and_the_picture():
    for heights in ([0.0] * 8, [1.0] * 8, [0.1, 0.5, 0.51, 0.52, 0.99, 1.0], []):
        found = spaced(heights, 0.1)
        assert len(found) == len(heights)
        assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(found))
        assert all(-1e-9 <= h <= 1 + 1e-9 for h in found)
    assert spaced([0.1, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.5, 0.9])


# ---- axes


def test_titles_and_logarithms():
    fig = picture(line([4.0, 2.0, 1.0]), log_x=True, log_y=True, floor=0.5)
    assert fig.layout.xaxis.title.text == "step"
    assert fig.layout.yaxis.title.text == "validation loss (nats per token)"
    assert fig.layout.xaxis.type == fig.layout.yaxis.type == "log"
    assert fig.data[0].x.tolist() == [1, 2]  # step 0 has no place there
    low, high = fig.layout.yaxis.range
    assert low < math.log10(0.5) and high > math.log10(2)
    assert fig.layout.annotations[0].text == "the floor · 0.500"
    assert fig.layout.annotations[0].y == pytest.approx(math.log10(0.5))


def test_a_close_up_cuts_the_steep_beginning_off_and_keeps_every_point():
    values = [8.0, 4.0, 2.0, 1.5, 1.4]
    fig = picture(line(values), close_up=True)
    assert fig.layout.yaxis.range[1] < 8 and fig.layout.yaxis.range[1] > 4  # from a quarter of the way on
    assert fig.data[0].y.tolist() == pytest.approx(values)
    assert picture(line(values)).layout.yaxis.range[1] > 8


def test_not_finite_is_a_gap_and_stays_out_of_the_axis():
    fig = picture(line([3.0, math.inf, 2.0, math.nan, 1.0]))
    assert np.isnan(fig.data[0].y).tolist() == [False, True, False, True, False]
    assert fig.data[0].connectgaps is False
    assert fig.layout.yaxis.range[1] < 4


def test_nothing_and_a_single_point_are_drawn():
    assert picture().layout.yaxis.range == (0, 1)
    fig = picture(line([2.0]))
    assert "markers" in fig.data[0].mode
    low, high = fig.layout.xaxis.range
    assert low < high


def test_a_long_line_is_thinned_with_its_band_at_the_same_places():
    y = np.random.default_rng(0).normal(size=50_000)
    fig = picture(line(y, low=y - 1, high=y + 1, note="5 seeds"))
    band, middle = fig.data
    assert len(middle.x) <= 800
    assert len(band.x) == 2 * len(middle.x) + 1
    assert middle.y == pytest.approx(y[middle.x.astype(int)], abs=1e-6)


# ---- bands


def test_a_band_is_a_closed_outline_and_its_edges_are_said():
    fig = picture(line([3.0, 2.0], low=[2.5, 1.5], high=[3.5, 2.5], note="4 seeds"))
    band, middle = fig.data
    assert band.fill == "toself" and band.line.width == 0
    assert list(band.x) == [0, 1, 1, 0, None] and list(band.y) == [3.5, 2.5, 1.5, 2.5, None]
    assert middle.customdata[1] == "2 nats<br>4 seeds: lowest 1.5, highest 2.5"
    low, high = fig.layout.yaxis.range
    assert low < 1.5 and high > 3.5


def test_a_gap_parts_a_band():
    fig = picture(
        line([3.0, math.nan, 2.0, 1.0], low=[2.0, math.nan, 1.0, 0.5], high=[4.0, math.nan, 3.0, 2.0])
    )
    assert list(fig.data[0].x) == [0, 0, None, 2, 3, 3, 2, None]


def test_a_band_is_downloaded_with_its_edges():
    table = table_of(picture(line([3.0, 2.0], low=[2.5, 1.5], high=[3.5, 2.5], note="4 seeds")))
    assert len(table) == 2 and "highest 2.5" in table["note"][1]


def test_runs_of_a_group_that_ended_early_are_thin_and_have_no_letter():
    fig = picture(line([3.0, 2.0], faint=True), line([3.0, 2.0, 1.0]))
    assert fig.data[0].line.width < fig.data[1].line.width
    assert letters(fig) == ["A"] and fig.data[0].showlegend is False


def test_names_are_never_markup():
    fig = picture(RunLine(MARKUP, [0, 1], [2.0, 1.0], 0, letter="A", note=MARKUP, low=[1, 1], high=[2, 2]))
    middle = fig.data[1]
    for text in (middle.name, middle.hovertemplate.replace("<br>", "").replace("<extra></extra>", "")):
        assert "<b>" not in text and "$" not in text
    assert "<b>$" not in middle.customdata[0]


# ---- how they stand


def test_the_best_is_on_top_and_every_number_is_written():
    fig = standing_dots(["owls", MARKUP], [0.701, 0.75], unit="bits per byte", floor=0.6, mine=[1])
    dots = fig.data[0]
    assert list(dots.x) == [0.701, 0.75] and list(dots.y) == [0, 1]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # row 0 on top
    assert [text.strip() for text in dots.text] == ["0.701", "0.750"]
    assert list(dots.marker.symbol) == ["circle", "diamond"]
    first, second = fig.layout.yaxis.ticktext
    assert first == "1 owls" and second.endswith("(mine)") and "<b>" not in second
    assert "floor · 0.600" in fig.layout.annotations[0].text
    assert [s.x0 for s in fig.layout.shapes if s.y0 == s.y1 and s.y0 is not None] == [0.6, 0.6]
    assert fig.layout.xaxis.title.text == "bits per byte"
    assert viz.alt_text(fig) == "2 runs by bits per byte. Best: owls with 0.701."


def test_it_can_be_read_from_the_back():
    fig = standing_dots(["owls"] * 3, [1.0, 1.0, 1.0], unit="bits per byte")
    assert fig.layout.yaxis.tickfont.size >= 18 and fig.data[0].textfont.size >= 18
    low, high = fig.layout.xaxis.range
    assert low < 1 < high
    assert fig.layout.xaxis.tickangle == 0 and fig.layout.xaxis.nticks <= 4  # nothing is turned on a phone
    assert standing_dots([], [], unit="bits per byte").data[0].x.tolist() == []


def test_runs_with_the_same_number_share_a_place():
    fig = standing_dots(["owls", "foxes", "hens"], [1.0, 1.0, 2.0], unit="bits per byte", places=[1, 1, 3])
    assert list(fig.layout.yaxis.ticktext) == ["1 owls", "1 foxes", "3 hens"]
    assert fig.data[0].customdata[1].startswith("1. foxes")
