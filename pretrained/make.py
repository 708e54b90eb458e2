"""`python -m pretrained.make stories-clm`: train a shipped model and write its folder and card.

Everything is in this file: data, seed, shape, recipe. A run takes minutes to an hour on two cores.
"""

import argparse
import os
import platform
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: waiting threads must not spin

import torch  # noqa: E402

from engine import corpus, training  # noqa: E402
from engine.checkpoints import Checkpoint, save_checkpoint  # noqa: E402
from engine.config import ModelConfig, TrainConfig  # noqa: E402
from engine.grammar import default_grammar  # noqa: E402
from engine.model import Transformer  # noqa: E402
from engine.story_report import StoryReport, story_report  # noqa: E402
from engine.tokenizers import Tokenizer, train_bpe  # noqa: E402

FOLDER = Path(__file__).parent
N_STORIES = 20_000
STORY_SEED = 1
VOCAB_SIZE = 1024

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
MODELS = {"stories-clm": "clm", "stories-mlm": "mlm"}


def story_tokenizer() -> Tokenizer:
    """The BPE that both models share: the same text, so the same ids."""
    return train_bpe(corpus.stories(N_STORIES, STORY_SEED).text[:2_000_000], VOCAB_SIZE)


def make(name: str, recipe: TrainConfig, folder: Path) -> StoryReport:
    """Train, measure and save one model."""
    objective, tokenizer, texts = MODELS[name], story_tokenizer(), corpus.stories(N_STORIES, STORY_SEED)
    config = ModelConfig(vocab_size=tokenizer.model_vocab_size(objective), objective=objective, **SHAPE)
    model = Transformer(config, torch.Generator().manual_seed(recipe.seed))
    print(f"{name}: {model.n_parameters():,} parameters, {len(texts.text):,} characters of stories", flush=True)
    train_ids, val_ids = tokenizer.encode(texts.text), tokenizer.encode(texts.val_text or "")
    began = time.time()
    events = training.train(
        model, train_ids, val_ids, recipe, line_end_ids=tokenizer.line_end_ids, mask_id=tokenizer.mask_id
    )
    for event in events:
        if isinstance(event, training.EvalEvent):
            print(f"step {event.step:5}  train {event.train_loss:.4f}  validation {event.val_loss:.4f}  {time.time() - began:.0f} s", flush=True)
    seconds = time.time() - began
    report = story_report(model, tokenizer, n_rows=200, n_samples=40 if objective == "clm" else 0)
    info = {"name": name, "corpus": "stories", "seconds": round(seconds), "grammar": default_grammar().version, "report": report.to_json()}
    save_checkpoint(folder / name, Checkpoint(model, tokenizer, config, recipe.steps, recipe, info=info), dtype="float16")
    (folder / name / "CARD.md").write_text(card(name, model, recipe, report, seconds), encoding="utf-8")
    return report


def card(name: str, model: Transformer, recipe: TrainConfig, report: StoryReport, seconds: float) -> str:
    """The model's card: what it is, how it was made, how good it is."""
    config = model.config
    causal = config.objective == "clm"
    what = "predicts the next token from those before it" if causal else "fills hidden tokens from both sides"
    lines = [
        f"# {name}",
        "",
        f"A small transformer that {what}. It knows nothing but Loupe's made-up stories, whose true distribution is known.",
        "",
        "| | |",
        "| --- | --- |",
        f"| parameters | {model.n_parameters():,} ({config.n_layer} layers, {config.n_head} heads, width {config.d_model}, context {config.context_length}, {config.positions} positions) |",
        f"| vocabulary | {VOCAB_SIZE} ids, byte-level BPE learned on the stories{'' if causal else ', and the mask'} |",
        f"| data | {N_STORIES:,} stories from seed {STORY_SEED}, grammar {default_grammar().version} |",
        f"| training | {recipe.steps:,} steps of {recipe.batch_size} × {config.context_length} tokens, {recipe.optimizer}, learning rate {recipe.learning_rate:g}, seed {recipe.seed} |",
        f"| time | {seconds / 60:.0f} minutes on a CPU ({platform.machine()}, torch {torch.__version__.split('+')[0]}) |",
        f"| weights | float16 in the file, float32 in memory; the numbers below are of the float32 weights |",
        f"| {'validation loss' if causal else 'masked-token loss'} | {report.loss:.4f} nats a {'token' if causal else 'hidden token'} ({report.tokens:,} tokens of held-out stories) |",
        f"| floor | {report.floor:.4f} nats: what the true source scores on the same tokens |",
        f"| above the floor | {report.gap:.4f} ± {report.gap_error:.4f} nats |",
        f"| exact KL | {report.kl:.4f} nats: mean divergence from the true distribution, full vocabulary, every position |",
    ]
    if causal:
        lines.append(f"| own stories | {report.legal_stories} of {report.samples} are possible stories from start to end; {report.legal_share:.0%} of the text is before the first slip |")
    else:
        lines.append("| how it is scored | 15 % of the tokens replaced by the mask, none by random ones; the floor is the exact posterior |")
    lines += ["", f"Made by `python -m pretrained.make {name}`; measured again by `python -m pretrained.evaluate {name}`.", ""]
    return "\n".join(lines)


def main() -> None:
    """Make the models that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--steps", type=int, default=RECIPE.steps)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    recipe = TrainConfig.from_json({**RECIPE.to_json(), "steps": arguments.steps})
    for name in arguments.names:
        print(make(name, recipe, arguments.out), flush=True)


if __name__ == "__main__":
    main()
