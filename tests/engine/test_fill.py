"""Filling blanks: every way against a slow reference, Gibbs sampling against a joint that is known."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine import fill, fill_scores, infill, row_reading
from engine.config import ModelConfig
from engine.dice import fit
from engine.fill import Guesses
from engine.grammar import default_grammar
from engine.metrics import log_softmax
from engine.model import Transformer
from engine.oracle import Oracle
from engine.tokenizers import byte_tokenizer

V, T, MASK = 7, 9, 7
IDS = [3, 1, 4, 1, 5, 0, 2, 6, 5]
HIDDEN = [2, 5, 6]


def tiny(objective: str, *, seed: int = 3, context_length: int = 16) -> Transformer:
    config = ModelConfig(
        vocab_size=V + (objective == "mlm"), context_length=context_length, n_layer=2, n_head=2, d_model=16,
        objective=objective,  # type: ignore[arg-type]
    )  # fmt: skip
    model = Transformer(config, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(6)  # sharp, so that no two fillings are nearly the same
    return model.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def masked() -> Transformer:
    return tiny("mlm")


@pytest.fixture(scope="module")
def causal() -> Transformer:
    return tiny("clm")


def slow_row(model: Transformer, ids: Sequence[int], open_places: Sequence[int], place: int) -> NDArray:
    """Log-probabilities of the ordinary ids in one place, straight from a forward pass."""
    seen = [MASK if i in open_places else token for i, token in enumerate(ids)]
    logits = model(torch.tensor([seen]))[0, place, :V].double()
    return torch.log_softmax(logits, 0).numpy()


def log_prob_of(model: Transformer, ids: Sequence[int], begin: int) -> float:
    """Chain rule: log p(ids[begin:] | ids[:begin]) of a causal model."""
    logs = torch.log_softmax(model(torch.tensor([list(ids)]))[0].double(), -1)
    return sum(float(logs[t - 1, ids[t]]) for t in range(begin, len(ids)))


def test_one_pass_takes_every_blank_from_its_own_distribution(masked: Transformer) -> None:
    found = fill.one_pass(fill.masked_guesses(masked, MASK), IDS, HIDDEN)
    rows = [slow_row(masked, IDS, HIDDEN, place) for place in HIDDEN]
    assert [c.id for c in found.choices] == [int(row.argmax()) for row in rows]
    assert [c.place for c in found.choices] == HIDDEN
    np.testing.assert_allclose([c.log_prob for c in found.choices], [row.max() for row in rows], atol=1e-5)
    assert found.log_prob == pytest.approx(sum(row.max() for row in rows), abs=1e-5)
    assert [found.ids[i] for i in range(T) if i not in HIDDEN] == [
        IDS[i] for i in range(T) if i not in HIDDEN
    ]


def test_left_to_right_reads_what_it_filled(masked: Transformer) -> None:
    found = fill.left_to_right(fill.masked_guesses(masked, MASK), IDS, HIDDEN)
    now, still, logs = list(IDS), list(HIDDEN), []
    for place in HIDDEN:
        row = slow_row(masked, now, still, place)
        now[place] = int(row.argmax())
        still.remove(place)
        logs.append(row.max())
    assert found.ids == tuple(now)
    np.testing.assert_allclose([c.log_prob for c in found.choices], logs, atol=1e-5)


def test_the_most_certain_blank_is_filled_first(masked: Transformer) -> None:
    found = fill.surest_first(fill.masked_guesses(masked, MASK), IDS, HIDDEN)
    now, still, order = list(IDS), list(HIDDEN), []
    while still:
        rows = {place: slow_row(masked, now, still, place) for place in still}
        place = max(still, key=lambda p: (rows[p].max(), -p))
        now[place] = int(rows[place].argmax())
        still.remove(place)
        order.append(place)
    assert [c.place for c in found.choices] == order
    assert found.ids == tuple(now)
    assert order != HIDDEN, "the model should be one whose order is not that of the text"


def test_certain_means_a_probable_best_guess_whatever_the_others_are() -> None:
    rows = {0: [0.5, 0.3, 0.2], 1: [0.8, 0.2 - 1e-6, 1e-6], 2: [0.6, 0.2, 0.2]}

    def guesses(ids: Sequence[int], hidden: Sequence[int]) -> NDArray[np.float64]:
        return np.log([rows[place] for place in hidden])

    found = fill.surest_first(guesses, [0, 0, 0], [0, 1, 2])
    assert [choice.place for choice in found.choices] == [1, 2, 0]


@pytest.mark.parametrize("way", [fill.one_pass, fill.left_to_right, fill.surest_first])
def test_each_way_is_a_distribution_over_all_fillings(way: object, masked: Transformer) -> None:
    """The probabilities of all V² fillings of two blanks add up to 1, whatever the order."""
    guesses, hidden = fill.masked_guesses(masked, MASK), [2, 6]
    total = 0.0
    for pair in itertools.product(range(V), repeat=2):
        truth = list(IDS)
        truth[2], truth[6] = pair
        total += math.exp(way(guesses, truth, hidden, forced=truth).log_prob)  # type: ignore[operator]
    assert total == pytest.approx(1.0, abs=1e-6)


def test_what_stands_in_a_blank_is_not_looked_at(masked: Transformer) -> None:
    guesses = fill.masked_guesses(masked, MASK)
    other = [MASK if i in HIDDEN else token for i, token in enumerate(IDS)]
    for way in (fill.one_pass, fill.left_to_right, fill.surest_first):
        assert way(guesses, IDS, HIDDEN) == way(guesses, other, HIDDEN)
    assert fill.gibbs(guesses, IDS, HIDDEN, n_sweeps=3, seed=1) == fill.gibbs(
        guesses, other, HIDDEN, n_sweeps=3, seed=1
    )


def test_the_mask_is_never_a_filler(masked: Transformer) -> None:
    rows = fill.masked_guesses(masked, MASK)(IDS, HIDDEN)
    assert rows.shape == (3, V)
    np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1.0, atol=1e-9)


# ---- Gibbs sampling ----


def joint_of(seed: int) -> NDArray[np.float64]:
    """(3,3,3) a joint distribution of three places with three tokens each."""
    weights = torch.rand(27, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.15
    return (weights / weights.sum()).numpy().reshape(3, 3, 3)


def conditionals(joint: NDArray[np.float64]) -> Guesses:
    """The exact conditionals of a joint: everything but the wanted places is given."""

    def guesses(ids: Sequence[int], hidden: Sequence[int]) -> NDArray[np.float64]:
        rows = []
        for place in hidden:
            others = [slice(None) if i in hidden else ids[i] for i in range(3)]
            part = joint[tuple(others)]
            axes = [i for i in range(3) if i in hidden]
            row = part.sum(axis=tuple(k for k, i in enumerate(axes) if i != place))
            rows.append(np.log(row / row.sum()))
        return np.array(rows)

    return guesses


def sweep_matrix(joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """(27,27) chances from state to state in one sweep of the three places."""
    states = list(itertools.product(range(3), repeat=3))
    number = {state: i for i, state in enumerate(states)}
    whole = np.eye(27)
    for place in range(3):
        step = np.zeros((27, 27))
        for state in states:
            for token in range(3):
                after = (*state[:place], token, *state[place + 1 :])
                given = joint[tuple(slice(None) if i == place else x for i, x in enumerate(state))]
                step[number[state], number[after]] += given[token] / given.sum()
        whole = whole @ step
    return whole


def test_gibbs_sampling_of_exact_conditionals_has_their_joint_in_the_long_run() -> None:
    """Chi-square over all 27 states; of honest samplers 1 in 1,000 would fail, with another seed."""
    joint, n, apart = joint_of(5), 1500, 6
    others = sorted(abs(np.linalg.eigvals(sweep_matrix(joint))), reverse=True)[1]
    assert others**apart < 1e-4, "so far apart, samples must be as good as independent"
    found = fill.gibbs(conditionals(joint), [0, 0, 0], [0, 1, 2], n_sweeps=n * apart, seed=11)
    tokens = np.array([choice.id for choice in found.choices]).reshape(n * apart, 3)[apart - 1 :: apart]
    counts = np.bincount(tokens @ [9, 3, 1], minlength=27)
    assert fit(counts, joint.reshape(-1)).p_value > 0.001
    assert fit(counts, joint_of(6).reshape(-1)).p_value < 1e-6, "the test must see another joint"


def test_gibbs_steps_go_through_the_places_and_say_their_probability() -> None:
    joint = joint_of(5)
    found = fill.gibbs(conditionals(joint), [0, 0, 0], [0, 2], n_sweeps=2, seed=1, start=[2, 0, 1])
    assert [(c.place, c.sweep) for c in found.choices] == [(0, 1), (2, 1), (0, 2), (2, 2)]
    first = joint[:, 0, 1] / joint[:, 0, 1].sum()  # the other places as they stood at the start
    assert found.choices[0].log_prob == pytest.approx(math.log(first[found.choices[0].id]))
    assert found.log_prob is None
    assert found.last[2] == found.choices[3]
    assert found.after(1) == {0: found.choices[0].id}


def test_gibbs_repeats_with_its_seed_and_starts_where_it_says(masked: Transformer) -> None:
    guesses = fill.masked_guesses(masked, MASK)
    a, b = (fill.gibbs(guesses, IDS, HIDDEN, n_sweeps=4, seed=s) for s in (1, 1))
    assert a == b
    start = fill.gibbs_start(guesses, IDS, HIDDEN, 1)
    assert start.keys() == set(HIDDEN) and all(0 <= token < V for token in start.values())
    given = [start.get(i, token) for i, token in enumerate(IDS)]
    assert fill.gibbs(guesses, IDS, HIDDEN, n_sweeps=4, seed=1, start=given) == a
    assert len({fill.gibbs(guesses, IDS, HIDDEN, n_sweeps=4, seed=s).choices for s in range(9)}) > 1


# ---- a causal model ----


def test_going_on_is_greedy_over_the_left(causal: Transformer) -> None:
    found = infill.go_on(causal, IDS, HIDDEN)
    now, logs = list(IDS), []
    for place in HIDDEN:
        row = torch.log_softmax(causal(torch.tensor([now[:place]]))[0, -1].double(), 0)
        now[place] = int(row.argmax())
        logs.append(float(row.max()))
    assert found.ids == tuple(now)
    assert found.log_prob == pytest.approx(sum(logs), abs=1e-5)
    changed = [*IDS[:7], 0, 0]  # what comes after the last blank does not matter
    assert infill.go_on(causal, changed, HIDDEN).choices == found.choices


@pytest.mark.parametrize("hidden", [[4], [8], [2, 5], [3, 4]])
def test_rescoring_every_filling_is_the_model_s_own_posterior(hidden: list[int], causal: Transformer) -> None:
    """p(fillers | all that is visible) by enumerating the joint, normalised over all V^K fillings."""
    every = V ** len(hidden)
    found = infill.rescore(causal, IDS, hidden, tried=every, kept=every)
    logs = {}
    for tokens in itertools.product(range(V), repeat=len(hidden)):
        whole = list(IDS)
        for place, token in zip(hidden, tokens, strict=True):
            whole[place] = token
        logs[tokens] = log_prob_of(causal, whole, hidden[0])
    expected = dict(zip(logs, np.exp(log_softmax(np.array(list(logs.values())))), strict=True))
    assert found.exact and len(found.log_probs) == every
    for row, share, log in zip(found.tried.tolist(), found.shares, found.log_probs, strict=True):
        assert share == pytest.approx(expected[tuple(row)], abs=1e-5)
        assert log == pytest.approx(logs[tuple(row)], abs=1e-3)
    best = max(expected, key=lambda tokens: expected[tokens])
    assert tuple(found.fill.ids[place] for place in hidden) == best
    assert found.fill.log_prob == pytest.approx(math.log(expected[best]), abs=1e-4)
    place = hidden[-1]
    for token, share in found.share_of(place).items():
        assert share == pytest.approx(sum(p for t, p in expected.items() if t[-1] == token), abs=1e-5)


def test_rescoring_some_fillings_says_so_and_scores_them_right(causal: Transformer) -> None:
    found = infill.rescore(causal, IDS, [2, 5], tried=5, kept=2)
    assert not found.exact and found.fill.log_prob is None
    assert len(found.log_probs) == 5
    assert list(found.log_probs) == sorted(found.log_probs, reverse=True)
    for row, log in zip(found.tried.tolist(), found.log_probs, strict=True):
        whole = [*IDS[:2], row[0], *IDS[3:5], row[1], *IDS[6:]]
        assert log == pytest.approx(log_prob_of(causal, whole, 2), abs=1e-3)
    assert not infill.rescore(causal, IDS, [4], tried=V - 1).exact
    assert not infill.rescore(causal, IDS, [2, 5], tried=V * V, kept=2).exact, "five beginnings were dropped"


def test_many_rows_are_read_in_parts(causal: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = infill.rescore(causal, IDS, [2, 5], tried=49, kept=49)
    monkeypatch.setattr(row_reading, "ROWS_AT_ONCE", 4)
    parts = infill.rescore(causal, IDS, [2, 5], tried=49, kept=49)
    np.testing.assert_allclose(parts.log_probs, whole.log_probs, atol=1e-4)


def test_the_probability_of_a_text_is_the_chain_rule(causal: Transformer) -> None:
    assert infill.text_log_prob(causal, IDS) == pytest.approx(log_prob_of(causal, IDS, 1), abs=1e-4)
    assert infill.text_log_prob(causal, IDS[:2]) == pytest.approx(log_prob_of(causal, IDS[:2], 1), abs=1e-5)
    assert infill.text_log_prob(causal, IDS[:1]) == 0.0


# ---- what can't be done ----


def test_what_can_t_be_filled_is_refused(masked: Transformer, causal: Transformer) -> None:
    guesses = fill.masked_guesses(masked, MASK)
    with pytest.raises(ValueError, match="Nothing is hidden"):
        fill.one_pass(guesses, IDS, [])
    with pytest.raises(ValueError, match="between 0 and 8"):
        fill.left_to_right(guesses, IDS, [9])
    with pytest.raises(ValueError, match="at least 1 sweep, not 0"):
        fill.gibbs(guesses, IDS, HIDDEN, n_sweeps=0, seed=1)
    with pytest.raises(ValueError, match="left of the first token"):
        infill.go_on(causal, IDS, [0, 3])
    with pytest.raises(ValueError, match="Choose a causal model"):
        infill.rescore(masked, IDS, [3])
    with pytest.raises(ValueError, match="at most 4 tokens but the text has 9"):
        infill.rescore(tiny("clm", context_length=4), IDS, [3])
    with pytest.raises(ValueError, match="tried and kept, not 0 and 8"):
        infill.rescore(causal, IDS, [3], tried=0)


@pytest.mark.parametrize("objective", ["mlm", "clm"])
def test_a_model_that_diverged_is_refused(objective: str) -> None:
    model = tiny(objective)
    model.embedding.weight.fill_(math.nan)
    with pytest.raises(ValueError, match="not finite"):
        if objective == "mlm":
            fill.one_pass(fill.masked_guesses(model, MASK), IDS, HIDDEN)
        else:
            infill.go_on(model, IDS, HIDDEN)


# ---- choosing places ----


def test_places_by_chance() -> None:
    for seed in range(20):
        row = fill.some_places(12, 5, seed, first=1, in_a_row=True)
        assert row == list(range(row[0], row[0] + 5)) and row[0] >= 1 and row[-1] < 12
        free = fill.some_places(12, 5, seed, first=1)
        assert free == sorted(set(free)) and len(free) == 5 and min(free) >= 1 and max(free) < 12
    assert fill.some_places(3, 5, 1) == [0, 1, 2]
    assert fill.some_places(1, 5, 1, first=1) == []
    begins = {fill.some_places(12, 5, seed, first=1, in_a_row=True)[0] for seed in range(60)}
    assert begins == set(range(1, 8)), "every place must be possible"


def test_words_are_whole() -> None:
    data = [b"On", b"ce", b" up", b",", b" caf", "é".encode(), b" x", b"\xff", b"9"]
    assert fill.words_of(data) == [[0, 1], [2], [4, 5], [6]]
    assert fill.words_of([]) == []


# ---- how often each is right ----


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [  # by the closed form: the roots of (p - x)² = z² x (1 - x) / n
        (0, 10, 0.0, 3.841459 / 13.841459),
        (10, 10, 10 / 13.841459, 1.0),
        (50, 100, 0.4038315, 0.5961685),
    ],
)
def test_wilson_s_interval(right: int, n: int, low: float, high: float) -> None:
    found = fill_scores.wilson(right, n)
    assert found == pytest.approx((low, high), abs=1e-6)
    z2, p = 1.959964**2, right / n
    for x in found:
        assert (p - x) ** 2 == pytest.approx(z2 * x * (1 - x) / n, abs=1e-9)


def test_wilson_refuses_what_is_no_share() -> None:
    for right, n in ((0, 0), (3, 2), (-1, 5)):
        with pytest.raises(ValueError, match="1 trial or more"):
            fill_scores.wilson(right, n)


def test_held_out_rows_begin_after_the_end_of_another_story() -> None:
    tokenizer = byte_tokenizer()
    rows = fill_scores.held_out_rows(tokenizer, 3, 1, 4000)
    grammar = default_grammar()
    for row in rows:
        assert tokenizer.token_bytes(row[0]).endswith(b"\n")
        assert math.isfinite(grammar.log_prob(tokenizer.decode(row[1:])))
    assert rows == fill_scores.held_out_rows(tokenizer, 3, 1, 4000)
    assert rows != fill_scores.held_out_rows(tokenizer, 3, 2, 4000)
    with pytest.raises(ValueError, match="No story fits the context of 20 tokens"):
        fill_scores.held_out_rows(tokenizer, 3, 1, 20)


def test_the_exact_answer_scores_itself() -> None:
    """The expected share is that of the largest posteriors; the truth’s probability is the joint one."""
    tokenizer = byte_tokenizer()
    oracle = Oracle(default_grammar(), tokenizer)
    ids = tokenizer.encode("\nOnce upon a time, there was a shy fox called Lily.")
    hidden = [i for i in range(len(ids) - 5, len(ids) - 1)]  # the four letters of the name
    score = fill_scores.score_exact(oracle, ids, hidden)
    rows = oracle.masked(ids, hidden)
    assert score.best == pytest.approx(float(rows.max(axis=1).sum()))
    # names of a fox ending in a full stop after 4 letters: Lily 3, Rosa 2, Anna 1, Nora 1 of those weights
    assert score.true_log_prob == pytest.approx(math.log(3 / 7), abs=1e-9)
    assert score.n_places == 4 and score.possible == fill_scores.is_possible(
        oracle, [*ids[:-5], *rows.argmax(axis=1).tolist(), ids[-1]]
    )


def test_scores_are_added_up() -> None:
    one = fill_scores.StoryScore(2, 3, True, -1.5)
    two = fill_scores.StoryScore(1, 5, False, -0.5)
    found = fill_scores.together([one, two])
    assert (found.n_right, found.n_places, found.n_possible, found.n_stories) == (3, 8, 1, 2)
    assert (found.low, found.high) == fill_scores.wilson(3, 8)
    assert found.true_nats == pytest.approx(2.0 / 8)
    assert found.share == pytest.approx(3 / 8)
    assert found.best is None
    without = fill_scores.StoryScore(1, 5, False, None)
    assert fill_scores.together([one, without]).true_nats is None
