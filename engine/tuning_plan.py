"""Recipes: settings with which a small model learns something new in about a minute on a processor."""

from engine.config import Aim, TrainConfig

# What was tried, and what came of it, stands in docs/tuning.md.
RATES: dict[Aim, float] = {"text": 1e-3, "answers": 1e-3, "preferences": 1e-4}
STEPS: dict[Aim, int] = {"text": 200, "answers": 150, "preferences": 100}
BATCH_SIZE = 8
BETA = 0.1
N_PAIRS: dict[Aim, int] = {"answers": 600, "preferences": 400}  # built-in ones to learn from
N_HELD_OUT = 48  # of other heroes


def recipe(aim: Aim, last_blocks: int | None = None) -> TrainConfig:
    """Settings that suit the shipped model; a page may change any of them."""
    steps = STEPS[aim]
    return TrainConfig(
        steps=steps,
        batch_size=BATCH_SIZE,
        learning_rate=RATES[aim],
        warmup_steps=min(10, steps // 10),
        eval_every=max(5, steps // 20),
        checkpoint_every=steps,
        aim=aim,
        last_blocks=last_blocks,
        beta=BETA,
    )
