"""Recipes: settings with which a small model learns something new in about a minute on a processor."""

from engine.config import Aim, TrainConfig

# What came of them with stories-clm and seed 0, in 100 samples for held-out heroes, and on ordinary stories,
# whose loss is 0.435 nats before. Answers, whole model: 0 % follow their prompt before, 94 % after; stories
# 1.72. Preferences, whole model: 7 % of the openings are wanted before, 99 % after; stories 0.473. The last
# two blocks alone, at 1e-3: 99 % and 0.529.
RATES: dict[Aim, float] = {"text": 1e-3, "answers": 3e-3, "preferences": 3e-4}
STEPS: dict[Aim, int] = {"text": 200, "answers": 400, "preferences": 100}
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
