"""Pictures of masked training: fates by epoch, a loss against its cost, the framed row of a mask."""

import numpy as np
import pytest

import viz
from viz.masking import FATES, fate_color, fate_map, paid_curve

TOKENS = ["the", "<b>", "the"]
ROWS = [["mask", "not scored", "random"], ["not scored", "kept", "not scored"]]


def test_each_cell_says_its_fate_by_colour_and_letter() -> None:
    fig = fate_map(TOKENS, ROWS, ["epoch 1", "epoch 2"], chosen=1)
    heat, cells = fig.data
    assert np.nan_to_num(heat.z, nan=-1).tolist() == [[0, -1, 1], [-1, 2, -1]]
    assert list(zip(cells.x, cells.y, cells.text, strict=True)) == [(0, 0, "M"), (2, 0, "R"), (1, 1, "K")]
    assert heat.customdata[0][1] == "&lt;b&gt;: not scored"
    assert list(fig.layout.xaxis.ticktext) == ["the", "&lt;b&gt;", "the"]  # equal tokens keep their columns
    frame = fig.layout.shapes[0]
    assert (frame.y0, frame.y1) == (0.5, 1.5)
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # the first epoch on top
    assert "epoch 1 2, epoch 2 1" in viz.alt_text(fig)
    assert len({fate_color(fate) for fate in FATES}) == len(FATES)


def test_the_three_colours_are_flat_and_in_the_order_of_the_fates() -> None:
    heat = fate_map(TOKENS, ROWS, ["1", "2"]).data[0]
    for value, fate in enumerate(("mask", "random", "kept")):
        place = (value - heat.zmin) / (heat.zmax - heat.zmin)
        below = [color for edge, color in heat.colorscale if edge <= place]
        above = [color for edge, color in heat.colorscale if edge >= place]
        assert below[-1] == above[0] == fate_color(fate)


def test_a_loss_against_its_cost_has_its_own_axis_and_unit() -> None:
    fig = paid_curve(
        [0, 6144, 100_000], [7.0, 6.0, 0.5], objective="mlm", x_title="targets scored",
        y_title="masked-token loss (nats per hidden token)", span=(1e3, 1e6), floor=0.25,
    )  # fmt: skip
    (line,) = fig.data
    assert list(line.x) == [6144, 100_000]  # 0 can't stand on a logarithmic axis
    assert np.allclose(line.y, [6.0, 0.5])
    assert fig.layout.xaxis.type == "log" and list(fig.layout.xaxis.range) == [3, 6]
    assert list(fig.layout.xaxis.ticktext) == ["1,000", "10,000", "100,000", "1 million"]
    assert fig.layout.yaxis.title.text == "masked-token loss<br>(nats per hidden token)"
    assert line.line.color == viz.objective_color("mlm")
    assert fig.layout.shapes[0].y0 == 0.25
    assert "ending at 0.500 nats" in viz.alt_text(fig)


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_the_row_of_a_gap_is_framed(objective: str) -> None:
    fig = viz.mask_matrix(TOKENS, objective, hidden=[1], query=1)
    frame = fig.layout.shapes[-1]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-0.5, 2.5, 0.5, 1.5)
    assert "Framed is the row of <b>, position 1." in viz.alt_text(fig)
