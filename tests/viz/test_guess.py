"""Pictures of a round of guessing."""

import numpy as np

from viz.guess import running_lines, total_bars

KINDS = ["truth", "you", "uniform"]
NAMES = ["the truth", "<b>you</b>", "uniform"]


def test_totals_are_bars_from_the_best_down_with_units() -> None:
    fig = total_bars(KINDS, NAMES, [3.5, 10.25, 100.0])
    bars = fig.data[0]
    assert list(bars.x) == [3.5, 10.25, 100.0] and list(bars.y) == [0, 1, 2]
    assert list(bars.text) == ["3.50", "10.3", "100"] or list(bars.text) == ["3.50", "10.2", "100"]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # first on top
    assert fig.layout.yaxis.ticktext[1] == "&lt;b&gt;you&lt;/b&gt;"
    assert "bits" in fig.layout.xaxis.title.text and "the truth 3.50" in fig.layout.meta["alt"]
    assert len(set(bars.marker.color)) == 3 and bars.marker.pattern.shape[1] == "/"  # not by colour alone


def test_lines_add_up_token_by_token_and_repeated_tokens_stay_apart() -> None:
    fig = running_lines(KINDS, NAMES, [[1, 2, 3], [4, 5, 6], [7, 7, 7]], ["·a", "·a", "<i>"])
    assert [list(np.asarray(line.y)) for line in fig.data] == [[1, 3, 6], [4, 9, 15], [7, 14, 21]]
    assert list(fig.data[0].x) == [1, 2, 3]
    assert list(fig.layout.xaxis.ticktext) == ["·a", "·a", "&lt;i&gt;"]
    assert len({(line.line.dash, line.marker.symbol) for line in fig.data}) == 3
