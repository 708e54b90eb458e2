"""The map of token vectors: every token once, fixed axes, readable names."""

import numpy as np
import pytest

import viz
from viz.names import name_sides


def rows(n, c, seed=0):
    return np.random.default_rng(seed).normal(size=(n, c)).astype(np.float32)


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
