"""Runs that take a second, and what their tests ask of them again and again."""

import time
from pathlib import Path

import torch

from engine import worker
from engine.checkpoints import load_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import own_text
from engine.runs import RunSpec
from engine.tokenizers import char_tokenizer

TEXT = "the cat sat on the mat, the dog sat on the log.\n" * 60
REPO = Path(__file__).parents[2]


def spec(
    *,
    text=TEXT,
    objective="clm",
    name="Cats",
    tokenizer=None,
    d_model=16,
    val_share=0.1,
    context=16,
    **changes,
):
    tokenizer = tokenizer or char_tokenizer(TEXT)
    model = ModelConfig(
        vocab_size=tokenizer.model_vocab_size(objective), context_length=context, n_layer=1, n_head=2,
        d_model=d_model, dropout=0.1, objective=objective,
    )  # fmt: skip
    settings = {
        "steps": 30,
        "batch_size": 4,
        "eval_every": 10,
        "eval_rows": 4,
        "checkpoint_every": 10,
        "warmup_steps": 5,
    }
    corpus = text if not isinstance(text, str) else own_text(text)
    return RunSpec(
        name, corpus, tokenizer, model, TrainConfig(**{**settings, **changes}), val_share=val_share
    )


def train_here(store, run_id):
    """Train a run in this process, as the command line does."""
    worker.run_folder(store.claim(run_id), report=lambda text: None)
    return store.info(run_id)


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def wait_for_step(store, run_id, step):
    def passed():
        info = store.info(run_id)
        assert info.active, f"{info.message} {(store.home / 'workers.log').read_text()[-2000:]}"
        return info.step > step

    wait_for(passed)


def of_kind(records, kind):
    return [r for r in records if r["kind"] == kind]


def without_times(records):
    timed = ("seconds", "tokens_per_second")
    return [{k: v for k, v in r.items() if k not in timed} for r in records]


def losses(store, run_id):
    """All that must be the same in two runs with the same settings."""
    return without_times(r for r in store.history(run_id) if r["kind"] in ("step", "eval"))


def same_weights(store, one, two):
    models = [load_checkpoint(store.latest_checkpoint(run_id)).model for run_id in (one, two)]
    return all(torch.equal(a, b) for a, b in zip(*(m.parameters() for m in models), strict=True))
