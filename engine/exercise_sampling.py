"""Exercises on choosing the next token: temperature, cuts, greedy, and the loop of generation."""

import math
from random import Random

import numpy as np

from engine import metrics
from engine.exercise import Choice, Made, Option, choice, number, order
from engine.stages import next_token_distribution

TOKENS = ("mat", "sofa", "dog", "moon", "hat", "tree")


def temperature(rng: Random) -> Made:
    """A probability at another temperature."""
    logits = rng.sample(range(0, 5), 3)
    index, t = rng.randrange(3), rng.choice((0.5, 2.0))
    p = next_token_distribution(np.array(logits, float), temperature=t)[index]
    slips = {
        "no_temperature": metrics.softmax(np.array(logits))[index],
        "temperature_upside_down": metrics.softmax(np.array(logits) * t)[index],
        "after_softmax": metrics.softmax(np.array(logits))[index] / t,
    }
    return number(p, "share", slips=slips, logits=logits, index=index, T=t, scaled=[z / t for z in logits])


def _distribution(rng: Random) -> list[float]:
    """Five different probabilities of two digits, the largest first."""
    while True:
        cuts = sorted(rng.sample(range(2, 99), 4))
        parts = sorted((b - a for a, b in zip([0, *cuts], [*cuts, 100], strict=True)), reverse=True)
        if len(set(parts)) == 5:
            return [part / 100 for part in parts]


def _listed(tokens: list[str], probs: list[float]) -> str:
    return "\n".join(f"{token:<6}{p:.2f}" for token, p in zip(tokens, probs, strict=True))


def top_k(rng: Random) -> Made:
    """A probability after a top-k cut."""
    probs, k = _distribution(rng), rng.choice((2, 3))
    tokens, place = rng.sample(TOKENS, 5), rng.randrange(k)
    p = next_token_distribution(np.log(probs), top_k=k)[place]
    slips = {"not_scaled_up": probs[place], "evenly": 1 / k}
    return number(
        p, "share", slips=slips, table=_listed(tokens, probs), k=k, token=tokens[place], p=probs[place],
        kept=probs[:k],
    )  # fmt: skip


def _stay(rng: Random, tokens: list[str], probs: list[float], kept: np.ndarray) -> Choice:
    options = [Option("kept" if on else "cut", f"{token} {p:.2f}")
               for token, p, on in zip(tokens, probs, kept, strict=True)]  # fmt: skip
    rng.shuffle(options)
    right = frozenset(i for i, option in enumerate(options) if option.key == "kept")
    return Choice(tuple(options), right, several=True)


def top_p(rng: Random) -> Made:
    """Which tokens stay after a top-p cut."""
    while True:
        probs, p = _distribution(rng), rng.choice((0.5, 0.6, 0.7, 0.8, 0.9))
        sums = np.cumsum(probs)
        if np.abs(sums - p).min() > 0.015:
            break
    tokens = rng.sample(TOKENS, 5)
    kept = next_token_distribution(np.log(probs), top_p=p) > 0
    n = int(kept.sum())
    return Made(_stay(rng, tokens, probs, kept), {"top_p": p, "mass": round(float(sums[n - 1]), 2)})


def min_p(rng: Random) -> Made:
    """Which tokens stay after a min-p cut."""
    while True:
        probs, p = _distribution(rng), rng.choice((0.1, 0.2, 0.3, 0.5))
        limit = p * probs[0]
        if min(abs(x - limit) for x in probs) > 0.004 and probs[-1] < limit:
            break
    tokens = rng.sample(TOKENS, 5)
    kept = next_token_distribution(np.log(probs), min_p=p) > 0
    values = {"min_p": p, "most": probs[0], "limit": round(limit, 4)}
    return Made(_stay(rng, tokens, probs, kept), values)


def greedy(rng: Random) -> Made:
    """Which token greedy choice takes, whatever the temperature."""
    tokens = rng.sample(TOKENS, 4)
    logits = [x / 10 for x in rng.sample(range(-20, 40), 4)]
    t = rng.choice((0.5, 1.5, 2.0, 3.0))
    best = tokens[int(next_token_distribution(np.array(logits), temperature=0).argmax())]
    second = tokens[logits.index(sorted(logits)[-2])]
    others = [Option("second" if token == second else "lower", token) for token in tokens if token != best]
    table = "\n".join(f"{token:<6}{z:4.1f}" for token, z in zip(tokens, logits, strict=True))
    return Made(choice(rng, [Option("largest", best)], others), {"table": table, "T": t})


def generation_order(rng: Random) -> Made:
    """The loop of generation."""
    return Made(order(rng, ["tokenize", "crop", "forward", "softmax", "draw", "append"]))


def effective_choices(rng: Random) -> Made:
    """How many equally likely tokens would be as uncertain: exp of the entropy."""
    entropy = rng.randint(2, 13) / 2
    slips = {"entropy": entropy, "exp_of_bits": math.exp(entropy)}
    return number(metrics.perplexity(entropy * math.log(2)), slips=slips, bits=entropy)
