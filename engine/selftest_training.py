"""Self-test of training: the same seed gives the same weights, also after a break."""

from pathlib import Path

import torch

from engine.config import TrainConfig
from engine.events import TrainState
from engine.model import Transformer
from engine.selftest_engine import seeded, tiny
from engine.selftest_result import Fact, Outcome, at_most
from engine.training import CheckpointEvent, train

STEPS, BREAK = 6, 3
CONFIG = TrainConfig(
    steps=STEPS, batch_size=4, eval_every=STEPS, eval_rows=2, checkpoint_every=BREAK, warmup_steps=2, seed=7
)


def _ids() -> torch.Tensor:
    """Ids with something to learn: each is the one before plus 1, but for a few."""
    jumps = torch.rand(400, generator=seeded(8)) < 0.2
    return torch.where(jumps, torch.randint(65, (400,), generator=seeded(9)), 1).cumsum(0) % 65


def trained(resume: TrainState | None = None) -> tuple[Transformer, dict[int, TrainState]]:
    """A tiny model after `STEPS` steps, and what was kept on the way; dropout draws, too."""
    model, ids = tiny(dropout=0.1, d_model=16, context_length=16), _ids()
    events = train(model, ids[:300], ids[300:], CONFIG, resume=resume)
    return model, {event.step: event.state for event in events if isinstance(event, CheckpointEvent)}


def _apart(one: Transformer, other: Transformer) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


def same_twice(_: Path) -> Outcome:
    """Trained twice from one seed: the same weights, bit for bit."""
    outcome = at_most(_apart(trained()[0], trained()[0]), 0.0)
    return Outcome(outcome.state, outcome.measured, Fact("no_difference"))


def same_after_a_break(_: Path) -> Outcome:
    """Stopped in the middle and gone on from what was kept: the same weights, bit for bit."""
    whole, kept = trained()
    outcome = at_most(_apart(trained(kept[BREAK])[0], whole), 0.0)
    return Outcome(outcome.state, outcome.measured, Fact("no_difference"))
