"""What training refuses before its first step, with the numbers and the way out."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.model import Transformer
from wording import words

say = words("engine.checks")

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
        raise ValueError(say("token_ids_must_one", dtype=tensor.dtype, shape=tuple(tensor.shape)))
    return tensor.to(torch.int64)


def check_lengths(n_train: int, n_val: int, context_length: int) -> None:
    """Refuse texts that are too short for one row; a validation text of 0 tokens means no validation.

    Raises:
        ValueError: with the numbers and the way out.
    """
    need = context_length + 1
    if n_train < need:
        raise ValueError(
            say(
                "training_text_has_tokens",
                n_train=n_train,
                need=need,
                context_length=context_length,
                most=max(1, n_train - 1),
            )
        )
    if 0 < n_val < need:
        raise ValueError(
            say("validation_text_has_tokens", n_val=n_val, need=need, context_length=context_length)
        )


def check_ids(ids: Tensor, vocab_size: int) -> None:
    """Refuse ids (N,) that the model does not know.

    Raises:
        ValueError: with the largest id.
    """
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise ValueError(say("models_ids_run_0", last=vocab_size - 1, odd=int(ids.max())))


def check_weights(model: Transformer) -> None:
    """Refuse weights of another type: small updates would be lost in fewer bits.

    Raises:
        ValueError: with the type.
    """
    wrong = {p.dtype for p in model.parameters()} - {torch.float32}
    if wrong:
        raise ValueError(say("training_needs_float32_weights", dtype=wrong.pop()))
