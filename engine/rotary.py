"""Positions as angles: rotary turns of queries and keys, and the fixed sines of 2017."""

import torch
from torch import Tensor


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Turn each pair of numbers of x (B,H,T,D) by its position's angle (Su et al. 2021, arXiv:2104.09864).

    Args:
        x: queries or keys; numbers 2j and 2j + 1 of a head are a pair.
        turns: (T,D/2,2) cosine and sine of each angle.
    """
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))  # (B,H,T,D/2)
    return torch.view_as_real(pairs * torch.view_as_complex(turns.float())).flatten(-2).type_as(x)


def rotary_turns(context_length: int, d_head: int, base: float = 10000.0) -> Tensor:
    """Cosine and sine of position · base^(-2j/d_head): (context_length, d_head / 2, 2).

    The angles are float64: in float32 those of far positions would be off by a visible amount.
    """
    speeds = base ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    angles = torch.outer(torch.arange(context_length, dtype=torch.float64), speeds)
    return torch.stack((angles.cos(), angles.sin()), dim=-1).float()


def sinusoidal_positions(context_length: int, d_model: int) -> Tensor:
    """The fixed table (context_length, d_model) of Vaswani et al. 2017, §3.5: even sines, odd cosines."""
    return rotary_turns(context_length, d_model).flip(-1).flatten(-2)
