"""The sentence about a run: each case from records made for it, at its threshold, and never two at once."""

import math
from itertools import product

import pytest

from engine.reading import read
from engine.verdict import (
    AT_THE_FLOOR,
    CLEAR_RISE,
    DIVERGES,
    LEVEL,
    STILL_FALLING,
    WORSE_THAN_GUESSING,
    last_passed,
    verdict,
)

LN_V = math.log(512)
COUNTS = {"uniform": LN_V, "unigram": 5.0, "bigram": 2.4, "trigram": 1.2}
KINDS = {
    "nothing": "nothing to learn",
    "not-finite": "not a finite number",
    "start": "Before the first step",
    "diverged": "A smaller learning rate helps",
    "overfitting": "Overfitting since",
    "floor": "almost nothing is left",
    "plateau": "the loss rose|Level: it changed",
    "learning": "Learning: |Still learning when",
}


def evaluation(step, train, val):
    return {"kind": "eval", "step": step, "train_loss": train, "val_loss": val, "bits_per_byte": None}


def run(*evals, floor=None, counts=None):
    """Records of a run that starts at ln 512; evals are (step, train loss, validation loss)."""
    records = [evaluation(0, LN_V, LN_V)]
    if counts:
        records.append({"kind": "baseline", "step": 0, **counts, "bits_per_byte": None})
    if floor is not None:
        records.append({"kind": "floor", "step": 1, "value": floor, "bits_per_byte": None})
    return records + [evaluation(*e) for e in evals]


def said(records, **more):
    return verdict(read(records, 512), 512, **more)


@pytest.mark.parametrize(
    ("records", "kind", "words"),
    [
        (run(), "start", "Before the first step the model guesses: 6.24 nats, close to ln V = 6.24"),
        (run((9, 9.0, 9.0)), "diverged", "Worse than guessing: 9.00 nats against ln V = 6.24"),
        (
            run((40, 2.2, 2.1), (80, 5.1, 5.0)),
            "diverged",
            "jumped up, from 2.10 nats at step 40 to 5.00, in training as well",
        ),
        (
            run((600, 1.6, 1.5), (900, 0.4, 1.9)),
            "overfitting",
            "Overfitting since step 600: there validation was best, at 1.50 nats. It has risen to 1.90 while "
            "training fell to 0.40",
        ),
        (run((9, 0.6, 0.54), floor=0.5), "floor", "Only 0.040 nats above the floor"),
        (run((9, 0.6, 0.4), floor=0.5), "floor", "Level with the floor"),
        (run((9, None, math.nan)), "not-finite", "At step 9 the loss was not a finite number"),
        (run((9, 6.0, 6.0)), "learning", "Still near guessing: 6.00 nats of ln V = 6.24"),
        (run((9, 1.6, math.log(4))), "learning", "between 4.0 equally likely tokens instead of 512"),
        (
            run((9, 1.6, 1.5), floor=0.5),
            "learning",
            f"1.00 nats above the floor: {(LN_V - 1.5) / (LN_V - 0.5):.0%} of the way",
        ),
    ],
)
def test_each_case_has_its_words(records, kind, words):
    found = said(records)
    assert found.kind == kind and words in found.words


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (6.3, "Still no better than guessing: 6.30 nats, ln V = 6.24."),
        (LN_V - LEVEL / 2, "Level with the uniform baseline"),
        (5.5, "Better than guessing, still above the unigram baseline: it knows less than how frequent"),
        (
            5.0 + LEVEL / 2,
            "Level with the unigram baseline: it knows how frequent each token is, and no more.",
        ),
        (
            3.0,
            "Between unigram and bigram: it knows how frequent each token is, but less than counts of pairs.",
        ),
        (2.4 - LEVEL / 2, "Level with the bigram baseline: it knows as much as counts of pairs."),
        (
            2.0,
            "Between bigram and trigram: it knows more than counts of pairs, but less than counts of triples",
        ),
        (1.0, "Better than the trigram baseline: it uses more than the two tokens before."),
    ],
)
def test_it_says_which_baseline_was_passed_last(loss, words):
    assert words in said(run((9, loss, loss), counts=COUNTS)).words


def test_the_order_of_baselines_is_that_of_their_losses():
    """On a short text counts of triples may do worse than counts of pairs."""
    now = read(run((9, 2.2, 2.2), counts={**COUNTS, "bigram": 2.0, "trigram": 2.3}), 512)
    assert now is not None and last_passed(now) == ("trigram", "bigram", False)


