"""Pictures of fine-tuning: numbers, order, signs, and nothing said by colour alone."""

import json

import numpy as np
import pytest

import viz
from viz.tables import table_of
from viz.theme import NEUTRAL
from viz.tuning import Part, before_and_after, block_stack, reward_margins, share_bars

PARTS = [Part("embedding", 1000, False), Part("block <1>", 600, False), Part("block 2", 600, True),
         Part("head", 0, False)]  # fmt: skip


def test_the_first_part_of_the_model_lies_at_the_bottom() -> None:
    fig = block_stack(PARTS)
    assert list(fig.layout.yaxis.ticktext) == ["head", "block 2", "block &lt;1&gt;", "embedding"]
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]  # row 0 is on top
    (bars,) = fig.data
    assert list(bars.x) == [0, 600, 600, 1000] and list(bars.y) == [0, 1, 2, 3]
    assert fig.layout.xaxis.title.text == "numbers"


def test_what_is_frozen_is_said_in_words_and_hatched() -> None:
    (bars,) = block_stack(PARTS).data
    assert list(bars.text) == ["none of its own", "600 learn", "600 frozen", "1,000 frozen"]
    assert list(bars.marker.pattern.shape) == ["/", "", "/", "/"]
    assert "block 2. That is 600 of 2,200 numbers" in viz.alt_text(block_stack(PARTS))


def test_pairs_of_bars_before_and_after_with_their_floor() -> None:
    fig = before_and_after(["new", "$old$"], [3.0, 0.5], [1.0, 2.0], unit="loss (nats per token)",
                           floors=[None, 0.4])  # fmt: skip
    before, after, floor = fig.data
    assert (before.name, list(before.x)) == ("before", [3.0, 0.5])
    assert (after.name, list(after.x)) == ("after", [1.0, 2.0])
    assert (list(floor.x), list(floor.y)) == ([0.4], [1])
    assert before.marker.pattern.shape == "/" and after.marker.pattern.shape is None
    assert list(after.text) == ["after 1.00", "after 2.00"]
    assert fig.layout.xaxis.title.text == "loss (nats per token)" and fig.layout.xaxis.range[0] == 0
    assert "&#36;old&#36;" in fig.layout.yaxis.ticktext
    assert "new: 3.00 before, 1.00 after." in viz.alt_text(fig) and "0.400" in viz.alt_text(fig)
    json.loads(before_and_after(["x"], [float("nan")], [float("inf")], unit="loss").to_json())


def test_shares_carry_their_standard_error() -> None:
    fig = share_bars(["before", "after"], [0.1, 0.875], [0.047, 0.052], unit="stories followed")
    (bars,) = fig.data
    assert list(bars.x) == [0.1, 0.875] and list(bars.error_x.array) == [0.047, 0.052]
    assert [a.text for a in fig.layout.annotations] == ["10% ± 5%", "88% ± 5%"]
    assert list(bars.marker.pattern.shape) == ["/", ""]
    assert fig.layout.xaxis.range[0] == 0 and list(fig.layout.xaxis.ticktext)[-1] == "100%"
    table = table_of(fig)
    assert list(table["stories followed"]) == pytest.approx([0.1, 0.875])


def test_before_training_every_margin_is_nought() -> None:
    fig = reward_margins(np.zeros(5), trained=False)
    (marks,) = fig.data
    assert list(marks.y) == [0] * 5 and marks.name == "before: all 0"
    assert any(shape.y0 == shape.y1 == 0 for shape in fig.layout.shapes)
    low, high = fig.layout.yaxis.range
    assert low < 0 < high


def test_margins_go_up_and_down_and_keep_their_order() -> None:
    fig = reward_margins([-0.5, 0.25, 2.0], trained=True, chosen=0)
    bars, marks = fig.data
    assert list(bars.y) == [-0.5, 0.25, 2.0] and list(bars.x) == [0, 1, 2]
    down, up, _ = bars.marker.color
    assert down != up and NEUTRAL not in (down, up)
    assert list(bars.marker.pattern.shape) == ["/", "", ""]  # the sign is the direction, and the pattern
    assert list(bars.marker.line.width)[0] > 0 and list(bars.marker.line.width)[1] == 0
    (mark,) = fig.layout.annotations
    assert (mark.x, mark.y, mark.text) == (0, -0.5, "▲")
    assert list(marks.y) == [0, 0, 0] and any(shape.y0 == shape.y1 == 0 for shape in fig.layout.shapes)
    assert fig.layout.yaxis.title.text == "reward margin (nats)"
    assert "2 are above 0" in viz.alt_text(fig)


def test_no_pairs_at_all() -> None:
    json.loads(reward_margins([], trained=True).to_json())
