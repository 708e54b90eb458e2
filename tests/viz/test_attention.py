"""Attention maps: direction, orientation, repeated tokens (cases A01, A04, A08)."""

import json

import numpy as np
import pytest

import viz
from viz.theme import probability_color

TOKENS = ["the", "·cat", "·sat", "·on", "the", "·mat", "the"]


def causal(n, seed=0):
    scores = np.random.default_rng(seed).normal(size=(n, n))
    weights = np.exp(np.where(np.tril(np.ones((n, n))) > 0, scores, -np.inf))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


@pytest.fixture
def fig():
    return viz.attention_map(TOKENS, causal(7), objective="clm")


def test_repeated_tokens_keep_their_own_rows_and_columns(fig):
    assert fig.data[0].z.shape == (7, 7)
    for axis in (fig.layout.xaxis, fig.layout.yaxis):
        assert list(axis.tickvals) == list(range(7))
        assert list(axis.ticktext) == TOKENS
    assert list(fig.data[0].x) == list(fig.data[0].y) == list(range(7))


def test_rows_are_queries_from_top_to_bottom(fig):
    assert tuple(fig.layout.yaxis.range) == (6.5, -0.5), "row 0 on top, and no room beyond the cells"
    assert fig.layout.yaxis.title.text == "query (from)"
    assert fig.layout.xaxis.title.text == "key (looks at)"
    assert fig.data[0].z[0, 0] == pytest.approx(1)  # the first token sees only itself
    assert np.nansum(fig.data[0].z, axis=1) == pytest.approx(np.ones(7), abs=1e-5)


def test_cells_are_square_on_a_fixed_scale(fig):
    assert fig.layout.yaxis.scaleanchor == "x"
    assert (fig.data[0].zmin, fig.data[0].zmax) == (0, 1)
    assert fig.data[0].z.dtype == np.float32


def test_what_a_causal_model_cannot_see_is_not_zero(fig):
    upper = np.triu_indices(7, 1)
    assert np.isnan(fig.data[0].z[upper]).all()
    hatched = next(t for t in fig.data if t.name == "hidden")
    assert hatched.fillpattern.shape == "/"
    assert "hidden" in fig.data[0].customdata[0, 6]


def test_hatching_covers_exactly_the_cells_above_the_diagonal(fig):
    hatched = next(t for t in fig.data if t.name == "hidden")
    x, y = np.array(hatched.x), np.array(hatched.y)
    area = abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2  # shoelace
    assert area == pytest.approx(21)


def test_a_zero_that_is_allowed_stays_a_number():
    weights = np.array([[1, 0], [1, 0]], dtype=np.float32)
    shown = viz.attention_map(["a", "b"], weights, objective="clm").data[0].z
    assert shown[1, 1] == 0
    assert np.isnan(shown[0, 1])


def test_masked_objective_shows_every_cell():
    fig = viz.attention_map(TOKENS, np.full((7, 7), 1 / 7), objective="mlm")
    assert np.isfinite(fig.data[0].z).all()
    assert all(t.name != "hidden" for t in fig.data)


def test_hover_names_both_positions_both_tokens_and_the_exact_weight():
    weights = causal(7)
    text = viz.attention_map(TOKENS, weights, objective="clm").data[0].customdata[6, 4]
    assert text == f"query 6: the<br>key 4: the<br>weight {float(weights[6, 4]):.6g}"


def test_numbers_are_printed_in_small_maps_only():
    words = viz.attention_map(["a", "b"], [[1, 0], [0.25, 0.75]], objective="clm").data[1]
    assert list(zip(words.x, words.y, words.text, strict=True)) == [
        (0, 0, "1.00"),
        (0, 1, "0.25"),
        (1, 1, "0.75"),
    ]
    large = viz.attention_map([str(i) for i in range(13)], causal(13), objective="clm")
    assert all(t.mode != "text" for t in large.data[1:])


def test_tokens_are_literal():
    fig = viz.attention_map(["$x$", "<b>b</b>"], causal(2), objective="clm")
    assert list(fig.layout.xaxis.ticktext) == ["&#36;x&#36;", "&lt;b&gt;b&lt;/b&gt;"]
    assert "<b>" not in fig.data[0].customdata[1, 1]


@pytest.mark.parametrize(
    ("n", "ticks"), [(7, 7), (20, 20), (21, 11), (40, 20), (41, 14), (128, 19), (512, 20)]
)
def test_long_texts_thin_their_labels(n, ticks):
    fig = viz.attention_map(["tok"] * n, causal(n), objective="clm")
    assert len(fig.layout.xaxis.tickvals) == len(fig.layout.yaxis.ticktext) == ticks
    assert fig.layout.xaxis.tickvals[0] == 0
    assert fig.data[0].z.shape == (n, n)


def test_512_tokens_stay_small():
    fig = viz.attention_map(["tok"] * 512, causal(512), objective="clm")
    assert len(fig.to_json()) < 3_000_000


def test_query_is_framed_and_told():
    weights = causal(7)
    fig = viz.attention_map(TOKENS, weights, objective="clm", query=3)
    shape = fig.layout.shapes[0]
    assert (shape.y0, shape.y1, shape.x0, shape.x1) == (2.5, 3.5, -0.5, 6.5)
    assert f"position {int(weights[3].argmax())}" in viz.alt_text(fig)


def test_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="must be 2 × 2 for 2 tokens"):
        viz.attention_map(["a", "b"], np.ones((3, 3)), objective="clm")


