"""Mixed precision: matrix products in 16 bits where the hardware gains from it, all that adds up in 32.

bfloat16 keeps the range of float32 and 8 of its 24 bits of precision (Kalamkar et al. 2019,
arXiv:1905.12322). `torch.autocast` casts the inputs of matrix products, on a GPU also those of attention.
Weights, gradients, the loss and the optimizer's moments stay float32: a small update of a weight of 16 bits
would often round to no change at all (Micikevicius et al. 2017, arXiv:1710.03740, §3.1).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

import torch
from torch import Tensor

from wording import words

say = words("engine.precision")

Precision = Literal["float32", "bfloat16"]


def has_units(device: torch.device) -> bool:
    """Whether a device multiplies matrices faster in bfloat16 than in float32.

    A processor needs instructions for it: those of AMD since Zen 4 (2022), some of Intel since 2020.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    told = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    return bool(told.get("avx512_bf16") or told.get("amx_bf16"))


def chosen_precision(wanted: str, device: torch.device) -> tuple[Precision, str]:
    """What a run computes in, and one sentence if that is not what one would expect, else "".

    "auto" is bfloat16 on a GPU with units for it and float32 elsewhere. On a processor bfloat16 is never
    taken unasked: its numbers can be followed by hand, and where it has no units it is half as fast.

    >>> chosen_precision("auto", torch.device("cpu"))
    ('float32', '')
    """
    if wanted == "float32" or (wanted == "auto" and device.type != "cuda"):
        return "float32", ""
    if has_units(device):
        return "bfloat16", ""
    if device.type == "cuda":
        return "float32", "" if wanted == "auto" else say("gpu_has_no_units")
    return "bfloat16", say("cpu_has_no_units")


def fastest_precision(device: torch.device) -> Literal["auto", "bfloat16"]:
    """What to ask for if only speed counts."""
    return "bfloat16" if has_units(device) else "auto"


def computing_in(precision: Precision, device: torch.device) -> AbstractContextManager[None]:
    """A `with` block in which matrix products are computed in this precision.

    A weight is cast where it is used and not kept for a second use: threads that compute parts of a batch
    would share what is kept.
    """
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


@contextmanager
def between_products(*products: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """A `with` block for attention, which stands between products; gives those that it begins with.

    On a processor it is float32 whatever `computing_in` says: torch's attention takes three times as long on
    its way back in 16 bits there.
    """
    if products[0].is_cpu and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            yield tuple(x.float() for x in products)
    else:
        yield products
