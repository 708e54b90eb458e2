"""Exercises on loss: surprisal, cross-entropy, perplexity, bits, entropy."""

import math
from random import Random

import numpy as np

from engine import metrics
from engine.exercise import Made, number

LN2 = math.log(2)


def _mistaken(loss: float) -> dict[str, float]:
    """What a loss in nats becomes with another logarithm, or none."""
    return {"log10": loss / math.log(10), "bits": loss / LN2, "probability": math.exp(-loss)}


def minus_log(rng: Random) -> Made:
    """-ln p of a token."""
    p = rng.randint(4, 92) / 100
    loss = float(metrics.surprisal(math.log(p)))
    return number(loss, "nats", slips=_mistaken(loss) | {"one_minus": 1 - p}, p=p)


def loss_equal(rng: Random) -> Made:
    """The loss when all logits are equal."""
    k, z = rng.choice((2, 2, 3, 4, 5, 8)), rng.choice((0, 0, 1, 2))
    part = metrics.softmax_parts([float(z)] * k, 0)
    loss = part.log_sum - part.logit
    return number(loss, "nats", slips=_mistaken(loss), logits=[z] * k, k=k)


def sentence_loss(rng: Random) -> Made:
    """The loss of two tokens together."""
    p, q = (rng.randint(2, 19) / 20 for _ in range(2))
    total = float(metrics.surprisal([math.log(p), math.log(q)]).sum())
    slips = _mistaken(total) | {"averaged": total / 2, "log_of_sum": -math.log(p + q)}
    return number(total, "nats", slips=slips, p=p, q=q)


def cross_entropy(rng: Random) -> Made:
    """The loss of one prediction from its logits."""
    logits = rng.sample(range(-1, 4), 3)
    target = rng.randrange(3)
    z, log_sum, p = metrics.softmax_parts(logits, target)
    loss = log_sum - z
    from_one = [metrics.softmax_parts(logits, i) for i in range(3)][target - 1]
    slips = _mistaken(loss) | {"from_one": from_one.log_sum - from_one.logit, "logit": -z}
    return number(loss, "nats", slips=slips, logits=logits, target=target, z=logits[target])


def batch_loss(rng: Random) -> Made:
    """The loss of a batch of two predictions."""
    rows = [[rng.randint(0, 6) / 2 for _ in range(3)] for _ in range(2)]
    targets = [rng.randrange(3) for _ in range(2)]
    parts = [metrics.softmax_parts(row, t) for row, t in zip(rows, targets, strict=True)]
    losses = [part.log_sum - part.logit for part in parts]
    mean = float(metrics.surprisal([-loss for loss in losses]).mean())
    slips = {
        "summed": sum(losses),
        "first_row": losses[0],
        "bits": mean / LN2,
        "log10": mean / math.log(10),
        "log_of_mean": -math.log(sum(part.prob for part in parts) / 2),
    }
    return number(mean, "nats", slips=slips, rows=rows, targets=targets)


def loss_gap(rng: Random) -> Made:
    """How much more one target costs than another: the difference of their logits."""
    logits = [x / 10 for x in rng.sample(range(-15, 40), 4)]
    best, worst = max(logits), min(logits)
    parts = [metrics.softmax_parts(logits, logits.index(z)) for z in (best, worst)]
    gap = (parts[1].log_sum - parts[1].logit) - (parts[0].log_sum - parts[0].logit)
    slips = {"ratio": math.exp(gap), "logit": -worst, "difference": parts[0].prob - parts[1].prob}
    return number(round(gap, 9), "nats", slips=slips, logits=logits, best=best, worst=worst)


def perplexity_of_loss(rng: Random) -> Made:
    """Loss to perplexity."""
    loss = rng.randint(21, 69) / 20
    slips = {"two_to": 2**loss, "ten_to": 10**loss, "exp_minus": math.exp(-loss)}
    return number(metrics.perplexity(loss), slips=slips, loss=loss)


