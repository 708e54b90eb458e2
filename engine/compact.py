"""Weights in 8 bits: how a model's history stays small. One scale for each row, so that no row loses much."""

from collections.abc import Mapping

import torch
from torch import Tensor

from wording import words

say = words("engine.compact")

SCALE = ".scale"  # after a matrix's name: what its rows of whole numbers are multiplied by
LARGEST = 127


def round_rows(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix (rows, columns) as int8 of the same shape times float32 scales (rows, 1).

    Every number is off by at most half its row's scale, which is the row's largest number / 127.
    """
    largest = matrix.float().abs().amax(dim=1, keepdim=True)
    scale = torch.where(largest > 0, largest / LARGEST, 1.0)
    return (matrix / scale).round().to(torch.int8), scale


def pack(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Round each matrix to whole numbers from -127 to 127 times a scale of its row; vectors stay float32.

    Args:
        tensors: name -> float32; a matrix is (rows, columns).

    Returns:
        For each matrix an int8 tensor under its name and float32 (rows, 1) under its name + ".scale". Every
        number is off by at most half its row's scale, which is the row's largest number / 127.
    """
    packed: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if value.ndim != 2:
            packed[name] = value.float()
            continue
        packed[name], packed[name + SCALE] = round_rows(value)
    return packed


def unpack(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The float32 weights that `pack` rounded.

    Raises:
        ValueError: if a matrix of whole numbers has no scale for its rows.
    """
    weights: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if name.endswith(SCALE):
            continue
        if value.dtype != torch.int8:
            weights[name] = value
            continue
        scale = tensors.get(name + SCALE)
        if value.ndim != 2 or scale is None or scale.shape != (value.shape[0], 1):
            raise ValueError(say("stored_8_bits_without", name=name))
        weights[name] = value.float() * scale
    return weights
