"""The look-up, the sum and the turn, part by part."""

import math

import numpy as np
import pytest

import viz


def rows(n, c, seed=0):
    return np.random.default_rng(seed).normal(size=(n, c)).astype(np.float32)


@pytest.fixture
def lookup():
    values = rows(5, 8)
    fig = viz.lookup_picture(
        [40, 41, 42, 43, 44], ["a", "<b>", "·c", "$d$", "a"], values, token_id=42, vocab_size=300, dim=3
    )
    return fig, values


def test_a_single_cell_of_the_one_hot_strip_is_lit(lookup):
    fig, _ = lookup
    strip = np.asarray(fig.data[0].z)
    assert strip.shape == (1, 300) and strip.sum() == 1 and strip[0, 42] == 1
    assert list(fig.data[1].x) == [42]
    assert "299" in fig.layout.xaxis.title.text


def test_the_row_falls_out_of_the_matrix(lookup):
    fig, values = lookup
    matrix, bars = fig.data[2], fig.data[3]
    np.testing.assert_allclose(matrix.z, values, atol=1e-7)
    np.testing.assert_allclose(bars.y, values[2], atol=1e-7)
    assert list(bars.x) == list(range(8))
    assert matrix.zmin == -matrix.zmax  # 0 is in the middle of the colours
    frame = fig.layout.shapes[0]
    assert (frame.y0, frame.y1) == (1.5, 2.5)
    assert fig.layout.yaxis2.range == (4.5, -0.5)  # the first row on top
    assert fig.layout.yaxis2.ticktext[2] == "<b>42 ·c</b>"
    assert fig.layout.yaxis2.ticktext[1] == "41 &lt;b&gt;"
    assert fig.layout.xaxis3.title.text == "dimension" and fig.layout.yaxis3.title.text == "value"
    assert bars.marker.color[3] != bars.marker.color[2]
    assert viz.format_number(float(values[2, 3])) in viz.alt_text(fig)


def test_the_three_parts_of_the_lookup_do_not_overlap(lookup):
    fig, _ = lookup
    spans = sorted(fig.layout[axis].domain for axis in ("yaxis", "yaxis2", "yaxis3"))
    assert all(a[1] < b[0] for a, b in zip(spans, spans[1:], strict=False))
    assert spans[0][0] == 0 and spans[-1][1] == 1


def test_a_sum_is_drawn_with_its_parts():
    a, b = rows(2, 6)
    fig = viz.sum_picture([("token", a), ("+ position 3", b), ("= sum", a + b)], dim=2)
    z = np.asarray(fig.data[0].z)
    np.testing.assert_allclose(z[0] + z[1], z[2], atol=1e-6)
    assert list(fig.layout.yaxis.ticktext) == ["token", "+ position 3", "= sum"]
    assert fig.layout.yaxis.range == (2.5, -0.5)
    assert (fig.layout.shapes[0].x0, fig.layout.shapes[0].x1) == (1.5, 2.5)


def test_a_table_of_positions_starts_on_top():
    values = rows(20, 6)
    fig = viz.position_table(values, position=4, dim=2, name="P")
    np.testing.assert_allclose(fig.data[0].z, values, atol=1e-7)
    assert fig.layout.yaxis.range == (19.5, -0.5)
    assert fig.layout.xaxis.title.text == "dimension" and fig.layout.yaxis.title.text == "position"
    assert fig.layout.shapes[0].y0 <= 4 - 0.5 and fig.layout.shapes[0].y1 >= 4 + 0.5
    assert viz.format_number(float(values[4, 2])) in viz.alt_text(fig)


def test_a_table_of_zeros_is_no_error():
    fig = viz.position_table(np.zeros((3, 2)), position=0, dim=0, name="P")
    assert fig.data[0].zmax > 0


def test_the_turn_is_drawn_from_before_to_after():
    angle = 2.5
    before = np.array([3.0, 1.0])
    after = np.array([3 * math.cos(angle) - math.sin(angle), 3 * math.sin(angle) + math.cos(angle)])
    fig = viz.rotation_plane(before, after, angle=angle, pair=2)
    arc, old, new = fig.data
    assert (old.x[1], old.y[1]) == pytest.approx(tuple(before))
    assert (new.x[1], new.y[1]) == pytest.approx(tuple(after))
    ends = [math.atan2(arc.y[i], arc.x[i]) for i in (0, -1)]
    assert ends == pytest.approx([math.atan2(1, 3), math.atan2(after[1], after[0])])
    assert fig.layout.xaxis.title.text == "number 4 of q" and fig.layout.yaxis.title.text == "number 5 of q"
    assert fig.layout.yaxis.scaleanchor == "x"  # a circle must look like one
    assert math.hypot(*after) <= fig.layout.xaxis.range[1]


def test_more_than_one_turn_draws_one_circle():
    fig = viz.rotation_plane([1.0, 0.0], [1.0, 0.0], angle=40 * math.pi, pair=0)
    assert (fig.data[0].x[0], fig.data[0].y[0]) == pytest.approx((fig.data[0].x[-1], fig.data[0].y[-1]))
    assert viz.rotation_plane([0.0, 0.0], [0.0, 0.0], angle=1, pair=0).layout.xaxis.range[1] > 0


def test_turn_lengths_are_two_pi_over_the_speed():
    speeds = [1.0, 0.1, 0.01]
    fig = viz.turn_lengths(speeds, pair=1, context_length=64)
    np.testing.assert_allclose(fig.data[0].y, [2 * math.pi / s for s in speeds], rtol=1e-6)
    assert fig.layout.yaxis.type == "log" and fig.layout.shapes[0].y0 == 64
    assert fig.data[0].marker.color[1] != fig.data[0].marker.color[0]
    assert "positions" in fig.layout.yaxis.title.text


def test_frames_are_no_text_colour():
    lit = viz.lookup_picture(
        [1, 2], ["a", "b"], rows(2, 4), token_id=2, vocab_size=9, dim=0, color=viz.MASKED
    )
    assert lit.layout.shapes[0].line.color == viz.MASKED  # white on pale cells could not be seen
