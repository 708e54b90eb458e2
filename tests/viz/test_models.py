"""Sizes of models side by side, and the parts of one."""

import numpy as np
import pytest

from viz.models import ModelSize, part_bars, size_figure
from viz.theme import CAUSAL, MASKED, alt_text

MODELS = [
    ModelSize("small <b>", 924_416, 3.697664, "clm", True),
    ModelSize("masked", 924_416, 3.697664, "mlm", False),
    ModelSize("large", 134_515_008, 538.060032, "clm", False),
]


def points() -> dict[str, object]:
    fig = size_figure(MODELS, free=8000.0, chosen=2)
    return {trace.name: trace for trace in fig.data if trace.mode == "markers+text"} | {"fig": fig}


def test_each_model_stands_at_its_memory_in_the_colour_of_its_kind() -> None:
    found = points()
    causal, masked = found["causal"], found["masked"]
    assert list(causal.y) == [0, 2] and list(causal.x) == [3.697664, 538.060032]
    assert list(masked.y) == [1] and list(masked.x) == [3.697664]
    assert (causal.marker.color, masked.marker.color) == (CAUSAL, MASKED)
    assert causal.marker.symbol == ("circle", "circle-open")  # full where it is in memory
    assert causal.text[1] == "<b>538 MB ◀</b>" and causal.text[0] == "3.70 MB"


def test_the_legend_tells_colours_by_lines_and_memory_by_points() -> None:
    named = {trace.name: trace.mode for trace in points()["fig"].data if trace.showlegend is not False}
    assert named == {"causal": "lines", "masked": "lines", "in memory": "markers", "not loaded": "markers"}


def test_the_axis_is_logarithmic_and_has_room_for_all() -> None:
    fig = points()["fig"]
    low, high = fig.layout.xaxis.range
    assert fig.layout.xaxis.type == "log" and low <= np.log10(3.697664) and high > np.log10(8000)
    assert "MB" in fig.layout.xaxis.title.text
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # the first one on top
    (line,) = fig.layout.shapes
    assert line.x0 == line.x1 == 8000.0
    notes = [note.text for note in fig.layout.annotations]
    assert "8,000 MB free now" in notes and any("&lt;b&gt;" in note for note in notes)
    assert "large: 538 MB" in alt_text(fig) and "8,000 MB" in alt_text(fig)


def test_without_a_known_memory_there_is_no_end() -> None:
    fig = size_figure(MODELS[:1], free=None)
    assert not fig.layout.shapes and "Free" not in alt_text(fig)


def test_parts_have_their_exact_counts_and_shares() -> None:
    fig = part_bars(["Embedding", "MLP", "Norms"], [28_311_552, 79_626_240, 35_136])
    (bar,) = fig.data
    assert list(bar.x) == [28_311_552, 79_626_240, 35_136]
    total = 28_311_552 + 79_626_240 + 35_136
    assert bar.text[0] == f"28,311,552 · {28_311_552 / total:.1%}" and bar.text[2] == "35,136 · <0.1%"
    assert f"{total:,}" in alt_text(fig) and fig.layout.yaxis.ticktext[0] == "Embedding"


@pytest.mark.parametrize("counts", [[0, 0], [5]])
def test_nothing_is_drawn_as_nothing(counts: list[int]) -> None:
    assert len(part_bars(["a", "b"][: len(counts)], counts).data[0].x) == len(counts)
