"""Exercises on attention and on masked models."""

from random import Random

import numpy as np
import torch

from engine.config import ModelConfig, TrainConfig
from engine.exercise import Choice, Made, Option, concept, number
from engine.mask_draws import SPLIT, chance_of_none
from engine.metrics import softmax
from engine.model import attend
from engine.objectives import price


def attention_weight(rng: Random) -> Made:
    """One attention weight by hand."""
    while True:
        q = [rng.randint(-1, 2) for _ in range(4)]
        keys = [[rng.randint(-1, 2) for _ in range(4)] for _ in range(3)]
        dots = (np.array(keys) @ np.array(q)).tolist()
        if len(set(dots)) == 3 and max(map(abs, dots)) <= 6:
            break
    index = rng.randrange(3)
    shape = (1, 1, -1, 4)
    query, key = (torch.tensor(x, dtype=torch.float64).reshape(shape) for x in (q, keys))
    weight = float(attend(query, key, key, None)[1].flatten()[index])
    slips = {
        "not_scaled": softmax(np.array(dots))[index],
        "scaled_by_d": softmax(np.array(dots) / 4)[index],
    }
    if sum(dots):
        slips["share_of_scores"] = dots[index] / sum(dots)
    listed = "\n".join(f"k{i} = {key}" for i, key in enumerate(keys))
    return number(weight, "share", slips=slips, q=q, keys=listed, index=index, dots=dots)


def causal_pairs(rng: Random) -> Made:
    """How many pairs a causal mask allows."""
    t = rng.randint(4, 40)
    allowed = int(torch.ones(t, t).tril().sum())
    slips = {"all_pairs_square": t * t, "without_self": t * (t - 1) // 2, "half": t * t // 2}
    return number(allowed, "pairs", whole=True, slips=slips, T=t)


def causal_row(rng: Random) -> Made:
    """Which positions a position may look at."""
    size = rng.randint(5, 7)
    t = rng.randint(1, size - 2)
    allowed = torch.ones(size, size).tril()[t].bool().tolist()
    options = tuple(Option("past" if on else "future", str(i)) for i, on in enumerate(allowed))
    right = frozenset(i for i, on in enumerate(allowed) if on)
    return Made(Choice(options, right, several=True), {"size": size, "t": t, "last": size - 1})


def masked_targets(rng: Random) -> Made:
    """How many positions of a masked batch are scored, on average."""
    b, t, share = rng.choice((4, 8, 16)), rng.choice((50, 100, 200)), rng.choice((0.15, 0.2, 0.3))
    model = ModelConfig(vocab_size=100, context_length=t, objective="mlm")
    n = price(model, TrainConfig(batch_size=b, mask_prob=share)).targets
    slips = {"all_positions": b * t, "only_masks": 0.8 * share * b * t, "one_row": share * t}
    return number(round(n), "targets", whole=True, slips=slips, B=b, T=t, share=round(100 * share))


def mask_split(rng: Random) -> Made:
    """How many tokens become the mask, on average."""
    n = 100 * rng.randint(2, 30)
    share = TrainConfig().mask_prob
    slips = {"chosen": share * n, "of_all": SPLIT[0] * n, "random_ones": SPLIT[1] * share * n}
    return number(round(n * share * SPLIT[0]), "tokens", whole=True, slips=slips, size=n)


def none_masked(rng: Random) -> Made:
    """The chance that nothing is chosen."""
    n, share = rng.randint(3, 16), rng.choice((0.1, 0.15, 0.2, 0.3))
    value = chance_of_none(n, share)
    slips = {"at_least_one": 1 - value, "all_chosen": share**n, "times": 1 - n * share}
    return number(value, "share", slips=slips, size=n, percent=round(100 * share), share=share,
                  stay=round(1 - share, 2))  # fmt: skip


def pseudo_likelihood(rng: Random) -> Made:
    """Why a pseudo-log-likelihood is no log-probability of a text."""
    wrong = ["negative", "nats", "too_small", "same", "bidirectional"]
    return Made(concept(rng, ["not_one", "no_chain"], wrong))


def which_generates(rng: Random) -> Made:
    """What sets the two objectives apart."""
    right = ["causal_writes", "masked_both"]
    return Made(concept(rng, right, ["masked_writes", "causal_both", "loss_differs", "signal", "no_softmax"]))
