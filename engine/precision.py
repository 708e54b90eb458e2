"""Mixed precision: matrix products in 16 bits where the hardware gains from it, all that adds up in 32.

bfloat16 keeps the range of float32 and 8 of its 24 bits of precision (Kalamkar et al. 2019,
arXiv:1905.12322). `torch.autocast` casts the inputs of matrix products and attention only. Weights,
gradients, the loss and the optimizer's moments stay float32: a small update of a weight of 16 bits would
often round to no change at all (Micikevicius et al. 2017, arXiv:1710.03740, §3.1).
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from wording import words

say = words("engine.precision")

Precision = Literal["float32", "bfloat16"]


def chosen_precision(wanted: str, device: torch.device) -> tuple[Precision, str]:
    """What a run computes in, and one sentence if that is not what one would expect, else "".

    "auto" is bfloat16 on a GPU with units for it and float32 elsewhere: a CPU without such units is about
    half as fast in bfloat16 as in float32.

    >>> chosen_precision("auto", torch.device("cpu"))
    ('float32', '')
    """
    if wanted == "float32":
        return "float32", ""
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bfloat16", ""
        lacks = say("gpu_has_no_units")
        return "float32", "" if wanted == "auto" else lacks
    if wanted == "auto":
        return "float32", ""
    return "bfloat16", (say("run_computes_bfloat16_cpu"))


def computing_in(precision: Precision, device: torch.device) -> AbstractContextManager[None]:
    """A `with` block in which matrix products are computed in this precision."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()
