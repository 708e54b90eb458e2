"""Exercises on probabilities: softmax, the chain rule, counts."""

import math
from collections import Counter
from random import Random

import numpy as np

from engine.exercise import Made, number
from engine.metrics import softmax

WORDS = ("the", "cat", "sat", "on", "a", "mat")


def softmax_three(rng: Random) -> Made:
    """One probability of a softmax over three small logits."""
    logits = rng.sample(range(-1, 4), 3)
    index = rng.randrange(3)
    z = logits[index]
    slips = {"not_divided": math.exp(z)}
    if sum(logits):
        slips["share_of_logits"] = z / sum(logits)
    return number(softmax(np.array(logits))[index], "share", slips=slips, logits=logits, index=index, z=z)


def softmax_equal(rng: Random) -> Made:
    """Softmax of equal logits."""
    k, z = rng.choice((2, 2, 3, 4, 5, 8)), rng.choice((0, 0, 1, 2, 5))
    slips = {"not_divided": math.exp(z), "loss": math.log(k)}
    return number(softmax(np.full(k, z))[0], "share", slips=slips, logits=[z] * k, k=k, z=z)


def sigmoid_two(rng: Random) -> Made:
    """Softmax of (z, 0) is the sigmoid of z."""
    z = rng.choice([x / 10 for x in range(-25, 26) if abs(x) > 2])
    p = softmax(np.array([z, 0.0]))[0]
    return number(p, "share", slips={"other_class": 1 - p, "not_divided": math.exp(z)}, z=z)


def shift_invariance(rng: Random) -> Made:
    """The same number added to all logits."""
    a, b = rng.sample(range(0, 4), 2)
    shift = rng.choice((-100, -7, 5, 10, 50, 100))
    shifted = [a + shift, b + shift]
    p = softmax(np.array(shifted))[0]
    slips = {"other_class": 1 - p, "share_of_logits": shifted[0] / sum(shifted)}
    return number(p, "share", slips=slips, logits=shifted, a=a, b=b, shift=shift, gap=a - b)


def chain_rule(rng: Random) -> Made:
    """The probability of a text from those of its tokens."""
    probs = [rng.randint(2, 9) / 10 for _ in range(rng.randint(2, 4))]
    mean = sum(probs) / len(probs)
    value = math.exp(math.fsum(map(math.log, probs)))
    slips = {"mean": mean, "sum": sum(probs), "last_one": probs[-1], "loss": -math.log(value)}
    return number(value, "share", slips=slips, probs=probs, n_tokens=len(probs))


def joint_digits(rng: Random) -> Made:
    """How many digits the number of possible texts has."""
    v, n = rng.choice((256, 500, 1024, 5000, 32_000, 50_000)), rng.randint(4, 20)
    slips = {"digits_times": n * len(str(v)), "product": len(str(v * n))}
    return number(len(str(v**n)), "digits", whole=True, slips=slips, V=v, n_tokens=n)


def n_gram(rng: Random) -> Made:
    """A bigram probability from counts."""
    while True:
        text = rng.choices(WORDS[:4], k=rng.randint(10, 13))
        pairs = Counter(zip(text, text[1:], strict=False))
        contexts = Counter(text[:-1])
        (h, w), together = rng.choice(sorted(pairs.items()))
        if contexts[h] >= 3 and 1 <= together < contexts[h] and h != w:
            break
    slips = {
        "all_words": together / len(text),
        "all_pairs": together / (len(text) - 1),
        "wrong_context": together / Counter(text[1:])[w],
        "unigram": text.count(w) / len(text),
    }
    return number(
        together / contexts[h], "share", slips=slips, text=" ".join(text), h=h, w=w, together=together,
        before=contexts[h],
    )  # fmt: skip
