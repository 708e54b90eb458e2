"""Pictures of token vectors: the numbers drawn, their places, their axes."""

import math

import numpy as np
import pytest

import viz
from viz.embeddings import name_sides


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


def test_cosine_bars_keep_equal_names_apart_and_leave_a_gap():
    fig = viz.cosine_bars(["a", "a", "<i>"], [0.9, 0.5, 0.25], ["z"], [-0.4], chosen=3)
    bar = fig.data[0]
    np.testing.assert_allclose(bar.x, [0.9, 0.5, 0.25, -0.4], atol=1e-7)
    assert list(bar.y) == [0, 1, 2, 4]
    assert list(fig.layout.yaxis.ticktext) == ["a", "a", "&lt;i&gt;", "z", "⋮"]
    assert list(fig.layout.yaxis.tickvals) == [0, 1, 2, 4, 3]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # the most alike on top
    assert bar.marker.color[3] != bar.marker.color[0]
    assert fig.layout.xaxis.range[0] < -0.4 and fig.layout.xaxis.range[1] > 0.9
    assert list(bar.text) == ["0.900", "0.500", "0.250", "−0.400"]


def test_cosine_bars_without_opposites():
    fig = viz.cosine_bars(["a"], [0.5], [], [])
    assert list(fig.layout.yaxis.ticktext) == ["a"]


@pytest.mark.parametrize("k", [2, 3])
def test_the_map_draws_every_token_once_on_fixed_axes(k):
    points, trail = rows(30, k), rows(5, k, seed=1)
    ends = np.array([[-4.0, 4.0]] * k)
    fig = viz.token_map(
        points, [f"t{i}" for i in range(30)], limits=ends, shares=np.array([0.123, 0.05, 0.01][:k]),
        labelled=[4, 7, 9], chosen=7, trail=trail, at=2, fitted="10",
    )  # fmt: skip
    groups = {trace.name: trace for trace in fig.data}
    drawn = np.concatenate(
        [
            np.stack([groups[name][axis] for axis in "xyz"[:k]], axis=-1)
            for name in ("tokens", "named", "chosen")
        ]
    )
    order = [i for i in range(30) if i not in (4, 7, 9)] + [4, 9, 7]
    np.testing.assert_allclose(drawn, points[order], atol=1e-6)
    np.testing.assert_allclose(groups["way so far"].x, trail[:3, 0], atol=1e-7)
    np.testing.assert_allclose(groups["way to come"].y, trail[2:, 1], atol=1e-7)
    assert groups["way so far"].line.dash != groups["way to come"].line.dash
    assert list(groups["chosen"].customdata) == ["t7"]
    layout = fig.layout if k == 2 else fig.layout.scene
    assert list(layout.xaxis.range) == [-4, 4] and list(layout.yaxis.range) == [-4, 4]
    titles = [layout[axis].title.text for axis in ("xaxis", "yaxis", "zaxis")[:k]]
    if k == 2:
        assert titles == [
            f"PC {i}, {share} of the variance at step 10" for i, share in ((1, "12 %"), (2, "5.0 %"))
        ]
    else:  # short ones, as a scene cuts long ones
        assert titles == ["PC 1 (12 %)", "PC 2 (5.0 %)", "PC 3 (1.0 %)"]
    assert not any("gl" in trace.type for trace in fig.data)


def test_the_axes_of_the_map_do_not_depend_on_the_step():
    points = np.stack([rows(10, 2), 3 * rows(10, 2, seed=2)])
    ends = [[-9, 9], [-9, 9]]
    figures = [
        viz.token_map(
            points[s], list("abcdefghij"), limits=ends, shares=[0.5, 0.2], chosen=0, trail=points[:, 0], at=s
        )
        for s in (0, 1)
    ]
    assert figures[0].layout.xaxis == figures[1].layout.xaxis
    assert figures[0].layout.yaxis == figures[1].layout.yaxis
    assert not np.allclose(figures[0].data[0].x, figures[1].data[0].x)


