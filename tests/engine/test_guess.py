"""Guess the token: bets are distributions, bits are exact, the truth is the best bet on average."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine import guess
from engine.baselines import NGrams
from engine.config import ModelConfig
from engine.grammar import default_grammar, story_text
from engine.guess_store import MOST_ROUNDS, BetStore, round_name
from engine.metrics import entropy
from engine.model import Transformer
from engine.oracle import Oracle
from engine.progress import ProgressStore
from engine.tokenizers import Tokenizer, byte_tokenizer, train_bpe


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe(story_text(1, 60), 400)


@pytest.fixture(scope="module")
def oracle(tokenizer: Tokenizer) -> Oracle:
    return Oracle(default_grammar(), tokenizer)


@given(st.dictionaries(st.integers(0, 49), st.integers(1, 30), max_size=3))
def test_a_bet_is_a_distribution_without_a_zero(chips: dict[int, int]) -> None:
    probs = guess.bet(chips, 50)
    assert probs.sum() == pytest.approx(1, abs=1e-12) and (probs > 0).all()
    for token, n in chips.items():
        assert probs[token] == n / 100


@given(st.none() | st.integers(0, 5), st.integers(1, 99))
def test_a_choice_is_a_distribution_without_a_zero(token: int | None, percent: int) -> None:
    listed = [0, 1, 2, 3, 4, 5]
    probs = guess.pick(token, listed, percent, 1024)
    assert probs.sum() == pytest.approx(1, abs=1e-12) and (probs > 0).all()
    mine = probs[6:].sum() if token is None else probs[token]
    assert mine == pytest.approx(percent / 100)


def test_bits_are_those_worked_out_by_hand() -> None:
    probs = guess.bet({3: 50, 7: 25}, 1024)
    assert guess.bits(probs, 3) == 1 and guess.bits(probs, 7) == 2
    assert guess.bits(probs, 0) == pytest.approx(math.log2(4 * 1022))  # a quarter, for 1,022 others
    assert guess.bits(guess.bet({}, 1024), 5) == pytest.approx(10)
    assert guess.bits(guess.pick(None, [0, 1], 80, 10), 0) == pytest.approx(math.log2(10))  # half of 20 %


@pytest.mark.parametrize(
    ("chips", "said"),
    [({1: 60, 2: 40}, "100 chips"), ({1: 0}, "whole chips"), ({1: -5}, "whole chips"),
     ({99: 5}, "vocabulary"), ({1: 1.5}, "whole chips"), ({-1: 5}, "vocabulary")],
)  # fmt: skip
def test_a_bet_that_rules_something_out_is_refused(chips: dict[int, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        guess.bet(chips, 50)


@pytest.mark.parametrize("percent", [0, 100, -3])
def test_nobody_can_be_wholly_sure(percent: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 99"):
        guess.pick(1, [1], percent, 50)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_betting_the_truth_pays_its_entropy_and_nothing_pays_less(weights: list[float], rng: object) -> None:
    true = np.array(weights) / sum(weights)
    expected = sum(p * guess.bits(true, i) for i, p in enumerate(true))
    assert expected == pytest.approx(entropy(true) / math.log(2), abs=1e-9)
    other = true[::-1]
    assert sum(p * guess.bits(other, i) for i, p in enumerate(true)) >= expected - 1e-9


def test_a_round_is_the_same_for_everybody_and_another_for_each_seed(tokenizer: Tokenizer) -> None:
    rounds = [guess.story_round(tokenizer, seed) for seed in range(20)]
    assert rounds == [guess.story_round(tokenizer, seed) for seed in range(20)]
    assert len({part.ids for part in rounds}) == 20
    for part in rounds:
        assert part.n == guess.TOKENS and part.start >= guess.SHOWN
        assert tokenizer.token_bytes(part.ids[0]).endswith(b"\n") and part.first == 1
        assert part.before(3) == [*part.before(2), part.answer(2)]


def test_a_round_is_no_story_of_the_training_text(tokenizer: Tokenizer) -> None:
    trained = set(story_text(1, 4000).splitlines())
    for seed in range(30):
        played = guess.story_round(tokenizer, seed)
        begins = tokenizer.decode(played.ids[1:])
        assert not any(story.startswith(begins) for story in trained)


def test_with_the_oracle_a_place_is_chosen_where_much_can_happen(
    tokenizer: Tokenizer, oracle: Oracle
) -> None:
    def open_bits(part: guess.Round) -> float:
        rows = oracle.distributions(part.ids[:-1])[part.start - 1 :]
        return sum(map(entropy, rows))

    plain = np.mean([open_bits(guess.story_round(tokenizer, seed)) for seed in range(12)])
    chosen = np.mean([open_bits(guess.story_round(tokenizer, seed, oracle=oracle)) for seed in range(12)])
    assert chosen > 1.3 * plain


def test_a_text_round_stays_inside_and_needs_enough() -> None:
    ids = list(range(60))
    for seed in range(50):
        part = guess.text_round(ids, seed)
        assert part.n == 10 and all(b == a + 1 for a, b in pairwise(part.ids)) and part.ids[-1] < 60
    assert guess.text_round(range(11), 0).start == 1
    with pytest.raises(ValueError, match="10 tokens, and a round needs 11"):
        guess.text_round(range(10), 0)


def test_all_players_are_scored_on_the_same_tokens(tokenizer: Tokenizer, oracle: Oracle) -> None:
    v = tokenizer.vocab_size
    counts = NGrams(tokenizer.encode(story_text(1, 60)), v)
    model = Transformer(ModelConfig(v, 64, 1, 2, 16), torch.Generator().manual_seed(1)).eval()
    part = guess.story_round(tokenizer, 5, oracle=oracle)
    field = guess.field(part, counts, model, oracle)
    assert list(field.bits) == list(guess.PLAYERS)
    assert field.bits["uniform"] == pytest.approx([math.log2(v)] * 10)
    text = tokenizer.encode(story_text(1, 60))
    token = part.answer(4)
    trust, share = counts.trust[0], text.count(token) / len(text)
    assert field.bits["unigram"][4] == pytest.approx(-math.log2(trust * share + (1 - trust) / v))
    log_probs = oracle.log_probs(part.ids)[part.start :]
    assert field.bits["truth"] == pytest.approx((-log_probs / math.log(2)).tolist(), abs=1e-9)
    with torch.no_grad():
        logits = model(torch.tensor([part.before(2)[-64:]]))[0, -1].double()
    assert field.bits["model"][2] == pytest.approx(
        -logits.log_softmax(0)[part.answer(2)].item() / math.log(2)
    )
    assert field.floor is not None and field.truth is not None
    assert field.floor[3] == pytest.approx(entropy(field.truth[3]) / math.log(2))
    for order in range(4):
        assert guess.counted(counts, part.before(0), order).sum() == pytest.approx(1)
    assert field.model.sum(axis=1) == pytest.approx(np.ones(10), abs=1e-4)


def test_without_an_oracle_there_is_no_truth_and_no_floor() -> None:
    tokenizer = byte_tokenizer()
    ids = tokenizer.encode("the cat sat on the mat. " * 5)
    model = Transformer(ModelConfig(256, 16, 1, 1, 8), torch.Generator().manual_seed(1)).eval()
    field = guess.field(guess.text_round(ids, 1), NGrams(ids, 256), model, None)
    assert "truth" not in field.bits and field.floor is None and field.truth is None


def test_candidates_are_the_trigrams_likeliest() -> None:
    counts = NGrams([1, 2, 3, 1, 2, 3, 1, 2, 4, 1, 2, 3], 6)
    assert guess.candidates(counts, [0, 1, 2], 2) == [3, 4]


def test_standings_share_a_place_and_count_only_what_was_seen() -> None:
    found = guess.standings({"you": [2.0, 9.0], "model": [1.0, 0.0], "truth": [1.0, 5.0]}, 1)
    assert [(s.name, s.total, s.place) for s in found] == [("model", 1, 1), ("truth", 1, 1), ("you", 2, 3)]


@pytest.mark.parametrize("kept", [{}, {"chips": []}, {"chips": {"a": 1}}, {"pick": 1}, {"chips": {"1": 100}},
                                  {"pick": "x", "listed": [], "percent": 5}])  # fmt: skip
def test_a_damaged_bet_is_refused(kept: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        guess.probs_of(kept, 50)


def test_a_kept_bet_is_the_bet_that_was_made() -> None:
    assert guess.probs_of({"chips": {"3": 40}}, 9).tolist() == guess.bet({3: 40}, 9).tolist()
    kept = {"pick": None, "listed": [1, 2], "percent": 30}
    assert guess.probs_of(kept, 9).tolist() == guess.pick(None, [1, 2], 30, 9).tolist()


def test_bets_stay_in_order_and_none_can_be_changed(tmp_path: Path) -> None:
    store = BetStore(tmp_path)
    assert store.read("me", "r") == []
    assert store.add("me", "r", 0, {"chips": {"1": 5}}) == [{"chips": {"1": 5}}]
    assert store.add("me", "r", 0, {"chips": {"2": 5}}) == [{"chips": {"1": 5}}]  # a second press
    assert len(store.add("me", "r", 1, {"chips": {}})) == 2 and len(BetStore(tmp_path).read("me", "r")) == 2
    assert store.read("you", "r") == [] and store.read("me", "other") == []
    for n in range(MOST_ROUNDS):
        store.add("me", f"round {n}", 0, {"chips": {}})
    assert store.read("me", "r") == [] and len(store.read("me", f"round {MOST_ROUNDS - 1}")) == 1


def test_bets_are_no_ones_progress_and_go_with_it(tmp_path: Path) -> None:
    bets, progress = BetStore(tmp_path), ProgressStore(tmp_path)
    bets.add("me", "r", 0, {"chips": {}})
    progress.join("me", "room")
    assert [p.room for p in progress.everyone("room")] == ["room"]
    assert b"me" not in b"".join(path.name.encode() for path in (tmp_path / "people").glob("*.json"))
    progress.delete("me")
    assert not list((tmp_path / "people").glob("*.json*"))


def test_a_damaged_file_of_bets_begins_anew(tmp_path: Path) -> None:
    store = BetStore(tmp_path)
    store.add("me", "r", 0, {"chips": {}})
    (path,) = (tmp_path / "people").glob(".guess-*.json")
    path.write_text("{broken")
    assert BetStore(tmp_path).read("me", "r") == []
    assert len(store.add("me", "r", 0, {"chips": {"1": 1}})) == 1


def test_a_round_is_named_by_all_that_decides_it() -> None:
    assert (
        round_name((1, 2), "a")
        == round_name((1, 2), "a")
        != round_name((1, 2), "b")
        != round_name((1, 3), "b")
    )