def test_a_masked_model_is_not_said_to_look_backwards_only():
    records = run((9, 2.0, 2.0), counts={"uniform": LN_V, "unigram": 5.0})
    words = said(records, objective="mlm").words
    assert "Better than the unigram baseline: it uses more than how frequent each token is." in words
    assert "pairs" not in words and "before" not in words


@pytest.mark.parametrize(
    ("before", "after", "kind", "words"),
    [
        (1.50, 1.50 - STILL_FALLING - 1e-6, "learning", "Learning: 0.02 nats in the last 25 steps."),
        (
            1.50,
            1.50 - STILL_FALLING + 1e-3,
            "plateau",
            "Level: it changed by 0.019 nats in the last 25 steps.",
        ),
        (1.50, 1.50, "plateau", "Level: it changed by 0.000 nats in the last 25 steps."),
        (1.50, 1.60, "plateau", "Not learning now: the loss rose by 0.10 nats in the last 25 steps."),
    ],
)
def test_learning_or_level_by_the_last_quarter_of_the_steps(before, after, kind, words):
    """The evaluation at step 75 is the last at least a quarter of the 100 steps back; 90 is too near."""
    found = said(run((50, 4.0, 3.0), (75, 1.6, before), (90, 1.6, before), (100, 1.7, after)))
    assert found.kind == kind and words in found.words


def test_the_words_of_a_run_that_has_ended():
    records = run((75, 2.0, 2.0), (100, 1.5, 1.5))
    assert (
        "Still learning when it ended, 0.50 nats in the last 25 steps: more steps would help."
        in said(records, done=True).words
    )
    assert verdict(None, 512, done=True).words == "Nothing was measured."
    assert verdict(None, 512).kind == "waiting" and verdict(None, 1).kind == "nothing"


def test_without_validation_it_says_what_that_means():
    records = [
        {**evaluation(step, loss, None), "val_loss": None} for step, loss in ((0, 6.2), (5, 4.0), (10, 3.0))
    ]
    found = said(records)
    assert "There is no validation text" in found.words and found.kind == "learning"


@pytest.mark.parametrize(
    ("records", "kind", "beyond", "instead"),
    [
        # each pair: just inside its threshold, and just outside of it
        (run((9, 1.6, 1.5), (18, 1.4, 1.5 + CLEAR_RISE + 1e-9)), "overfitting", (18, 1.4, 1.529), "plateau"),
        (run((9, 6.4, LN_V + WORSE_THAN_GUESSING + 1e-6)), "diverged", (9, 6.4, LN_V + 0.099), "learning"),
        (run((9, 2, 2), (18, 2.6, 2.0 + DIVERGES + 1e-6)), "diverged", (18, 2.6, 2.49), "plateau"),
        (run((9, 0.6, 0.5 + AT_THE_FLOOR - 1e-9), floor=0.5), "floor", (9, 0.6, 0.5501), "learning"),
    ],
)
def test_thresholds(records, kind, beyond, instead):
    assert said(records).kind == kind
    assert said([*records[:-1], evaluation(*beyond)]).kind == instead


def test_a_model_that_memorises_past_guessing_is_not_called_diverged():
    """Validation far above ln V while training falls is overfitting: a smaller rate would not help."""
    found = said(run((50, 2.0, 2.5), (400, 0.01, 7.0)))
    assert found.kind == "overfitting" and "smaller learning rate" not in found.words


def test_never_two_cases_at_once():
    losses = [0.49, 0.53, 1.0, 1.21, 1.5, 2.4, 3.0, 5.0, 6.2, 6.3, 8.0]
    trains, earlier = [0.1, 1.0, 2.5, 6.0, 9.0], [0.6, 1.2, 2.4, 6.2]
    for train, val, before, counts, floor in product(trains, losses, earlier, (None, COUNTS), (None, 0.5)):
        records = run((50, 2.0, 2.0), (75, before, before), (100, train, val), counts=counts, floor=floor)
        found = said(records)
        claims = [kind for kind, words in KINDS.items() if any(w in found.words for w in words.split("|"))]
        assert claims == [found.kind], found.words
        assert len(found.words) < 230 and found.words.endswith(".")
        assert found.words.count("above the floor") <= 1
