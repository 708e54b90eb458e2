"""Figures of merges: the numbers in them, their axes, and the tree as text."""

import numpy as np
import pytest

import viz
from viz.merges import LONGEST, MAX_POINTS

LENGTHS = [11, 9, 7, 5]


def test_the_curve_holds_every_length_and_names_its_axes() -> None:
    fig = viz.corpus_length(LENGTHS, 2)
    line, here = fig.data
    assert line.x.tolist() == [0, 1, 2, 3] and line.y.tolist() == LENGTHS
    assert line.customdata == pytest.approx([1, 11 / 9, 11 / 7, 11 / 5])
    assert (here.x[0], here.y[0]) == (2, 7)
    assert fig.layout.xaxis.title.text == "merges"
    assert fig.layout.yaxis.title.text == "length of the text (tokens)"
    assert fig.layout.annotations[0].text == "7 tokens" and fig.layout.annotations[0].x == 2
    assert "11 bytes" in viz.alt_text(fig) and "After 2: 7" in viz.alt_text(fig)


def test_without_a_cursor_the_figure_never_changes() -> None:
    fig = viz.corpus_length(LENGTHS)
    assert len(fig.data) == 1 and not fig.layout.shapes and not fig.layout.annotations
    with pytest.raises(ValueError, match="cursor is 4, but there are 0 to 3"):
        viz.corpus_length(LENGTHS, 4)


def test_a_long_curve_is_thinned_but_keeps_its_ends_and_values() -> None:
    lengths = 1_000_000 - 100 * np.arange(8000)
    line = viz.corpus_length(lengths).data[0]
    assert len(line.x) == MAX_POINTS and line.x[0] == 0 and line.x[-1] == 7999
    assert (line.y == lengths[line.x]).all()


def test_tokens_are_counted_by_length() -> None:
    fig = viz.token_lengths([1] * 256 + [2, 2, 4])
    assert fig.data[0].x.tolist() == [1, 2, 3, 4] and fig.data[0].y.tolist() == [256, 2, 0, 1]
    assert "bytes" in fig.layout.xaxis.title.text and fig.layout.yaxis.title.text
    assert list(fig.data[0].text) == ["256", "2", "", "1"]


def test_very_long_tokens_share_a_bar_that_says_so() -> None:
    bar = viz.token_lengths([1, LONGEST, LONGEST + 1, 500_000]).data[0]
    assert len(bar.x) == LONGEST + 1 and bar.y[LONGEST - 1] == 1 and bar.y[-1] == 2
    assert bar.customdata[-1] == f"{LONGEST + 1} or more" and bar.y.sum() == 4


def test_uses_are_in_order_and_the_unused_have_no_point() -> None:
    fig = viz.token_uses(["a", "$b$", "c", "d"], [5, 1000, 0, 20], chosen=3)
    line, here = fig.data
    assert line.x.tolist() == [1, 2, 3] and line.y.tolist() == [1000, 20, 5]
    assert "id 1" in line.customdata[0] and "$" not in line.customdata[0]
    assert (here.x[0], here.y[0]) == (2, 20)
    assert fig.layout.xaxis.type == fig.layout.yaxis.type == "log"
    assert fig.layout.annotations[0].y == pytest.approx(np.log10(20))
    assert "1 are never used" in viz.alt_text(fig)


def test_a_long_order_is_thinned_but_keeps_its_values() -> None:
    uses = np.arange(9000, 1000, -1)
    line, here = viz.token_uses([str(i) for i in range(8000)], uses, chosen=4321).data
    assert len(line.x) <= MAX_POINTS and line.x[:3].tolist() == [1, 2, 3] and line.x[-1] == 8000
    assert (line.y == uses[line.x - 1]).all() and line.customdata[-1] == "7999<br>id 7999"
    assert (here.x[0], here.y[0]) == (4322, 9000 - 4321)


def test_a_chosen_token_that_is_never_used_has_no_mark() -> None:
    assert len(viz.token_uses(["a", "b"], [3, 0], chosen=1).data) == 1
    assert len(viz.token_uses(["a"], [0]).data[0].x) == 0


def test_a_tree_goes_down_to_bytes() -> None:
    parts = {256: (97, 97), 257: (97, 98), 258: (256, 257)}.get
    names = {256: "aa", 257: "ab", 258: "aaab"}
    assert viz.merge_tree(258, parts, lambda i: names.get(i) or chr(i)).splitlines() == [
        "258  aaab",
        "├─ 256  aa",
        "│  ├─ 97  a",
        "│  └─ 97  a",
        "└─ 257  ab",
        "   ├─ 97  a",
        "   └─ 98  b",
    ]
    assert viz.merge_tree(97, parts, chr) == "97  a"


def test_a_huge_tree_ends_in_words() -> None:
    doubled = {256 + n: (255 + n, 255 + n) for n in range(1, 20)} | {256: (97, 97)}
    lines = viz.merge_tree(275, doubled.get, str, most=10).splitlines()
    assert len(lines) == 11 and "and so on" in lines[-1]
