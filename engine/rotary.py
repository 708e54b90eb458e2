"""Positions as angles: rotary turns of queries and keys, and the fixed sines of 2017."""

import math

import torch
from torch import Tensor

from engine.config import Rotary


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Turn each pair of numbers of x (B,H,T,D) by its position's angle (Su et al. 2021, arXiv:2104.09864).

    Args:
        x: queries or keys; numbers 2j and 2j + 1 of a head are a pair.
        turns: (T,D/2,2) cosine and sine of each angle; with fewer pairs the numbers after them stay.
    """
    width = 2 * turns.shape[-2]
    if width < x.shape[-1]:
        return torch.cat((rotate(x[..., :width], turns), x[..., width:]), dim=-1)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))  # (B,H,T,D/2)
    return torch.view_as_real(pairs * torch.view_as_complex(turns.float())).flatten(-2).type_as(x)


def rotary_speeds(width: int, rotary: Rotary) -> Tensor:
    """Radians that each pair turns by from one position to the next: (width / 2,) float64."""
    speeds = rotary.base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    if not rotary.first_length:
        return speeds / rotary.stretch
    if rotary.ramp != "turns":
        slowed = _slowed_by_pair(width, rotary)
        return speeds * (1 - slowed + slowed / rotary.stretch)
    turns = rotary.first_length * speeds / (2 * math.pi)  # that a pair makes in the first context
    kept = ((turns - rotary.low) / (rotary.high - rotary.low)).clamp(0, 1)
    return speeds * (kept + (1 - kept) / rotary.stretch)


def _slowed_by_pair(width: int, rotary: Rotary) -> Tensor:
    """How much of the slowing each pair gets, 0 to 1: (width / 2,) float64 (YaRN, Peng et al. 2023, §3.2)."""

    def pair_of(turns: float) -> float:
        """The pair, maybe between two, that makes so many turns in the first context."""
        return width * math.log(rotary.first_length / (2 * math.pi * turns)) / (2 * math.log(rotary.base))

    first, last = pair_of(rotary.high), pair_of(rotary.low)
    if rotary.ramp == "whole":
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, width - 1)
    last += 0.001 if first == last else 0  # as others do, or the ramp would have no width
    return ((torch.arange(width // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)


def rotary_turns(context_length: int, width: int, base: float | Rotary = 10000.0) -> Tensor:
    """Cosine and sine of position · base^(-2j/width), times `Rotary.swell`: (context_length, width / 2, 2).

    The angles are float64: in float32 those of far positions would be off by a visible amount.

    Args:
        context_length: number of positions.
        width: how many numbers turn.
        base: of the speeds, or all that is to be known of them.
    """
    rotary = base if isinstance(base, Rotary) else Rotary(base)
    speeds = rotary_speeds(width, rotary)
    angles = torch.outer(torch.arange(context_length, dtype=torch.float64), speeds)
    return (rotary.swell * torch.stack((angles.cos(), angles.sin()), dim=-1)).float()


def sinusoidal_positions(context_length: int, d_model: int) -> Tensor:
    """The fixed table (context_length, d_model) of Vaswani et al. 2017, §3.5: even sines, odd cosines."""
    return rotary_turns(context_length, d_model).flip(-1).flatten(-2)
