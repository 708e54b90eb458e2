"""`python -m pretrained.make stories-clm`: train a shipped model and write its folder and card.

Everything is in this file: data, seed, shape, recipe. A run takes minutes to an hour on two cores.
"""

import argparse
import os
import platform
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: waiting threads must not spin

import torch

from engine import corpus, training
from engine.checkpoints import Checkpoint, save_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.floor import validation_floor
from engine.grammar import default_grammar
from engine.model import Transformer
from engine.records import Metrics
from engine.story_report import StoryReport, story_report
from engine.tokenizers import Tokenizer, train_bpe

FOLDER = Path(__file__).parent
N_STORIES = 20_000
STORY_SEED = 1
VOCAB_SIZE = 1024
MODELS = {"stories-clm": "clm", "stories-mlm": "mlm"}
SHAPE = {"context_length": 192, "n_layer": 4, "n_head": 4, "d_model": 128, "positions": "rotary"}
RECIPE = TrainConfig(
    steps=2000,
    batch_size=16,
    optimizer="muon",
    learning_rate=1e-2,
    warmup_steps=100,
    schedule="linear",
    eval_every=250,
    eval_rows=64,
    checkpoint_every=1000,
    aligned_share=0.75,
    seed=1,
)


def story_tokenizer() -> Tokenizer:
    """The BPE that both models share: the same text, so the same ids."""
    return train_bpe(corpus.stories(N_STORIES, STORY_SEED).text[:2_000_000], VOCAB_SIZE)


def make(name: str, recipe: TrainConfig, folder: Path) -> StoryReport:
    """Train, measure and save one model."""
    objective, tokenizer = MODELS[name], story_tokenizer()
    config = ModelConfig.from_json(
        {"vocab_size": tokenizer.model_vocab_size(objective), "objective": objective, **SHAPE}
    )
    model = Transformer(config, torch.Generator().manual_seed(recipe.seed))
    began = time.time()
    curve = learn(model, tokenizer, recipe)
    seconds = time.time() - began
    report = story_report(model, tokenizer, n_rows=200, n_samples=40 if objective == "clm" else 0)
    info = {"name": name, "corpus": "stories", "seconds": round(seconds), "report": report.to_json()}
    info["grammar"] = default_grammar().version
    checkpoint = Checkpoint(model, tokenizer, step=recipe.steps, train_config=recipe, info=info)
    save_checkpoint(folder / name, checkpoint, dtype="float16")
    write_curve(folder / name, curve)
    text = card(name, model, recipe, report, seconds)
    (folder / name / "CARD.md").write_text(text, encoding="utf-8")
    return report


def learn(model: Transformer, tokenizer: Tokenizer, recipe: TrainConfig) -> list[dict[str, float | str]]:
    """Train a model on the stories; gives its curve as records of metrics.jsonl, the floor first."""
    texts = corpus.stories(N_STORIES, STORY_SEED)
    train_ids, val_ids = tokenizer.encode(texts.text), tokenizer.encode(texts.val_text or "")
    events = training.train(
        model, train_ids, val_ids, recipe, line_end_ids=tokenizer.line_end_ids, mask_id=tokenizer.mask_id
    )
    assert events.val_at is not None and events.val_batch is not None  # the stories have a validation text
    floor = validation_floor(tokenizer, val_ids, events.val_at, events.val_batch, model.config.objective)
    print(f"{model.n_parameters():,} parameters, {len(train_ids):,} tokens, floor {floor:.4f}", flush=True)
    curve: list[dict[str, float | str]] = [{"kind": "floor", "step": 0, "value": floor or 0.0}]
    for event in events:
        if isinstance(event, training.EvalEvent) and event.val_loss is not None:
            losses = {"train_loss": event.train_loss, "val_loss": event.val_loss}
            curve.append({"kind": "eval", "step": event.step, **losses})
            print(f"step {event.step:5}  " + "  ".join(f"{k} {v:.4f}" for k, v in losses.items()), flush=True)
    return curve


def write_curve(folder: Path, curve: list[dict[str, float | str]]) -> None:
    """Write metrics.jsonl, in the form of any run's."""
    metrics = Metrics(folder / "metrics.jsonl")
    for record in curve:
        metrics.write(**record)  # type: ignore[arg-type]
    metrics.close()


def card(name: str, model: Transformer, recipe: TrainConfig, report: StoryReport, seconds: float) -> str:
    """The model's card: what it is, how it was made, how good it is."""
    config = model.config
    causal = config.objective == "clm"
    what = "predicts the next token from those before it" if causal else "fills hidden tokens from both sides"
    shape = f"{config.n_layer} layers, {config.n_head} heads, width {config.d_model}"
    scored = f"({report.tokens:,} tokens of held-out stories)"
    rows = {
        "parameters": f"{model.n_parameters():,} ({shape}, context {config.context_length}, "
        f"{config.positions} positions)",
        "vocabulary": f"{VOCAB_SIZE} ids, byte-level BPE learned on the stories"
        + ("" if causal else ", and the mask"),
        "data": f"{N_STORIES:,} stories from seed {STORY_SEED}, grammar {default_grammar().version}",
        "training": f"{recipe.steps:,} steps of {recipe.batch_size} × {config.context_length} tokens, "
        f"{recipe.optimizer}, learning rate {recipe.learning_rate:g}, seed {recipe.seed}",
        "time": f"{seconds / 60:.0f} minutes on one core of a busy CPU ({platform.machine()}, "
        f"torch {torch.__version__.split('+')[0]})",
        "weights": "float16 in the file, float32 in memory; the numbers below are of the float32 weights",
        "validation loss" if causal else "masked-token loss": f"{report.loss:.4f} nats a "
        f"{'token' if causal else 'hidden token'} {scored}",
        "floor": f"{report.floor:.4f} nats: what the true source scores on the same tokens",
        "above the floor": f"{report.gap:.4f} ± {report.gap_error:.4f} nats",
        "exact KL": f"{report.kl:.4f} nats: mean divergence from the true distribution, full vocabulary, "
        "every scored position",
    }
    if causal:
        rows["own stories"] = (
            f"{report.legal_stories} of {report.samples} are possible stories from start to end; "
            f"{report.legal_share:.0%} of the text comes before the first slip"
        )
    else:
        rows["how it is scored"] = (
            "15 % of the tokens replaced by the mask, none by random ones; the floor is the exact posterior"
        )
    return "\n".join(
        [
            f"# {name}",
            "",
            f"A small transformer that {what}. It knows nothing but Loupe's made-up stories, whose true "
            "distribution is known.",
            "",
            "| | |",
            "| --- | --- |",
            *(f"| {key} | {value} |" for key, value in rows.items()),
            "",
            f"Made by `python -m pretrained.make {name}`; "
            f"measured again by `python -m pretrained.evaluate {name}`.",
            "",
        ]
    )


def main() -> None:
    """Make the models that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--steps", type=int, default=RECIPE.steps)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.names:
        recipe = TrainConfig.from_json({**RECIPE.to_json(), "steps": arguments.steps})
        print(make(name, recipe, arguments.out), flush=True)


if __name__ == "__main__":
    main()
