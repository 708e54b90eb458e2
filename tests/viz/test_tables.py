"""The table of a figure holds every value that it draws, with its labels."""

import numpy as np
import plotly.graph_objects as go
import pytest

import viz
from viz.along import kl_bars
from viz.tables import plain, table_of


def test_bars_with_repeated_labels_keep_their_places():
    fig = viz.distribution_bars(
        ["the", "the", "$x$ <b>b</b>"], [0.5, 0.25, 0.125], tail=0.125, n_tail=9, second=[0.1, 0.2, 0.3]
    )
    table = table_of(fig)
    assert list(table["series"]) == ["model"] * 4 + ["true distribution"] * 4
    assert list(table["probability"]) == pytest.approx([0.5, 0.25, 0.125, 0.125, 0.1, 0.2, 0.3, 0.4])
    assert list(table["token"][:4]) == ["the", "the", "$x$ <b>b</b>", "all other 9 tokens"]
    assert list(table["token: place"][:4]) == [0, 1, 2, 3]
    assert "note" not in table  # it would say the token and its number a second time


def test_a_heat_map_is_one_row_a_cell():
    probs = np.array([[0.5, 0.25], [0.4, 0.3], [0.9, 0.05]], dtype=np.float32)
    fig = viz.position_heatmap(
        ["the", "·cat", "the"], [["a", "<b>"], ["c", "d"], ["e", "f"]], probs, true_rank=[2, None, 9]
    )
    table = table_of(fig)
    assert len(table) == 6
    assert list(table["probability"]) == pytest.approx(probs.ravel())
    assert list(table.iloc[:, 0]) == ["0 the", "0 the", "1 ·cat", "1 ·cat", "2 the", "2 the"]
    assert list(table.iloc[:, 1]) == ["1", "2"] * 3
    assert "rank 2: <b>" in table["note"][1] and "came next" in table["note"][1]
    assert not table["note"].str.contains("probability").any()  # that has a column of its own


def test_labels_that_are_thinned_leave_the_places():
    n = 100
    table = table_of(viz.attention_map([f"w{i}" for i in range(n)], np.eye(n), objective="mlm"))
    assert len(table) == n * n
    queries = table[[c for c in table.columns if c.startswith("query") and c.endswith("place")][0]]
    keys = table[[c for c in table.columns if c.startswith("key") and c.endswith("place")][0]]
    value = [c for c in table.columns if c not in ("note",) and table[c].dtype.kind == "f"][-1]
    assert list(table[value] == 1) == list(queries == keys)


def test_lines_keep_names_and_gaps():
    fig = viz.loss_curve(
        [viz.Series("a", [0, 1, 2], [3.0, np.nan, 1.0]), viz.Series("b", [0, 2], [2.0, 0.5])]
    )
    table = table_of(fig)
    assert list(table["series"]) == ["a"] * 3 + ["b"] * 2
    assert list(table["step"]) == [0, 1, 2, 0, 2]
    assert table["loss (nats per token)"].tolist()[::2] == pytest.approx([3.0, 1.0, 0.5])
    assert np.isnan(table["loss (nats per token)"][1])


def test_every_value_of_a_single_series():
    table = table_of(kl_bars(["a", "b"], [0.5, 0.25], unit="bits"))
    assert list(table["KL from true (bits)"]) == pytest.approx([0.5, 0.25])
    assert list(table["after this token (position)"]) == ["a", "b"]
    assert "series" not in table


def test_a_note_says_only_what_the_row_does_not():
    fig = viz.surprisal_bars(["a", "·b"], [np.nan, 2.4873512], unit="bits")
    table = table_of(fig)
    assert list(table["note"]) == ["position 0: a; surprisal in bits: not scored", "position 1: ·b"]


def test_an_axis_of_labels_without_a_title_has_a_name():
    table = table_of(viz.cosine_bars(["a", "b"], [0.9, 0.5], ["z"], [-0.4]))
    assert list(table.columns) == ["cosine similarity", "token"]
    rows = table_of(viz.sum_picture([("token", [1.0, 2.0]), ("= sum", [1.0, 2.0])], dim=0))
    assert list(rows["label"]) == ["token", "token", "= sum", "= sum"]


def test_plain_reads_entities_after_tags_are_gone():
    assert plain("&lt;b&gt;<b>x</b>") == "<b>x"


def test_a_map_in_space_keeps_all_three_coordinates():
    points = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    fig = go.Figure(go.Scatter3d(x=points[:, 0], y=points[:, 1], z=points[:, 2], customdata=["a", "b"]))
    fig.update_layout(
        scene={f"{letter}axis": {"title": {"text": f"PC {n}"}} for n, letter in enumerate("xyz", 1)}
    )
    table = table_of(fig)
    assert list(table.columns) == ["PC 1", "PC 2", "PC 3", "note"]
    assert table[["PC 1", "PC 2", "PC 3"]].to_numpy().tolist() == points.tolist()
    assert list(table["note"]) == ["a", "b"]
