"""What training refuses before its first step, with the numbers and the way out."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.model import Transformer

Ids = Sequence[int] | NDArray[np.integer] | Tensor


def as_ids(ids: Ids) -> Tensor:
    """Token ids as (N,) int64 on the CPU, without a copy where possible.

    Raises:
        ValueError: if they are not whole numbers in one row.
    """
    if len(ids) == 0:
        return torch.empty(0, dtype=torch.int64)
    tensor = torch.as_tensor(ids, device="cpu")
    if tensor.ndim != 1 or tensor.is_floating_point() or tensor.is_complex():
        raise ValueError(
            f"Token ids must be one row of whole numbers, not {tensor.dtype} of shape {tuple(tensor.shape)}."
        )
    return tensor.to(torch.int64)


def check_lengths(n_train: int, n_val: int, context_length: int) -> None:
    """Refuse texts that are too short for one row; a validation text of 0 tokens means no validation.

    Raises:
        ValueError: with the numbers and the way out.
    """
    need = context_length + 1
    if n_train < need:
        raise ValueError(
            f"The training text has {n_train} tokens, but a row needs {need} (context_length "
            f"{context_length} and the "
            f"last target). Add text, or choose a context_length of at most {max(1, n_train - 1)}."
        )
    if 0 < n_val < need:
        raise ValueError(
            f"The validation text has {n_val} tokens, but a row needs {need} (context_length "
            f"{context_length} and the "
            "last target). Add text, give validation a larger share, choose a shorter context_length, or "
            "train "
            "without validation (share 0)."
        )


def check_ids(ids: Tensor, vocab_size: int) -> None:
    """Refuse ids (N,) that the model does not know.

    Raises:
        ValueError: with the largest id.
    """
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise ValueError(
            f"The model's ids run from 0 to {vocab_size - 1}, but the text has id "
            f"{int(ids.max())}. Use the tokenizer that the model was made for."
        )


def check_weights(model: Transformer) -> None:
    """Refuse weights of another type: small updates would be lost in fewer bits.

    Raises:
        ValueError: with the type.
    """
    wrong = {p.dtype for p in model.parameters()} - {torch.float32}
    if wrong:
        raise ValueError(f"Training needs float32 weights, not {wrong.pop()}. Call model.float() first.")
