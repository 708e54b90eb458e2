"""One step taken apart: it is the run's own, its numbers tie out, and the run is not touched."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import own_text
from engine.events import CheckpointEvent, StepEvent
from engine.metrics import IGNORED
from engine.model import Transformer
from engine.one_step import Stepper, part_of, step_of_model, step_of_run
from engine.run_setup import run_ids
from engine.runs import RunSpec, RunStore
from engine.tokenizers import byte_tokenizer
from engine.training import train

TEXT = "Once upon a time there was a fox. The fox had a hat, and the hat had a hole in it. " * 6
CONFIG = TrainConfig(steps=9, batch_size=3, warmup_steps=4, eval_every=4, checkpoint_every=5, seed=3)


def run_with_checkpoints(home: Path, config: TrainConfig = CONFIG, **shape: object) -> tuple[Path, list]:
    """A run's folder trained here, with the optimizer's state in each checkpoint; and its events."""
    tokenizer = byte_tokenizer()
    objective = str(shape.pop("objective", "clm"))
    model_config = ModelConfig(
        tokenizer.model_vocab_size(objective),
        16,
        2,
        2,
        8,
        objective=objective,
        **shape,  # type: ignore[arg-type]
    )
    store = RunStore(home)
    spec = RunSpec("a run", own_text(TEXT), tokenizer, model_config, config)
    folder = home / "runs" / store.create(spec, "a" * 32)
    settings = json.loads((folder / "run.json").read_text("utf-8"))
    ids, val_ids = run_ids(folder, settings["corpus"], tokenizer)
    model = Transformer(model_config, torch.Generator().manual_seed(config.seed))
    mask = tokenizer.mask_id if objective == "mlm" else None
    events = []
    for event in train(model, ids, val_ids, config, line_end_ids=tokenizer.line_end_ids, mask_id=mask):
        events.append(event)
        if isinstance(event, CheckpointEvent):
            state = event.state
            saved = Checkpoint(
                model, tokenizer, step=event.step, train_config=config, optimizer_state=state["optimizer"],
                generator_states=state["generators"], losses=state["losses"], info={"device": "cpu"},
            )  # fmt: skip
            save_checkpoint(folder / "checkpoints" / f"{event.step:07d}", saved)
    store.close()
    return folder, events


def stepper(folder: Path, step: int) -> Stepper:
    return step_of_run(folder / "checkpoints" / f"{step:07d}")


@pytest.mark.parametrize(
    ("config", "shape"),
    [
        (CONFIG, {}),
        (CONFIG, {"objective": "mlm"}),
        (CONFIG, {"dropout": 0.3}),
        (replace(CONFIG, optimizer="muon", grad_clip=0.5), {}),
        (replace(CONFIG, optimizer="muon", precision="bfloat16"), {"positions": "rotary"}),
        (replace(CONFIG, moments=3), {}),
    ],
    ids=["clm", "mlm", "dropout", "muon", "16 bits", "from step 0"],
)
def test_it_is_the_very_step_of_the_run(tmp_path: Path, config: TrainConfig, shape: dict) -> None:
    folder, events = run_with_checkpoints(tmp_path, config, **shape)
    steps = {e.step: e for e in events if isinstance(e, StepEvent)}
    at = 0 if config.moments else 5
    mine = stepper(folder, at)
    assert mine.exact and not mine.extended
    for expected in (steps[at + 1], steps[at + 2]):
        taken = mine.take()
        assert (taken.step, taken.loss, taken.norm, taken.learning_rate) == (
            expected.step, expected.loss, expected.grad_norm, expected.learning_rate,
        )  # fmt: skip


def test_the_numbers_tie_out(tmp_path: Path) -> None:
    folder, _ = run_with_checkpoints(tmp_path, replace(CONFIG, grad_clip=0.25))
    mine = stepper(folder, 5)
    before = {n: p.detach().clone() for n, p in mine.model.named_parameters()}
    taken = mine.take()
    assert taken.losses.shape == taken.inputs.shape == (3, 16)
    assert (taken.targets[:, :-1] == taken.inputs[:, 1:]).all()  # shifted by one
    assert taken.n_scored == 48
    assert np.nanmean(taken.losses, dtype=np.float64) == pytest.approx(taken.loss, rel=1e-6)
    assert sum(part.gradient**2 for part in taken.parts) == pytest.approx(taken.norm**2, rel=1e-5)
    assert taken.norm > 0.25 and taken.clip_factor * taken.norm == pytest.approx(0.25)
    assert sum(part.n for part in taken.parts) == mine.model.n_parameters()
    after = {n: p.detach() for n, p in mine.model.named_parameters()}
    for part in taken.parts:
        mine_too = [n for n in before if part_of(n) == part.name]
        moved = math.sqrt(sum(float((after[n] - before[n]).double().square().sum()) for n in mine_too))
        assert part.update == pytest.approx(moved, rel=1e-6) and moved > 0
        length = math.sqrt(sum(float(before[n].double().square().sum()) for n in mine_too))
        assert part.weights == pytest.approx(length, rel=1e-6)
    assert [part.title for part in taken.parts][:3] == [
        "token vectors", "position vectors", "layer 1 attention",
    ]  # fmt: skip


def test_losses_of_a_masked_batch_are_those_of_the_chosen_tokens(tmp_path: Path) -> None:
    folder, _ = run_with_checkpoints(tmp_path, objective="mlm")
    taken = stepper(folder, 5).take()
    assert (np.isnan(taken.losses) == (taken.targets == IGNORED)).all()
    assert 0 < taken.n_scored < 48
    assert np.nanmean(taken.losses, dtype=np.float64) == pytest.approx(taken.loss, rel=1e-6)


def test_a_step_down_the_gradient_lowers_the_loss_of_its_own_batch(tmp_path: Path) -> None:
    folder, _ = run_with_checkpoints(tmp_path, replace(CONFIG, learning_rate=1e-3), dropout=0.2)
    taken = stepper(folder, 5).take()
    assert taken.loss_after < taken.loss


def test_the_run_is_not_touched(tmp_path: Path) -> None:
    folder, _ = run_with_checkpoints(tmp_path)
    files = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    stepper(folder, 5).take()
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == files


def test_a_run_that_has_ended_gets_a_next_step_that_says_so(tmp_path: Path) -> None:
    folder, _ = run_with_checkpoints(tmp_path)
    mine = stepper(folder, 9)
    assert mine.extended and not mine.exact
    assert mine.take().step == 10


def test_the_end_of_the_schedule_is_told(tmp_path: Path) -> None:
    folder, _ = run_with_checkpoints(tmp_path)
    mine = stepper(folder, 5)
    for _ in range(4):
        mine.take()
    assert mine.done
    with pytest.raises(ValueError, match="ends at step 9"):
        mine.take()


def test_a_folder_without_its_text_is_told(tmp_path: Path) -> None:
    folder, _ = run_with_checkpoints(tmp_path)
    (folder / "corpus.txt").unlink()
    with pytest.raises(ValueError, match="text of this run"):
        stepper(folder, 5)


def test_a_shipped_moment_starts_with_a_fresh_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.one_step.STORIES", 60)
    moment = Path(__file__).parents[2] / "pretrained/history/stories-clm/checkpoints/0000132"
    mine = step_of_model(moment)
    assert not mine.exact and mine.step == 132
    first, again = mine.take(), step_of_model(moment).take()
    assert first.step == 133 and first.loss == again.loss  # the same batch each time
    saved = load_checkpoint(moment)
    with torch.no_grad():
        logits = saved.model(torch.from_numpy(first.inputs))
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), torch.from_numpy(first.targets).flatten()
    )
    assert first.loss == pytest.approx(float(expected), rel=1e-6)