def test_a_long_axis_stays_in_the_view():
    fig = viz.token_map(
        rows(4, 3), list("abcd"), limits=[[-20, 20], [-3, 3], [-2, 2]], shares=[0.5, 0.2, 0.1]
    )
    ratio = fig.layout.scene.aspectratio
    assert (ratio.x, ratio.y, ratio.z) == pytest.approx((1, 0.15, 0.1))  # one scale, the longest is 1


def test_the_chosen_token_does_not_hide_what_lies_under_it():
    for k in (2, 3):
        fig = viz.token_map(
            rows(4, k), list("abcd"), limits=[[-3, 3]] * k, shares=[0.5, 0.2, 0.1][:k], chosen=1
        )
        assert next(part for part in fig.data if part.name == "chosen").marker.symbol == "diamond-open"
    fig = viz.norm_scatter([5, 3], [1.0, 2.0], ["a", "b"], chosen=0)
    assert {part.marker.symbol for part in fig.data if part.name == "chosen"} == {"diamond-open"}


def test_no_name_is_written_on_another_point():
    points = [(0, 0, 0, "She"), (1, 0, 16, "Lily")]  # the second point lies where the first one's name was
    assert name_sides(points)[0] != "top center" and name_sides([points[0]])[0] == "top center"


def test_the_chosen_name_is_written_also_in_a_crowd():
    crowd = [(0, 0, 0, "She"), *((i, 12 * (i % 3 - 1), 12 * (i // 3 - 1), "word") for i in range(9))]
    assert 0 in name_sides(crowd)


def test_frames_are_no_text_colour():
    lit = viz.lookup_picture(
        [1, 2], ["a", "b"], rows(2, 4), token_id=2, vocab_size=9, dim=0, color=viz.MASKED
    )
    assert lit.layout.shapes[0].line.color == viz.MASKED  # white on pale cells could not be seen


def test_markup_in_a_name_stays_text_on_the_map():
    fig = viz.token_map(
        rows(2, 2), ["<b>", "$x$"], limits=[[-3, 3]] * 2, shares=[1, 0], chosen=0, labelled=[1]
    )
    texts = [text for trace in fig.data for text in (trace.text or ())]
    assert sorted(texts) == ["&#36;x&#36;", "&lt;b&gt;"]


def test_names_that_would_meet_are_moved_or_left_out():
    sides = name_sides([(0, 0, 0, "cat"), (1, 2, 0, "dog"), (2, 500, 0, "far")])
    assert sides == {0: "top center", 1: "bottom center", 2: "top center"}
    crowd = name_sides([(i, 0, 0, "word") for i in range(9)])
    assert len(crowd) == 4 and len(set(crowd.values())) == 4


def test_lengths_by_frequency_keep_the_unseen_apart():
    counts, lengths = np.array([1000, 0, 10, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    fig = viz.norm_scatter(counts, lengths, list("abcde"), labelled=[2, 4], chosen=0)
    never = [trace for trace in fig.data if trace.xaxis in (None, "x")]
    seen = [trace for trace in fig.data if trace.xaxis == "x2"]
    assert sorted(y for trace in never for y in trace.y) == [2, 5]
    points = [point for trace in seen for point in zip(trace.x, trace.y, strict=True)]
    assert sorted(points) == [(1, 4), (10, 3), (1000, 1)]
    assert fig.layout.xaxis2.type == "log" and list(fig.layout.xaxis2.ticktext) == ["1", "10", "100", "1,000"]
    assert fig.layout.xaxis.ticktext == ("never",)
    assert fig.layout.yaxis.title.text and fig.layout.xaxis2.title.text
    chosen = next(trace for trace in seen if trace.name == "chosen")
    assert list(chosen.text) == ["a"] and chosen.customdata[0][1] == "1,000"


def test_a_text_in_which_nothing_occurs():
    fig = viz.norm_scatter([0, 0], [1.0, 2.0], ["a", "b"])
    assert sum(len(trace.y) for trace in fig.data) == 2