def test_one_token():
    fig = viz.attention_map(["a"], [[1.0]], objective="clm")
    assert fig.data[0].z.shape == (1, 1)
    json.loads(fig.to_json())


def test_mask_matrix():
    causal_fig = viz.mask_matrix(TOKENS, "clm")
    assert np.isfinite(causal_fig.data[0].z).sum() == 28
    assert causal_fig.data[0].colorscale[0][1] == viz.CAUSAL
    assert causal_fig.layout.yaxis.range[0] > causal_fig.layout.yaxis.range[1], "row 0 on top"
    masked = viz.mask_matrix(TOKENS, "mlm", hidden=[2])
    assert np.isfinite(masked.data[0].z).all()
    assert masked.data[0].colorscale[0][1] == viz.MASKED
    assert {row[2] for row in masked.data[0].text} == {"?"}
    assert masked.layout.shapes[0].x0 == 1.5
    assert "a mask in place of 2" in masked.data[0].customdata[0, 2]
    assert "can't see" in causal_fig.data[0].customdata[0, 2]


def test_cells_can_be_pressed_up_to_a_limit():
    fig = viz.attention_map(TOKENS, causal(7), objective="clm", query=3, key=1, press=True)
    points = fig.data[-1]
    assert list(zip(points.x, points.y, strict=True))[:8] == [(k, 0) for k in range(7)] + [(0, 1)]
    assert points.customdata[6] == fig.data[0].customdata[0, 6]
    assert [(s.x0, s.x1) for s in fig.layout.shapes] == [(-0.5, 6.5), (0.5, 1.5)]
    large = viz.attention_map(["t"] * 41, causal(41), objective="clm", press=True)
    assert all(t.name != "cells:press" for t in large.data)


def test_part_of_a_text_is_counted_as_in_the_text():
    weights = causal(41)
    fig = viz.attention_map(["tok"] * 41, weights, objective="clm", query=40, first=64)
    assert fig.layout.xaxis.ticktext[0] == fig.layout.yaxis.ticktext[0] == "64 tok"
    assert fig.layout.yaxis.ticktext[-1] == "103 tok" and fig.layout.yaxis.tickvals[-1] == 39
    assert fig.data[0].customdata[40, 2].startswith("query 104: tok<br>key 66: tok<br>")
    assert f"(position 104) most goes to tok (position {64 + int(weights[40].argmax())})" in viz.alt_text(fig)


def test_a_weight_below_1_is_not_written_as_1():
    fig = viz.attention_map(["a", "b"], [[1, 0], [0.003, 0.997]], objective="clm")
    assert list(fig.data[1].text) == ["1.00", "0.00", ">.99"]


@pytest.mark.parametrize("tokens", [["a"] * 5, ["⟨E2 80⟩"] * 33, ["·princess"] * 13, ["·princess"] * 19])
def test_labels_square_and_key_fill_the_picture(tokens):
    """The square is as wide as the labels at its left leave: a higher picture would have a hole in it."""
    fig = viz.attention_map(tokens, causal(len(tokens)), objective="clm")
    n = len(tokens)
    label = 7.2 * max(len(text) for text in fig.layout.yaxis.ticktext)
    square = fig.layout.width - label - 54 - fig.layout.margin.r
    rest = fig.layout.height - square  # the labels on top, upright from 17 on, both titles and the key
    assert rest == pytest.approx(label * (0.7 if n <= 16 else 1) + 138, abs=2)
    assert square / len(fig.layout.yaxis.tickvals) > 14  # pixels for a line of 12


def test_a_narrow_map_is_lower_and_its_key_has_fewer_numbers() -> None:
    wide = viz.attention_map(["a", "b"], causal(2), objective="clm", query=1)
    narrow = viz.attention_map(["a", "b"], causal(2), objective="clm", query=1, width=300)
    assert narrow.layout.width == 300
    assert wide.layout.height - narrow.layout.height == wide.layout.width - 300  # no hole above the square
    assert len(narrow.data[0].colorbar.tickvals) < len(wide.data[0].colorbar.tickvals)


def test_what_lies_before_a_window_is_hatched_and_no_zero():
    weights = causal(7)
    fig = viz.attention_map(TOKENS, weights, objective="clm", window=3)
    shown = np.asarray(fig.data[0].z)
    for query in range(7):
        for key in range(7):
            assert np.isnan(shown[query, key]) == (key > query or query - key >= 3)
    assert "looks back at 3 tokens only" in fig.data[0].customdata[6, 1]
    assert "comes later" in fig.data[0].customdata[1, 6]
    far = fig.data[-1]
    assert far.fillpattern.shape == "/"
    assert (min(far.x), max(far.x), min(far.y), max(far.y)) == (-0.5, 3.5, 2.5, 6.5)
    masked = viz.attention_map(TOKENS, weights, objective="mlm", window=3)
    assert not np.isnan(np.asarray(masked.data[0].z)).any()


def test_bright_colours_go_by_the_square_root():
    plain = viz.attention_map(TOKENS, causal(7), objective="clm").data[0].colorscale
    bright = viz.attention_map(TOKENS, causal(7), objective="clm", bright=True).data[0].colorscale
    assert [color for _, color in bright] == [color for _, color in plain]
    np.testing.assert_allclose([place for place, _ in bright], np.square([place for place, _ in plain]))
    assert probability_color(0.09, bright=True) == probability_color(0.3)
