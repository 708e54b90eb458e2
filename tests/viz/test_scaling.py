"""The picture of a law: runs, curve, band, the floor, and the run that was foretold."""

import numpy as np
import pytest

from viz import alt_text
from viz.scaling import Foretold, LawLines, law_figure
from viz.tables import table_of

SIZES, LOSSES = [1e4, 1e5, 1e6], [3.0, 1.0, 0.5]
LAW = LawLines([1e4, 1e5, 1e7], [3.0, 1.0, 0.4], [2.8, 0.9, 0.2], [3.2, 1.1, 0.6], 0.3)


def test_runs_law_band_and_what_came_are_where_they_were_measured() -> None:
    fig = law_figure(
        SIZES, LOSSES, ["a", "b", "c"], LAW, x_title="weights", floor=0.25,
        foretold=Foretold(5e6, 0.3, 0.7, came=0.45),
    )  # fmt: skip
    named = {trace.name: trace for trace in fig.data}
    assert list(named["runs"].y) == LOSSES and list(named["runs"].customdata) == ["a", "b", "c"]
    assert list(named["the law"].y) == pytest.approx([3.0, 1.0, 0.4])
    assert list(named["foretold"].y) == [0.3, 0.7] and list(named["foretold"].x) == [5e6, 5e6]
    assert list(named["what came"].x) == [5e6] and list(named["what came"].y) == [0.45]
    band = named["where a further run would lie (95 %)"]
    assert list(band.y) == pytest.approx([3.2, 1.1, 0.6, 0.2, 0.9, 2.8])
    assert fig.layout.shapes[0].y0 == 0.25
    assert "0.30 to 0.70" in alt_text(fig) and "0.450" in alt_text(fig)


def test_axes_are_logarithmic_named_and_hold_every_point() -> None:
    fig = law_figure(
        SIZES, LOSSES, ["a", "b", "c"], LAW, x_title="weights", floor=0.25, foretold=Foretold(5e6, 0.3, 0.7)
    )
    x, y = fig.layout.xaxis, fig.layout.yaxis
    assert (x.type, y.type, x.title.text, y.title.text) == ("log", "log", "weights", "loss (nats per token)")
    assert 10 ** x.range[0] < 1e4 and 10 ** x.range[1] > 1e7
    assert 10 ** y.range[0] < 0.25 and 10 ** y.range[1] > 3.0
    assert len(x.tickvals) == len(x.ticktext) <= 8


def test_a_very_low_end_of_the_span_does_not_squeeze_the_picture() -> None:
    fig = law_figure(SIZES, LOSSES, ["a"] * 3, None, x_title="weights", foretold=Foretold(5e6, 1e-4, 0.7))
    assert 10 ** fig.layout.yaxis.range[0] > 0.1
    assert np.isfinite(fig.layout.yaxis.range).all()


def test_its_numbers_can_be_taken_away() -> None:
    table = table_of(law_figure(SIZES, LOSSES, ["a", "b", "c"], LAW, x_title="weights", floor=0.25))
    assert {3.0, 1.0, 0.5} <= set(table["loss (nats per token)"])
