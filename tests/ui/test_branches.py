"""Branches: nothing that was written is lost by rewinding, and every branch has numbers of its own."""

import json
import math

import pytest

from ui.branch_view import table
from ui.branches import MOST, Draw, Writing, as_json


def drawn(token: int, model_prob: float = 0.5, u: float | None = 0.3) -> Draw:
    return Draw(token, bytes([97 + token]), u, 0.4, model_prob, {"temperature": 1.0}, 7)


def writing(*tokens: int) -> Writing:
    text = Writing(("model", "prompt"))
    text.draws.extend(drawn(token) for token in tokens)
    return text


def test_rewinding_keeps_the_old_branch_and_goes_on_in_a_new_one() -> None:
    text = writing(0, 1, 2, 3)
    text.rewind(2)
    assert [branch.ids for branch in text.branches] == [[0, 1, 2, 3], [0, 1]]
    assert text.branch.name == "B" and text.branch.stream == 1
    assert text.branch.came_from == "left A after 2 tokens"
    text.draws.append(drawn(9))
    assert [branch.ids for branch in text.branches] == [[0, 1, 2, 3], [0, 1, 9]]
    assert text.n_shared() == 2


def test_rewinding_a_branch_without_a_token_of_its_own_makes_no_further_one() -> None:
    text = writing(0, 1, 2, 3)
    text.rewind(2)
    text.rewind(1)  # A holds these two tokens
    assert [branch.ids for branch in text.branches] == [[0, 1, 2, 3], [0]]
    text.rewind(1)  # nothing to take back
    assert len(text.branches) == 2
    text.switch("A")
    text.rewind(3)
    assert [branch.name for branch in text.branches] == ["A", "B", "C"]
    assert [branch.ids for branch in text.branches] == [[0, 1, 2, 3], [0], [0, 1, 2]]


def test_log_probability_by_hand_and_what_was_forced() -> None:
    text = writing()
    text.draws.extend([drawn(0, 0.5), drawn(1, 0.25), drawn(2, 0.125, u=None)])
    assert text.branch.log_prob == pytest.approx(math.log(1 / 64))
    assert text.branch.per_token == pytest.approx(-2 * math.log(2))
    assert text.branch.n_forced == 1 and text.draws[2].forced and not text.draws[1].forced
    text.force(drawn(3, 0.0, u=None))
    assert text.branch.log_prob == -math.inf
    assert math.isnan(Writing(("m", "p")).branch.per_token)


def test_deleting_and_switching() -> None:
    text = writing(0, 1)
    text.rewind(0)
    text.draws.append(drawn(5))
    text.switch("A")
    assert text.ids == [0, 1]
    text.delete("B")
    assert text.branch.name == "A" and len(text.branches) == 1
    text.rewind(1)
    assert text.branch.name == "B"  # the free letter and its stream again: the same clicks, the same text
    text.delete("B")
    text.delete("A")
    assert text.empty and text.branch.name == "A"


def test_too_many_branches_are_refused_and_nothing_is_lost() -> None:
    text = writing(0)
    for i in range(MOST - 1):
        text.rewind(0)
        text.draws.append(drawn(i + 1))
    assert len(text.branches) == MOST
    text.rewind(0)
    assert text.ids == [MOST - 1] and "Delete one" in text.message
    text.undo()
    assert text.message == ""


@pytest.mark.parametrize(
    "data, shown",
    [(b"\xf0\x9f\x98", "\\xf0\\x9f\\x98"), (b"\xf0\x9f\x98\x80", "😀"), ("\ufffd".encode(), "\ufffd")],
)
def test_half_a_character_waits_and_is_shown_as_bytes_at_the_end(data: bytes, shown: str) -> None:
    text = Writing(("m", "p"))
    text.branch.draws = [Draw(i, data[i : i + 1], 0.1, 1.0, 1.0, {}) for i in range(len(data))]
    assert text.text() == shown
    assert text.text(ended=False) == ("" if "\\" in shown else shown)


def test_the_table_is_literal_frames_what_was_forced_and_greys_what_is_shared() -> None:
    text = writing(0)
    text.force(Draw(1, b"<b>&$x$", None, 0.0, 0.5, {}))
    text.rewind(1)
    text.draws.append(drawn(2))
    html = table(text)
    assert "<b>" not in html and "&lt;b&gt;&amp;$x$" in html
    assert html.count('data-part="forced"') == 1 and html.count('data-part="shared"') == 2
    assert 'data-branch="A"' in html and "left A after 1 token" in html
    assert "−1.39" in html  # ln 0.5 + ln 0.5


def test_json_holds_every_number() -> None:
    text = writing(0, 1)
    text.force(drawn(2, 0.0, u=None))
    content = json.loads(as_json(text, [5, 6], {"model": "m", "seed": 7}))
    assert content["prompt"] == "prompt" and content["prompt_ids"] == [5, 6] and content["model"] == "m"
    (branch,) = content["branches"]
    assert branch["text"] == "abc" and branch["log_prob"] is None  # a forced token of probability 0
    first, _, last = branch["tokens"]
    assert first["id"] == 0 and first["u"] == 0.3 and first["seed"] == 7 and not first["forced"]
    assert first["log_prob"] == pytest.approx(math.log(0.5)) and first["settings"] == {"temperature": 1.0}
    assert last["forced"] and last["u"] is None and last["seed"] is None and last["log_prob"] is None
