"""`python -m pretrained.make stories-clm`: train a shipped model and write its folder and card.

Everything is in this file: data, seed, shape, recipe. A run takes minutes to an hour on two cores.
"""

import argparse
import os
import platform
import time
from pathlib import Path
from typing import Literal

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: waiting threads must not spin

import torch

from engine import corpus, training
from engine.checkpoint_list import list_checkpoints
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.floor import validation_floor
from engine.grammar import default_grammar
from engine.model import Transformer
from engine.records import Metrics
from engine.story_report import StoryReport, story_report
from engine.tokenizers import Tokenizer, train_bpe
from pretrained.card import write_cards

FOLDER = Path(__file__).parent
N_STORIES = 40_000
STORY_SEED = 1
VOCAB_SIZE = 1024
MODELS = {"stories-clm": "clm", "stories-mlm": "mlm"}
SHAPE = {"context_length": 192, "n_layer": 4, "n_head": 4, "d_model": 128, "positions": "rotary"}
HISTORY = "history"  # folder of the earlier moments, beside the models
MOMENTS = 24  # of the training that are kept, the last one included
RECIPE = TrainConfig(
    steps=6000,
    batch_size=16,
    optimizer="muon",
    learning_rate=1e-2,
    warmup_steps=100,
    schedule="linear",
    eval_every=500,
    eval_rows=64,
    checkpoint_every=100_000,
    aligned_share=0.75,
    seed=1,
)


def story_tokenizer() -> Tokenizer:
    """The BPE that both models share: the same text, so the same ids."""
    return train_bpe(corpus.stories(N_STORIES, STORY_SEED).text[:2_000_000], VOCAB_SIZE)


def make(name: str, recipe: TrainConfig, folder: Path, device: str) -> None:
    """Train one model and save it; the earlier moments of its training go into a folder beside it."""
    objective, tokenizer = MODELS[name], story_tokenizer()
    config = ModelConfig.from_json(
        {"vocab_size": tokenizer.model_vocab_size(objective), "objective": objective, **SHAPE}
    )
    model = Transformer(config, torch.Generator().manual_seed(recipe.seed)).to(device)
    info = {"name": name, "corpus": "stories", "grammar": default_grammar().version}
    info["device"], began = machine(device), time.time()

    def keep(step: int, where: Path, dtype: Literal["float16", "int8"]) -> None:
        now = {**info, "seconds": round(time.time() - began)}
        saved = Checkpoint(model, tokenizer, step=step, train_config=recipe, info=now)
        save_checkpoint(where, saved, dtype=dtype)

    kept = set(training.moment_steps(recipe.steps, MOMENTS)[:-1])
    for event in lessons(model, tokenizer, recipe):
        if isinstance(event, training.EvalEvent):
            losses = f"train {event.train_loss:.4f}  held out {event.val_loss:.4f}"
            print(f"step {event.step:5}  {losses}", flush=True)
        if event.step in kept:
            kept.remove(event.step)
            keep(event.step, folder / HISTORY / name / "checkpoints" / f"{event.step:07d}", "int8")
    keep(recipe.steps, folder / name, "float16")


def lessons(model: Transformer, tokenizer: Tokenizer, recipe: TrainConfig) -> training.Training:
    """The training of a model on the stories, see `engine.training.train`."""
    texts = corpus.stories(N_STORIES, STORY_SEED)
    train_ids, val_ids = tokenizer.encode(texts.text), tokenizer.encode(texts.val_text or "")
    ends, mask = tokenizer.line_end_ids, tokenizer.mask_id
    return training.train(model, train_ids, val_ids, recipe, line_end_ids=ends, mask_id=mask)


def measure(name: str, folder: Path) -> StoryReport:
    """Measure a model and its history, as they lie in their folders, and write what came out."""
    saved = load_checkpoint(folder / name)
    causal, recipe = MODELS[name] == "clm", saved.train_config
    assert recipe is not None  # `make` wrote it
    report = story_report(saved.model, saved.tokenizer, n_rows=200, n_samples=40 if causal else 0)
    info = {**saved.info, "report": report.to_json()}
    checkpoint = Checkpoint(saved.model, saved.tokenizer, step=saved.step, train_config=recipe, info=info)
    save_checkpoint(folder / name, checkpoint, dtype="float16")
    write_curve(name, folder, recipe)
    write_cards(folder / name, checkpoint, made_from())
    return report


def write_curve(name: str, folder: Path, recipe: TrainConfig) -> None:
    """Write metrics.jsonl, in the form of any run's: the floor, then every kept moment on the same rows.

    The train loss is that of fixed rows of the training text.
    """
    metrics = Metrics(folder / name / "metrics.jsonl")
    paths = [*(path for _, path in list_checkpoints(folder / HISTORY / name)), folder / name]
    for path in paths:
        checkpoint = load_checkpoint(path)
        exam = lessons(checkpoint.model, checkpoint.tokenizer, recipe)
        if path is paths[0]:
            metrics.write("floor", 0, value=floor_of(exam, checkpoint.tokenizer, MODELS[name]))
        first = next(exam)
        assert isinstance(first, training.EvalEvent)  # no run begins with anything else
        metrics.write("eval", checkpoint.step, train_loss=first.train_loss, val_loss=first.val_loss)
    metrics.close()


def floor_of(exam: training.Training, tokenizer: Tokenizer, objective: str) -> float | None:
    """What the true source scores on the held-out rows of `lessons`, nats a token."""
    assert exam.val_at is not None and exam.val_batch is not None  # the stories have a validation text
    held_out = tokenizer.encode(corpus.stories(N_STORIES, STORY_SEED).val_text or "")
    return validation_floor(tokenizer, held_out, exam.val_at, exam.val_batch, objective)


def made_from() -> dict[str, object]:
    """What the models learned from and with, for the card."""
    return {"stories": N_STORIES, "story_seed": STORY_SEED, "vocab_size": VOCAB_SIZE, "moments": MOMENTS - 1}


def machine(device: str) -> str:
    """What trained it, for the card."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    n = torch.get_num_threads()
    return f"{n} thread{'s' * (n > 1)} of a busy CPU ({platform.machine()})"


def main() -> None:
    """Make the models that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--steps", type=int, default=RECIPE.steps)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", choices=["train", "measure", "cards"], help="a part of the work; else all")
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    recipe = TrainConfig.from_json({**RECIPE.to_json(), "steps": arguments.steps})
    for name in arguments.names:
        if arguments.only in (None, "train"):
            make(name, recipe, arguments.out, arguments.device)
        if arguments.only in (None, "measure"):
            print(measure(name, arguments.out), flush=True)
        if arguments.only == "cards":
            write_cards(arguments.out / name, load_checkpoint(arguments.out / name), made_from())


if __name__ == "__main__":
    main()
