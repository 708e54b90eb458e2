"""What a run does when: its learning rate at every step, and the steps that are worth keeping."""

import math

from engine.config import TrainConfig
from wording import words

say = words("engine.schedule")


def learning_rate_at(step: int, config: TrainConfig) -> float:
    """Learning rate of the update that follows `step` finished ones.

    It rises in equal parts over `warmup_steps`, then falls from `learning_rate` towards `min_lr_share` of it,
    which it would reach after the last step (so no step is wasted on a rate of 0).

    >>> config = TrainConfig(steps=6, warmup_steps=2, learning_rate=1.0, schedule="linear")
    >>> [learning_rate_at(step, config) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return config.learning_rate
    done = min(1.0, (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps))
    left = 1 - done if config.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
    return config.learning_rate * (config.min_lr_share + (1 - config.min_lr_share) * left)


def moment_steps(steps: int, n: int) -> list[int]:
    """The steps of a run that are worth keeping: n of them, most of them early, where most happens.

    The k-th lies at steps · (k / (n - 1))^2.5, rounded, and at least one step after the one before it. A run
    of fewer than n steps keeps every step.

    >>> moment_steps(1000, 8)
    [0, 8, 44, 120, 247, 431, 680, 1000]
    >>> moment_steps(10, 6)
    [0, 1, 2, 3, 6, 10]

    Raises:
        ValueError: if `steps` or `n` is negative.
    """
    if steps < 0 or n < 0:
        raise ValueError(say("steps_moments_must_least", steps=steps, n=n))
    kept: list[int] = []
    for k in range(min(n, steps + 1)):
        ideal = round(steps * (k / (n - 1)) ** 2.5) if n > 1 else 0
        kept.append(max(ideal, kept[-1] + 1) if kept else 0)
    return kept
