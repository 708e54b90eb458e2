"""Exercises on inputs and targets: shifting, shapes, windows, and why the future is hidden."""

from random import Random

import torch

from engine.batches import clm_rows, windows
from engine.exercise import Ids, Made, Option, choice, concept, number


def _shifted(ids: list[int]) -> tuple[list[int], list[int]]:
    batch = clm_rows(torch.tensor([ids]))
    return batch.inputs[0].tolist(), batch.targets[0].tolist()


def shift_targets(rng: Random) -> Made:
    """Which targets train next-token prediction."""
    ids = rng.sample(range(1, 60), rng.randint(4, 6))
    inputs, targets = _shifted(ids)
    slips = (
        ("inputs", tuple(inputs)),
        ("unshifted", tuple(ids)),
        ("only_last", (ids[-1],)),
        ("two_off", tuple(ids[2:])),
    )
    return Made(Ids(tuple(targets), slips), {"ids": ids})


def inputs_and_targets(rng: Random) -> Made:
    """Form inputs and targets of a few evenly spaced ids."""
    first, gap, n = rng.randint(1, 10), rng.randint(2, 10), rng.randint(4, 6)
    ids = [first * gap + gap * i for i in range(n)]
    x, y = _shifted(ids)
    pairs = {
        "shifted": (x, y), "swapped": (y, x), "unshifted": (ids, ids), "too_long": (ids, y),
        "two_off": (ids[:-2], ids[2:]), "backwards": (x, x[::-1]),
    }  # fmt: skip
    options = [Option(key, f"x = {a}, y = {b}") for key, (a, b) in pairs.items()]
    return Made(choice(rng, options[:1], rng.sample(options[1:], 3)), {"ids": ids})


def _shape(rng: Random) -> tuple[int, int, int]:
    v = rng.choice((500, 1000, 1024, 8000, 16_000, 32_000))
    return rng.choice((2, 4, 8, 16)), rng.choice((32, 64, 128, 192, 256)), v


def logits_shape(rng: Random) -> Made:
    """The shape of the logits."""
    b, t, v = _shape(rng)
    answer = Ids((b, t, v), (("no_vocabulary", (b, t)), ("last_only", (b, v)), ("flat", (b * t, v))))
    return Made(answer, {"B": b, "T": t, "V": v})


def flatten_shape(rng: Random) -> Made:
    """The shape of flattened logits, as the loss takes them."""
    b, t, v = _shape(rng)
    shape = tuple(torch.empty((b, t, v), device="meta").reshape(-1, v).shape)
    slips = (("not_flat", (b, t, v)), ("flat_wrong", (b, t * v)), ("targets_shape", (b * t,)))
    return Made(Ids(shape, slips), {"B": b, "T": t, "V": v})


def targets_per_step(rng: Random) -> Made:
    """How many predictions one batch is scored on."""
    b, t, _ = _shape(rng)
    n = clm_rows(torch.zeros((b, t + 1), dtype=torch.int64)).targets.numel()
    return number(
        n, "targets", whole=True, B=b, T=t, length=t + 1,
        slips={"whole_rows": b * (t + 1), "last_only": b, "twice_shifted": b * (t - 1)},
    )  # fmt: skip


def slice_meaning(rng: Random) -> Made:
    """What L[b, t, :] is."""
    b, t = rng.randint(0, 3), rng.randint(2, 40)
    answer = concept(rng, ["scores"], ["own", "probabilities", "vector", "row", "column"])
    return Made(answer, {"b": b, "t": t, "after": t + 1})


def same_shape(rng: Random) -> Made:
    """Why inputs and targets have the same shape."""
    return Made(concept(rng, ["one_each", "two_cuts"], ["copy", "padding", "one_hot", "torch", "mean"]))


def hide_future(rng: Random) -> Made:
    """Why a causal model hides what is still to come."""
    right, wrong = ["copy", "generation"], ["memory", "unread", "sum", "speed", "order"]
    return Made(concept(rng, right, wrong))


def why_one_less(rng: Random) -> Made:
    """Why a sequence has one target less than tokens."""
    n = rng.choice((20, 50, 64, 100, 128, 200, 256))
    right, wrong = ["first", "last"], ["end", "mask", "padding", "counting", "held"]
    return Made(concept(rng, right, wrong), {"size": n, "less": n - 1})


def n_targets(rng: Random) -> Made:
    """How many targets one sequence gives."""
    n = rng.randint(12, 400)
    return number(
        len(_shifted([0] * n)[1]), "targets", whole=True, slips={"length": n, "one_target": 1}, size=n
    )


def n_windows(rng: Random) -> Made:
    """How many different rows can be cut from a text."""
    n, t = rng.choice((50, 80, 100, 200, 500, 1000)), rng.choice((8, 16, 24, 32))
    starts = torch.arange(n - t)
    rows = windows(torch.arange(n), starts, t + 1)
    assert int(rows[-1, -1]) == n - 1  # one more start would leave the text
    slips = {"no_overlap": n // (t + 1), "length": n}
    return number(len(rows), "windows", whole=True, slips=slips, N=n, T=t, length=t + 1)


def crop(rng: Random) -> Made:
    """What is left of a prompt that is longer than the context."""
    t = rng.randint(3, 5)
    ids = rng.sample(range(1, 90), t + rng.randint(2, 4))
    slips = (("first_ids", tuple(ids[:t])), ("uncropped", tuple(ids)), ("one_short", tuple(ids[1 - t :])))
    return Made(Ids(tuple(ids[-t:]), slips), {"ids": ids, "T": t})
