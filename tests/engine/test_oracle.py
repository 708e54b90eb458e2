"""The oracle against brute force on a small grammar, and its laws on the stories of the product."""

import math
import random
from collections import Counter
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import automaton, oracle, tokenizers
from engine.grammar import Grammar, default_grammar, split_terminals, story_text
from engine.oracle import Oracle
from tests.engine.small_stories import WordTokenizer, all_stories, small_grammar

SMALL_TEXT = "".join(all_stories())
STORIES = story_text(21, 200).splitlines(keepends=True)
KINDS = ["bytes", "characters", "BPE 290", "BPE 400", "words"]


def small_tokenizer(kind: str) -> oracle.TokenizerLike:
    if kind == "bytes":
        return tokenizers.byte_tokenizer()
    if kind == "characters":
        return tokenizers.char_tokenizer(SMALL_TEXT)
    if kind == "words":
        return WordTokenizer(SMALL_TEXT)
    return tokenizers.train_bpe(SMALL_TEXT, int(kind.split()[1]))


Rows = NDArray[np.int64]


def brute_force_rows(tokenizer: oracle.TokenizerLike, length: int) -> tuple[Rows, NDArray[np.float64]]:
    """All rows of `length` tokens, stories one after the other and cut: (N, length), and probabilities."""
    stories = [(tuple(tokenizer.encode(story)), p) for story, p in all_stories().items()]

    @cache
    def heads(left: int) -> Counter[tuple[int, ...]]:
        """What can come in the next `left` tokens, up to the end of the story."""
        found: Counter[tuple[int, ...]] = Counter()
        for ids, p in stories:
            found[ids[:left]] += p  # type: ignore[assignment]
        return found

    rows: Counter[tuple[int, ...]] = Counter()
    begun: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while begun:
        ids, p = begun.pop()
        for head, p_head in heads(length - len(ids)).items():
            if len(ids) + len(head) < length:
                begun.append((ids + head, p * p_head))
            else:
                rows[ids + head] += p * p_head  # type: ignore[assignment]
    return np.array(list(rows)), np.array(list(rows.values()))


@cache
def all_rows(kind: str) -> tuple[Oracle, Rows, NDArray[np.float64]]:
    tokenizer = small_tokenizer(kind)
    longest = max(len(tokenizer.encode(story)) for story in all_stories())
    rows, p = brute_force_rows(tokenizer, longest + 3)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    return Oracle(small_grammar(), tokenizer), rows, p


def some_rows(kind: str, n: int) -> tuple[Oracle, Rows, NDArray[np.float64], Rows]:
    """The oracle, all rows with their probabilities, and n rows drawn from them."""
    oracle, rows, p = all_rows(kind)
    return oracle, rows, p, rows[np.random.default_rng(4).choice(len(rows), size=n, p=p / p.sum())]


