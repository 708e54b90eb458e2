"""`python -m pretrained.make stories-clm`: train a shipped model and write its folder and card.

Everything is in this file: data, seed, shape, recipe. A run takes minutes to an hour on two cores. For
english-clm, `--text` names a file with TinyStories.
"""

import argparse
import os
import platform
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: waiting threads must not spin

import torch

from engine import corpus, training
from engine.checkpoint_list import list_checkpoints
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus
from engine.floor import validation_floor
from engine.grammar import default_grammar
from engine.model import Transformer
from engine.records import Metrics
from engine.story_report import StoryReport, story_report
from engine.tokenizers import Tokenizer, train_bpe
from pretrained.card import write_cards
from pretrained.text_report import TextReport, text_report
from pretrained.tiny_stories import NAME as TINY_STORIES
from pretrained.tiny_stories import tiny_stories

FOLDER = Path(__file__).parent
N_STORIES = 40_000
STORY_SEED = 1
HISTORY = "history"  # folder of the earlier moments, beside the models
STORY_SHAPE = {"context_length": 192, "n_layer": 4, "n_head": 4, "d_model": 128, "positions": "rotary"}
STORY_RECIPE = TrainConfig(
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
ENGLISH_SHAPE = {
    "context_length": 256, "n_layer": 4, "n_head": 4, "d_model": 192, "positions": "rotary", "dropout": 0.2,
}  # fmt: skip
ENGLISH_RECIPE = TrainConfig.from_json(
    {**STORY_RECIPE.to_json(), "steps": 700, "warmup_steps": 50, "eval_every": 50}
)


@dataclass(frozen=True)
class Made:
    """How a shipped model is made.

    Attributes:
        objective: "clm" or "mlm".
        source: kind of its text, "stories" or "tiny-stories".
        vocab_size: ids that are asked of its BPE.
        shape: the rest of its `ModelConfig`.
        recipe: how it learns.
        moments: of the training that are kept, the last one included.
    """

    objective: str
    source: str
    vocab_size: int
    shape: dict[str, Any]
    recipe: TrainConfig
    moments: int


MODELS = {
    "stories-clm": Made("clm", "stories", 1024, STORY_SHAPE, STORY_RECIPE, 24),
    "stories-mlm": Made("mlm", "stories", 1024, STORY_SHAPE, STORY_RECIPE, 24),
    "english-clm": Made("clm", TINY_STORIES, 2048, ENGLISH_SHAPE, ENGLISH_RECIPE, 1),
}


@lru_cache(maxsize=1)
def learned_text(source: str, file: Path | None = None) -> Corpus:
    """What a model learns from; `file` holds it where Loupe can't make it.

    Raises:
        ValueError: if there is no such file.
    """
    if source == "stories":
        return corpus.stories(N_STORIES, STORY_SEED)
    if file is None:
        raise ValueError("Name the file with TinyStories-train.txt, or a part of it: --text FILE.")
    return tiny_stories(file)


def tokenizer_of(made: Made, text: Corpus) -> Tokenizer:
    """Its BPE: the same text and size, so the same ids."""
    return train_bpe(text.text[:2_000_000], made.vocab_size)


def make(name: str, recipe: TrainConfig, folder: Path, device: str, text: Corpus) -> None:
    """Train one model and save it; the earlier moments of its training go into a folder beside it."""
    made, tokenizer = MODELS[name], tokenizer_of(MODELS[name], text)
    config = ModelConfig.from_json(
        {
            "vocab_size": tokenizer.model_vocab_size(made.objective),
            "objective": made.objective,
            **made.shape,
        }
    )
    model = Transformer(config, torch.Generator().manual_seed(recipe.seed)).to(device)
    info: dict[str, Any] = {"name": name, "corpus": made.source}
    if made.source == "stories":
        info["grammar"] = default_grammar().version
    else:
        info |= {"stories": text.text.count("\n"), "bytes": len(text.text.encode()), "sha256": text.sha256}
    info["device"], began = machine(device), time.time()

    def keep(step: int, where: Path, dtype: Literal["float16", "int8"]) -> None:
        now = {**info, "seconds": round(time.time() - began)}
        saved = Checkpoint(model, tokenizer, step=step, train_config=recipe, info=now)
        save_checkpoint(where, saved, dtype=dtype)

    kept, losses = set(training.moment_steps(recipe.steps, made.moments)[:-1]), []
    for event in lessons(model, tokenizer, recipe, text):
        if isinstance(event, training.EvalEvent):
            losses.append(event)
            told = f"train {event.train_loss:.4f}  held out {event.val_loss:.4f}"
            print(f"step {event.step:5}  {told}", flush=True)
        if event.step in kept:
            kept.remove(event.step)
            keep(event.step, folder / HISTORY / name / "checkpoints" / f"{event.step:07d}", "int8")
    keep(recipe.steps, folder / name, "float16")
    metrics = Metrics(folder / name / "metrics.jsonl")
    for event in losses:
        metrics.write("eval", event.step, train_loss=event.train_loss, val_loss=event.val_loss)
    metrics.close()


def lessons(model: Transformer, tokenizer: Tokenizer, recipe: TrainConfig, text: Corpus) -> training.Training:
    """The training of a model on its text, see `engine.training.train`."""
    train_ids, val_ids = tokenizer.encode(text.text), tokenizer.encode(text.val_text or "")
    ends, mask = tokenizer.line_end_ids, tokenizer.mask_id
    return training.train(model, train_ids, val_ids, recipe, line_end_ids=ends, mask_id=mask)


def measure(name: str, folder: Path, text: Corpus) -> StoryReport | TextReport:
    """Measure a model and its history, as they lie in their folders, and write what came out."""
    saved, made = load_checkpoint(folder / name), MODELS[name]
    curve = folder / name / "metrics.jsonl"  # of the training itself; saving again replaces the whole folder
    learned = curve.read_bytes() if curve.exists() else None
    recipe, report = saved.train_config, None
    assert recipe is not None  # `make` wrote it
    if made.source == "stories":
        samples = 40 if made.objective == "clm" else 0
        report = story_report(saved.model, saved.tokenizer, n_rows=200, n_samples=samples)
    else:
        report = text_report(saved.model, saved.tokenizer, text, n_samples=40)
    info = {**saved.info, "report": report.to_json()}
    checkpoint = Checkpoint(saved.model, saved.tokenizer, step=saved.step, train_config=recipe, info=info)
    save_checkpoint(folder / name, checkpoint, dtype="float16")
    if made.source == "stories":
        write_curve(name, folder, recipe, text)
    elif learned is not None:
        curve.write_bytes(learned)
    write_cards(folder / name, checkpoint, made_from(name))
    return report


def write_curve(name: str, folder: Path, recipe: TrainConfig, text: Corpus) -> None:
    """Write metrics.jsonl, in the form of any run's: the floor, then every kept moment on the same rows.

    The train loss is that of fixed rows of the training text.
    """
    (folder / name / "metrics.jsonl").unlink(missing_ok=True)
    metrics = Metrics(folder / name / "metrics.jsonl")
    paths = [*(path for _, path in list_checkpoints(folder / HISTORY / name)), folder / name]
    for path in paths:
        checkpoint = load_checkpoint(path)
        exam = lessons(checkpoint.model, checkpoint.tokenizer, recipe, text)
        if path is paths[0]:
            metrics.write(
                "floor", 0, value=floor_of(exam, checkpoint.tokenizer, MODELS[name].objective, text)
            )
        first = next(exam)
        assert isinstance(first, training.EvalEvent)  # no run begins with anything else
        metrics.write("eval", checkpoint.step, train_loss=first.train_loss, val_loss=first.val_loss)
    metrics.close()


def floor_of(exam: training.Training, tokenizer: Tokenizer, objective: str, text: Corpus) -> float | None:
    """What the true source scores on the held-out rows of `lessons`, nats a token."""
    assert exam.val_at is not None and exam.val_batch is not None  # the stories have a validation text
    held_out = tokenizer.encode(text.val_text or "")
    return validation_floor(tokenizer, held_out, exam.val_at, exam.val_batch, objective)


def made_from(name: str) -> dict[str, object]:
    """What a model learned from and with, for the card."""
    made = MODELS[name]
    found: dict[str, object] = {"vocab_size": made.vocab_size, "moments": made.moments - 1}
    return found | ({"stories": N_STORIES, "story_seed": STORY_SEED} if made.source == "stories" else {})


def machine(device: str) -> str:
    """What trained it, for the card."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    n = torch.get_num_threads()
    return f"{n} thread{'s' * (n > 1)} of a busy CPU ({platform.machine()})"


def main() -> None:
    """Make the models that are named, or those that need no file."""
    own = [name for name, made in MODELS.items() if made.source == "stories"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=own, help=f"of {', '.join(MODELS)}")
    parser.add_argument("--text", type=Path, help="a file with TinyStories, for english-clm")
    parser.add_argument("--steps", type=int, help="other than the recipe's")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", choices=["train", "measure", "cards"], help="a part of the work; else all")
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    for name in arguments.names:
        if arguments.only == "cards":
            write_cards(arguments.out / name, load_checkpoint(arguments.out / name), made_from(name))
            continue
        text = learned_text(MODELS[name].source, arguments.text)
        recipe = MODELS[name].recipe
        recipe = TrainConfig.from_json({**recipe.to_json(), "steps": arguments.steps or recipe.steps})
        if arguments.only in (None, "train"):
            make(name, recipe, arguments.out, arguments.device, text)
        if arguments.only in (None, "measure"):
            print(measure(name, arguments.out, text), flush=True)


if __name__ == "__main__":
    main()
