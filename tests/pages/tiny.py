"""Small untrained models in place of the shipped ones: what a page shows must be right for any weights."""

import base64
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.checkpoints import Checkpoint, save_checkpoint
from engine.config import ModelConfig
from engine.corpus import stories
from engine.model import Transformer
from engine.tokenizers import Tokenizer, train_bpe


@cache
def story_tokenizer() -> Tokenizer:
    return train_bpe(stories(60, seed=3).text, 400)


def save_tiny(
    folder: Path,
    name: str,
    *,
    objective: str = "clm",
    tokenizer: Tokenizer | None = None,
    context_length: int = 32,
    **shape: Any,
) -> Checkpoint:
    """Save a model of 2 layers and 2 heads as `folder/name` and give it back."""
    tokenizer = tokenizer or story_tokenizer()
    config = ModelConfig(
        vocab_size=tokenizer.model_vocab_size(objective),
        context_length=context_length,
        n_layer=2,
        n_head=2,
        d_model=16,
        objective=objective,  # type: ignore[arg-type]
        **shape,
    )
    model = Transformer(config, torch.Generator().manual_seed(5))
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(6)  # sharper than a fresh model, so that no two numbers are nearly the same
    checkpoint = Checkpoint(model.eval(), tokenizer)
    save_checkpoint(folder / name, checkpoint)
    return checkpoint


def array(value: Any) -> NDArray[Any]:
    """An array of a Plotly figure as it is sent to the browser."""
    if isinstance(value, dict):
        flat = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        return flat.reshape([int(n) for n in str(value["shape"]).split(",")]) if "shape" in value else flat
    return np.array(value, dtype=float)
