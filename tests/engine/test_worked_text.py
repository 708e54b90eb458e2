"""Pieces, shifted rows, windows, cropping and the loop that writes, with the numbers of the first texts."""

import math
from string import ascii_lowercase

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine import worked_text as wt
from engine.metrics import softmax

IDS = [4, 8, 15, 16, 23, 42]
TABLE = {"a": [0.0, 2.0, -1.0], "b": [1.0, 0.0, 1.0], "c": [-5.0, 5.0, 0.0]}


def test_hello_in_letters_is_7_4_11_11_14() -> None:
    assert [ascii_lowercase.index(piece) for piece in wt.pieces("hello", ascii_lowercase)] == [
        7,
        4,
        11,
        11,
        14,
    ]


def test_tokenization_is_token_and_ization() -> None:
    assert wt.pieces("tokenization", [*ascii_lowercase, "token", "ization", "ing", "un"]) == [
        "token",
        "ization",
    ]


@pytest.mark.parametrize("text", ["", "unkind king", "añb 👋🏽", "\n\t x"])
def test_pieces_put_together_are_the_text_and_more_of_them_never_need_more(text: str) -> None:
    letters = sorted(set(text))
    few = wt.pieces(text, letters)
    more = wt.pieces(text, [*letters, "un", "kind", "king"])
    assert "".join(few) == "".join(more) == text and len(more) <= len(few)


def test_a_character_that_nothing_begins_with_is_named() -> None:
    with pytest.raises(ValueError, match="“z”"):
        wt.pieces("az", ["a", "zz"])


def test_shift_by_one() -> None:
    batch = wt.shift([IDS])
    assert batch.inputs.tolist() == [[4, 8, 15, 16, 23]] and batch.targets.tolist() == [[8, 15, 16, 23, 42]]
    assert wt.shift([[10, 20, 30, 40, 50]]).targets.tolist() == [[20, 30, 40, 50]]
    assert wt.shift([[5, 9, 2, 7]]).targets.tolist() == [[9, 2, 7]]
    assert wt.shift([list(range(100))]).targets.numel() == 99


def test_rows_that_can_not_be_shifted_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 ids.* has 1"):
        wt.shift([[3]])
    for rows in ([], [[1, 2], [1, 2, 3]]):
        with pytest.raises(ValueError, match="equally many ids"):
            wt.shift(rows)


def test_flatten_and_compare_is_cross_entropy_over_all_positions() -> None:
    batch = wt.shift([IDS, [1, 2, 3, 4, 5, 6]])
    logits = torch.randn(2, 5, 50, generator=torch.Generator().manual_seed(1))
    found = wt.compare(batch, 50, logits.numpy())
    assert found.shape == (2, 5, 50) and found.flat_shape == (10, 50)
    assert found.loss == pytest.approx(
        float(F.cross_entropy(logits.transpose(1, 2), batch.targets)), rel=1e-5
    )


def test_a_model_that_has_not_learned_costs_about_ln_v() -> None:
    assert wt.compare(wt.shift([IDS]), 50).loss == pytest.approx(math.log(50), abs=0.05)
    with pytest.raises(ValueError, match="id 42 .* last id is 39"):
        wt.compare(wt.shift([IDS]), 40)
    with pytest.raises(ValueError, match="too many"):
        wt.compare(wt.shift([IDS]), 10_000_000)


@pytest.mark.parametrize(("n", "t"), [(12, 4), (5, 4), (40, 1)])
def test_windows_lie_inside_and_every_start_is_as_likely(n: int, t: int) -> None:
    ids = list(range(100, 100 + n))
    found = wt.draw_windows(ids, t, 4000, seed=2)
    assert found.n_starts == n - t and set(found.starts.tolist()) == set(range(n - t))
    counts = np.bincount(found.starts, minlength=n - t)
    expected = 4000 / (n - t)
    assert (abs(counts - expected) < 5 * math.sqrt(expected) + 1).all()
    for start, x, y in zip(found.starts.tolist(), *(part.tolist() for part in found.batch), strict=True):
        assert x == ids[start : start + t] and y == ids[start + 1 : start + t + 1]


def test_windows_of_a_text_that_is_too_short_are_refused() -> None:
    with pytest.raises(ValueError, match="5"):
        wt.draw_windows([1, 2, 3, 4], 4, 1, seed=0)


def test_cropping_keeps_the_last_tokens() -> None:
    for t in range(1, 9):
        assert wt.crop(IDS, t) == IDS[max(0, 6 - t) :] and len(wt.crop(IDS, t)) == min(6, t)
    with pytest.raises(ValueError, match="at least 1 token, not 0"):
        wt.crop(IDS, 0)


def test_the_loop_predicts_picks_and_appends() -> None:
    turns = wt.write(TABLE, ["a"], 6, seed=4)
    text = ["a"]
    for turn in turns:
        assert turn.read == text[-1:]
        assert turn.probs == pytest.approx(softmax(np.array(TABLE[text[-1]])))
        assert turn.probs[: turn.picked].sum() <= turn.u < turn.probs[: turn.picked + 1].sum()
        text.append("abc"[turn.picked])
    assert [t.picked for t in wt.write(TABLE, ["a"], 3, seed=4)] == [t.picked for t in turns[:3]]


def test_the_greedy_loop_takes_the_likeliest() -> None:
    assert [t.picked for t in wt.write(TABLE, ["a"], 4, seed=0, temperature=0)] == [1, 0, 1, 0]
    assert math.isnan(wt.write(TABLE, ["a"], 1, seed=0, temperature=0)[0].u)


def test_the_loop_refuses_what_its_table_lacks() -> None:
    with pytest.raises(ValueError, match="“x”.*a, b, c"):
        wt.write(TABLE, ["x"], 1, seed=0)
    with pytest.raises(ValueError, match="no token"):
        wt.write(TABLE, [], 1, seed=0)
