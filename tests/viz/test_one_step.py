"""Bars of the parts of a model."""

from viz import alt_text
from viz.one_step import part_bars

NAMES = ["token vectors", "layer 1 <b>", "final norm"]


def test_a_bar_for_each_part_with_its_number() -> None:
    fig = part_bars(NAMES, [0.5, 2.0, 0.0], title="length")
    (bars,) = fig.data
    assert list(bars.x) == [0.5, 2.0, 0.0] and list(bars.text) == ["0.500", "2.00", "0"]
    assert list(fig.layout.yaxis.ticktext)[1] == "layer 1 &lt;b&gt;"
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # the first on top
    assert fig.layout.xaxis.title.text == "length" and "Largest: layer 1 <b>, 2.00" in alt_text(fig)


def test_bars_begin_at_zero_so_that_their_lengths_compare() -> None:
    fig = part_bars(NAMES, [0.01, 10.0, 0.0], title="update, %")
    assert fig.layout.xaxis.type != "log" and fig.layout.xaxis.range[0] == 0 < 10 < fig.layout.xaxis.range[1]
    assert fig.data[0].text[2] == "0"
    assert part_bars(NAMES, [0.0, 0.0, 0.0], title="update").data  # all 0 is no error