@pytest.mark.parametrize("kind", KINDS)
def test_next_token_distributions_are_the_brute_force_ones(kind: str) -> None:
    oracle, rows, p, drawn = some_rows(kind, 4)
    for ids in drawn:
        got = oracle.distributions(ids)
        log_probs = oracle.log_probs(ids)
        assert got.shape == (len(ids), oracle.vocab_size)
        weights = p
        for t, token in enumerate(ids):
            fits = weights * (rows[:, t] == token)
            assert log_probs[t] == pytest.approx(math.log(fits.sum() / weights.sum()), abs=1e-12)
            weights = fits
            if t + 1 < len(ids):
                expected = np.bincount(rows[:, t + 1], weights, oracle.vocab_size) / weights.sum()
                np.testing.assert_allclose(got[t], expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_masked_posteriors_are_the_brute_force_ones(kind: str) -> None:
    oracle, rows, p, drawn = some_rows(kind, 12)
    rng = random.Random(8)
    for index, ids in enumerate(drawn):
        share = (0.15, 0.4, 0.8, 1.0)[index % 4]
        cut = rng.randrange(1, len(ids) + 1)
        masked = [t for t in range(cut) if rng.random() < share] or [0]
        rng.shuffle(masked)
        seen = [t for t in range(cut) if t not in masked]
        weights = p * (rows[:, seen] == ids[seen]).all(axis=1)
        row = ids[:cut].copy()
        row[masked] = oracle.vocab_size  # the value there must not matter
        got = oracle.masked(row, masked)
        assert got.shape == (len(masked), oracle.vocab_size)
        for k, t in enumerate(masked):
            expected = np.bincount(rows[:, t], weights, oracle.vocab_size) / weights.sum()
            np.testing.assert_allclose(got[k], expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_may_begin_with_the_end_of_the_story_before(kind: str) -> None:
    oracle, _, _, drawn = some_rows(kind, 1)
    ids = drawn[0]
    separator = oracle.tokenizer.encode(".\n")[-1]
    row = np.concatenate([[separator], ids])
    np.testing.assert_array_equal(oracle.distributions(row)[1:], oracle.distributions(ids))
    np.testing.assert_array_equal(oracle.distributions(row)[0], oracle.next_probs(oracle.start()))
    np.testing.assert_array_equal(oracle.log_probs(row)[1:], oracle.log_probs(ids))
    assert oracle.log_probs(row)[0] == 0.0
    np.testing.assert_array_equal(oracle.masked(row, [4, 9]), oracle.masked(ids, [3, 8]))


def test_a_masked_story_end_at_the_beginning_has_the_share_of_all_story_ends() -> None:
    tokenizer = WordTokenizer(SMALL_TEXT)
    oracle = Oracle(small_grammar(), tokenizer)
    row = [tokenizer.vocab_size, *tokenizer.encode("Look, a cat!")]
    got = oracle.masked(row, [0, 3], separator=True)
    assert got[0, tokenizer.ids["!”\n"]] == pytest.approx(1 / 4, abs=1e-12)
    assert got[0, tokenizer.ids[".\n"]] == pytest.approx(3 / 4, abs=1e-12)
    assert got[1, tokenizer.ids[" a"]] == pytest.approx(1.0, abs=1e-12)


def test_the_first_mention_is_inferred_from_what_comes_later() -> None:
    """By hand: Ann with "her" is a cat, with "his" an owl; with neither 2/3 * 1/3 for the cat to 1/3."""
    tokenizer = WordTokenizer(SMALL_TEXT)
    oracle = Oracle(small_grammar(), tokenizer)

    def cat(text: str, masked: list[int]) -> float:
        return float(oracle.masked(tokenizer.encode(text), masked)[masked.index(3), tokenizer.ids[" cat"]])

    assert cat("Once, a cat called Ann hid her red kite", [2, 3]) == pytest.approx(1.0, abs=1e-12)
    assert cat("Once, a cat called Ann hid his red kite", [2, 3]) == pytest.approx(0.0, abs=1e-12)
    assert cat("Once, a cat called Ann hid his red kite", [2, 3, 7]) == pytest.approx(2 / 5, abs=1e-12)


def test_incremental_use_gives_the_same_as_whole_rows() -> None:
    tokenizer = tokenizers.train_bpe(story_text(1, 100), 600)
    oracle = Oracle(default_grammar(), tokenizer)
    ids = tokenizer.encode(STORIES[0] + STORIES[1])
    rows, log_probs = oracle.distributions(ids), oracle.log_probs(ids)
    belief = oracle.start()
    for t, token in enumerate(ids):
        before = dict(belief)
        after, log_prob = oracle.advance(belief, token)
        assert belief == before  # a belief is not changed by use
        assert after is not None
        belief = after
        assert log_prob == log_probs[t]
        np.testing.assert_array_equal(oracle.next_probs(belief), rows[t])


# ---- the stories of the product ----


@cache
def own_tokenizers() -> dict[str, oracle.TokenizerLike]:
    text = story_text(1, 300)
    return {
        "bytes": tokenizers.byte_tokenizer(),
        "characters": tokenizers.char_tokenizer("".join(STORIES) + text),
        "BPE 512": tokenizers.train_bpe(text, 512),
        "BPE 1024": tokenizers.train_bpe(text, 1024),
        "words": WordTokenizer("".join(STORIES) + story_text(0, 3000)),
    }


def test_every_tokenizer_gives_a_text_the_same_probability() -> None:
    """So bits per byte are equal too; and the sum over tokens is the probability of the stories."""
    text = "".join(STORIES[:20])
    nats = math.fsum(-default_grammar().log_prob(story) for story in STORIES[:20])
    for tokenizer in own_tokenizers().values():
        total = -Oracle(default_grammar(), tokenizer).log_probs(tokenizer.encode(text)).sum()
        assert total == pytest.approx(nats, abs=1e-8)


def test_distributions_sum_to_one_and_hold_the_token_that_came() -> None:
    for tokenizer in own_tokenizers().values():
        oracle = Oracle(default_grammar(), tokenizer)
        ids = tokenizer.encode("".join(STORIES[:6]))
        rows, log_probs = oracle.distributions(ids), oracle.log_probs(ids)
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
        assert (rows >= 0).all()
        np.testing.assert_allclose(np.log(rows[np.arange(len(ids) - 1), ids[1:]]), log_probs[1:], atol=1e-12)


def test_princess_dragon_and_robot_can_follow_at_once() -> None:
    tokenizer = own_tokenizers()["words"]
    oracle = Oracle(default_grammar(), tokenizer)
    probs = oracle.distributions(tokenizer.encode("Once upon a time, there was a"))[-1]
    for hero in (" princess", " dragon", " robot"):
        assert probs[tokenizer.encode(hero)[0]] > 0.05
    assert probs[tokenizer.encode(" owl")[0]] == 0.0


def test_masked_words_keep_a_floor() -> None:
    """Mean -log p(word | all visible terminals) with 15 % of the terminals masked, over the masked words."""
    tokenizer = own_tokenizers()["words"]
    oracle = Oracle(default_grammar(), tokenizer)
    rng = random.Random(2)
    nats: list[float] = []
    for story in STORIES:
        ids = tokenizer.encode(story)
        masked = [t for t in range(len(ids)) if rng.random() < 0.15]
        posterior = oracle.masked(ids, masked)
        np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-9)
        words = [k for k, t in enumerate(masked) if tokenizer.token_bytes(ids[t]).decode()[-1].isalpha()]
        nats += [-math.log(posterior[k, ids[masked[k]]]) for k in words]
    error = float(np.std(nats)) / math.sqrt(len(nats))
    assert len(nats) > 1500
    assert np.mean(nats) - 1.5 * error > 0.3


def test_one_masked_token_is_bayes_rule_on_the_next_token_distributions() -> None:
    """p(x | left, right) is p(x | left) p(right | left, x), normalised, with whole-text probabilities."""
    tokenizer = own_tokenizers()["words"]
    oracle = Oracle(default_grammar(), tokenizer)
    ids = tokenizer.encode(STORIES[3])
    for t in (8, 20, 31):
        left = oracle.distributions(ids)[t - 1]
        joint = np.zeros(oracle.vocab_size)
        for token in np.flatnonzero(left):
            log_probs = oracle.log_probs([*ids[:t], int(token), *ids[t + 1 :]])
            joint[token] = 0.0 if np.isnan(log_probs[-1]) else np.exp(log_probs[t:].sum())
        np.testing.assert_allclose(oracle.masked(ids, [t])[0], joint / joint.sum(), atol=1e-9)


# ---- what can't be a story ----


def test_from_the_first_impossible_token_on_nothing_is_known() -> None:
    tokenizer = WordTokenizer(SMALL_TEXT)
    oracle = Oracle(small_grammar(), tokenizer)
    ids = tokenizer.encode("Look, a cat! A cat")  # "A" would need another hero that takes it
    log_probs, rows = oracle.log_probs(ids), oracle.distributions(ids)
    assert np.isfinite(log_probs[:5]).all()
    assert log_probs[5] == -np.inf
    assert np.isnan(log_probs[6:]).all()
    assert np.isfinite(rows[:5]).all()
    assert np.isnan(rows[5:]).all()
    assert oracle.advance(oracle.start(), oracle.vocab_size) == (None, -math.inf)  # the mask is no token


def test_masked_refuses_what_it_can_not_answer() -> None:
    tokenizer = WordTokenizer(SMALL_TEXT)
    oracle = Oracle(small_grammar(), tokenizer)
    ids = tokenizer.encode("Look, a cat! A cat said")
    with pytest.raises(ValueError, match="at position 5 can't stand there"):
        oracle.masked(ids, [3, 6])
    with pytest.raises(ValueError, match=r"\[99\] lie outside the row of 8"):
        oracle.masked(ids, [99])
    with pytest.raises(ValueError, match=r"8 masked tokens .* more than 5 steps\. Mask fewer"):
        Oracle(small_grammar(), tokenizer, max_links=5).masked(ids, range(8))
    assert oracle.masked(ids, []).shape == (0, tokenizer.vocab_size)


def test_a_tokenizer_that_joins_two_terminals_is_refused_by_name() -> None:
    class Pairs(WordTokenizer):
        """Joins a comma and the word after it."""

        def encode(self, text: str) -> list[int]:
            ids = super().encode(text)
            comma = self.ids[","]
            return [i for k, i in enumerate(ids) if i != comma or k == len(ids) - 1]

    with pytest.raises(ValueError, match="joins ',' and ' an?',"):
        Oracle(small_grammar(), Pairs(SMALL_TEXT))


def test_sampled_stories_are_legal() -> None:
    oracle = Oracle(default_grammar(), tokenizers.byte_tokenizer())
    for text in (*STORIES[:10], "".join(STORIES[:3]), "\n" + STORIES[4], STORIES[5][:70]):
        found = oracle.legal_prefix(text)
        assert found.complete
        assert (found.text, found.n_chars, found.n_tokens) == (text, len(text), len(text.encode()))


def test_a_broken_story_is_legal_up_to_the_break() -> None:
    oracle = Oracle(default_grammar(), tokenizers.byte_tokenizer())
    text = "Once upon a time, there was a prinxess called Mia."
    found = oracle.legal_prefix(text)
    assert not found.complete
    assert found.text == "Once upon a time, there was a prin"
    assert found.n_chars == found.n_tokens == 34
    words = dict(found.expected)
    assert {" princess", " dragon", " robot"} <= words.keys()
    assert len(found.expected) == 8
    shares = [share for _, share in oracle.legal_prefix(text, n_expected=99).expected]
    assert shares == sorted(shares, reverse=True)
    assert math.fsum(shares) == pytest.approx(1.0, abs=1e-12)


def test_long_range_mistakes_are_found() -> None:
    oracle = Oracle(default_grammar(), tokenizers.train_bpe(story_text(1, 100), 512))
    begin = "Once upon a time, there was a princess called Mia. She lived by the sea and loved music. "
    middle = "One sunny day, Mia hid a small blue ring beside the pond, so that nobody could find it. "
    assert oracle.legal_prefix(begin + middle).complete
    wrong_pronoun = begin + middle + "A long winter came, and he"
    found = oracle.legal_prefix(wrong_pronoun)
    assert wrong_pronoun[found.n_chars :] == "he"
    assert found.expected == [(" she", pytest.approx(1.0))]
    assert oracle.legal_prefix(begin.replace("She", "He")).n_chars == begin.index("She")


@pytest.mark.parametrize(
    ("text", "n_chars", "expected"),
    [
        ("", 0, {"Once": 3 / 4, "Look": 1 / 4}),
        ("Xylophone", 0, {"Once": 3 / 4, "Look": 1 / 4}),
        ("Look, a", 7, {" cat": 1.0}),  # a whole word: what comes next
        ("Look, an", 8, {" owl": 1.0}),
        (
            "Once, a cat called Ann hid her ",
            31,
            {" red": 3 / 4, " orange": 1 / 4},
        ),  # a space: any word can come
        ("Look, a cat! An owl said, “Cat!”", 32, {"!”\n": 1.0}),
        ("Look, a cat! An owl said, “Cat!”\nL", 34, {"Look": 1.0}),
        ("Once, a cat called Ann hid his", 28, {" her": 1.0}),
    ],
)
def test_expected_words_are_those_of_the_small_grammar(
    text: str, n_chars: int, expected: dict[str, float]
) -> None:
    found = Oracle(small_grammar(), tokenizers.byte_tokenizer()).legal_prefix(text)
    assert found.n_chars == n_chars
    assert dict(found.expected) == pytest.approx(expected, abs=1e-12)


def test_legality_of_a_text_that_the_tokenizer_does_not_know() -> None:
    tokenizer = tokenizers.char_tokenizer(SMALL_TEXT)
    found = Oracle(small_grammar(), tokenizer).legal_prefix("Look, a c\u00e4t! \ud800")
    assert (found.text, found.n_tokens, found.complete) == ("Look, a c", 9, False)


def test_a_very_long_text_does_not_underflow() -> None:
    oracle = Oracle(small_grammar(), tokenizers.byte_tokenizer())
    text = "Look, an owl! A cat said, “Owl!”\n" * 400  # 12 to the power of -400
    found = oracle.legal_prefix(text + "Look at")
    assert found.n_chars == len(text) + len("Look")
    assert dict(found.expected) == pytest.approx({",": 1.0})
    assert oracle.log_probs(tokenizers.byte_tokenizer().encode(text)).sum() == pytest.approx(
        400 * math.log(1 / 12)
    )


# ---- cost ----


def test_small_caches_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = own_tokenizers()["words"]
    ids = tokenizer.encode("".join(STORIES[:4]))
    usual = Oracle(default_grammar(), tokenizer).distributions(ids)
    monkeypatch.setattr(automaton, "MOVES_KEPT", 7)
    monkeypatch.setattr(oracle, "TABLES_KEPT", 7)
    small = Oracle(Grammar.load(), tokenizer)
    np.testing.assert_array_equal(small.distributions(ids), usual)
    assert len(small._tables) <= 7
    assert len(small.grammar.automaton._moves) <= 8


def test_places_are_few_however_many_stories_are_read() -> None:
    """The moves are kept by place and by the registers read there, not by all that a story remembers."""
    grammar = Grammar.load()
    counts = []
    for seed in (0, 1):
        grammar.log_prob(story_text(seed, 120, grammar))
        counts.append(len(grammar.automaton._moves))
    assert counts[1] < 1.5 * counts[0]
    assert counts[1] < automaton.MOVES_KEPT / 2


def test_split_terminals_are_what_the_oracle_steps_over() -> None:
    tokenizer = WordTokenizer(SMALL_TEXT)
    text = "Look, a cat! An owl said, “Cat!”\n"
    assert [tokenizer.terminals[i] for i in tokenizer.encode(text)] == split_terminals(text)