def loss_of_perplexity(rng: Random) -> Made:
    """Perplexity to loss."""
    n = rng.choice((*range(2, 21), 25, 40, 50, 75, 100))
    loss = float(metrics.surprisal(-math.log(n)))
    slips = {"log10": math.log10(n), "bits": math.log2(n), "exp_again": math.exp(n)}
    return number(loss, "nats", slips=slips, perplexity=n)


def perplexity_of_tokens(rng: Random) -> Made:
    """The perplexity of a few tokens: exp of the mean loss, not the mean of exps."""
    probs = rng.sample((0.1, 0.2, 0.25, 0.4, 0.5, 0.8), rng.choice((2, 3)))
    losses = metrics.surprisal(np.log(probs))
    slips = {
        "mean_of_exps": float(np.mean(1 / np.array(probs))),
        "exp_of_sum": math.exp(losses.sum()),
        "only_loss": float(losses.mean()),
        "of_mean_probability": 1 / (sum(probs) / len(probs)),
    }
    return number(metrics.perplexity(float(losses.mean())), slips=slips, probs=probs, n_tokens=len(probs))


def bits_per_byte(rng: Random) -> Made:
    """Bits per byte from the total loss of a text."""
    tokens = rng.choice((20, 25, 40, 50, 80))
    n_bytes, loss = tokens * rng.choice((2, 3, 4)) + rng.randint(1, 9), rng.randint(5, 30) / 10
    total = round(loss * tokens, 6)
    value = metrics.bits_per_byte(total, n_bytes)
    slips = {"nats_per_byte": total / n_bytes, "per_token": total / LN2 / tokens, "only_loss": loss}
    return number(value, "bits per byte", slips=slips, loss=loss, tokens=tokens, bytes=n_bytes, total=total)


def nats_to_bits(rng: Random) -> Made:
    """A loss in bits."""
    loss = rng.randint(11, 79) / 20
    bits = float(metrics.surprisal(-loss, "bits"))
    return number(bits, "bits", slips={"times_ln2": loss * LN2, "log2_of": math.log2(loss), "nats": loss},
                  loss=loss)  # fmt: skip


def _shares(rng: Random, n: int) -> list[float]:
    """As many different probabilities with one digit after the point, or two, that add up to 1."""
    while True:
        cuts = sorted(rng.sample(range(1, 20), n - 1))
        parts = [b - a for a, b in zip([0, *cuts], [*cuts, 20], strict=True)]
        if len(set(parts)) == n:
            return [part / 20 for part in parts]


def entropy(rng: Random) -> Made:
    """The entropy of a small distribution, in bits."""
    probs = _shares(rng, rng.choice((2, 3)))
    nats = metrics.entropy(probs)
    bits = float(metrics.surprisal(-nats, "bits"))
    slips = {
        "nats": nats,
        "not_weighted": -sum(map(math.log2, probs)),
        "even": math.log2(len(probs)),
        "log10": nats / math.log(10),
    }
    return number(bits, "bits", slips=slips, probs=probs)


def divergence(rng: Random) -> Made:
    """The KL divergence of two small distributions, in nats."""
    while True:
        true, model = _shares(rng, 2), _shares(rng, 2)
        kl = float(metrics.kl_divergence(np.array(true), np.array(model)))
        if kl > 0.02:
            break
    back = float(metrics.kl_divergence(np.array(model), np.array(true)))
    slips = {
        "other_way": back,
        "bits": kl / LN2,
        "cross": kl + metrics.entropy(true),
        "log10": kl / math.log(10),
    }
    return number(kl, "nats", slips=slips, true=true, model=model)


def start_loss(rng: Random) -> Made:
    """The loss of a model that has learned nothing."""
    v = rng.choice((256, 300, 500, 800, 1000, 1024, 2000, 4096, 5000, 8000, 16_000, 32_000, 50_257))
    loss = float(metrics.surprisal(-math.log(v)))
    slips = {"log10": math.log10(v), "bits": math.log2(v), "probability": 1 / v, "perplexity": v}
    return number(loss, "nats", slips=slips, V=v)
