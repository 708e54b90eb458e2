"""Exercises on training: the loop, the learning rate, scale, and what a measurement is worth."""

from random import Random

import numpy as np

from engine.config import TrainConfig
from engine.exercise import Made, concept, number, order
from engine.scaling import Law
from engine.schedule import learning_rate_at


def training_order(rng: Random) -> Made:
    """One step of training."""
    return Made(order(rng, ["draw", "shift", "forward", "loss", "backward", "update"]))


def probability_order(rng: Random) -> Made:
    """From a text to the probability of its next token."""
    return Made(order(rng, ["tokenize", "embed", "attend", "logits", "softmax"]))


def warm_up(rng: Random) -> Made:
    """The learning rate of an update in the warm-up."""
    rate, warmup = rng.choice((0.001, 0.002, 0.003, 0.006, 0.01)), rng.choice((50, 100, 200, 500))
    k = rng.choice([n for n in range(5, warmup, 5)])
    config = TrainConfig(steps=10 * warmup, warmup_steps=warmup, learning_rate=rate)
    slips = {"full_rate": rate, "one_early": rate * (k - 1) / warmup, "going_down": rate * (1 - k / warmup)}
    return number(learning_rate_at(k - 1, config), slips=slips, rate=rate, warmup=warmup, k=k)


def scaling_ratio(rng: Random) -> Made:
    """What is left above the floor when a model grows."""
    times, alpha, floor = rng.choice((2, 4, 10)), rng.choice((0.1, 0.2, 0.25, 0.3, 0.5)), 1.0
    law = Law(np.ones(1), np.ones(1), floor, 1.0, alpha, 1.0, 0.0, 0.95)
    left = float((law(times) - floor) / (law(1) - floor))
    slips = {"saved": 1 - left, "inverse": 1 / times, "grown": 1 / left, "times_alpha": times * alpha}
    return number(left, "share", slips=slips, times=times, alpha=alpha)


def tokens_seen(rng: Random) -> Made:
    """How many tokens a training reads."""
    steps, b, t = rng.choice((200, 500, 1000, 2000)), rng.choice((8, 16, 32)), rng.choice((64, 128, 192))
    slips = {"one_step": b * t, "no_rows": steps * t, "no_length": steps * b}
    return number(steps * b * t, "tokens", whole=True, slips=slips, steps=steps, B=b, T=t)


def held_out(rng: Random) -> Made:
    """Why a model is measured on text that it has not seen."""
    return Made(concept(rng, ["memory", "new"], ["faster", "easier", "lower", "shuffle", "gradient"]))
