"""What is added to a token's vector before the first block, and how rotary positions turn instead.

Letters in shapes: C d_model, D d_head, M moves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.config import Rotary
from engine.model import Transformer
from engine.rotary import rotary_speeds, sinusoidal_positions

PLAIN = Rotary()


def added_positions(model: Transformer) -> NDArray[np.float32] | None:
    """(context_length, C) what is added at each position; None for rotary, which adds nothing."""
    if model.position is not None:
        return np.asarray(model.position.weight.detach().float().cpu().numpy())
    return None if model.sinusoid is None else np.asarray(model.sinusoid.float().cpu().numpy())


def token_scale(model: Transformer) -> float:
    """What a token's vector is multiplied by before its position is added (Vaswani et al. 2017, §3.4)."""
    return math.sqrt(model.config.d_model) if model.config.positions == "sinusoidal" else 1.0


def previous_factors(model: Transformer) -> NDArray[np.float32] | None:
    """(C,) what the vector of the token before is multiplied by and added; None for models that don't."""
    if model.previous is None:
        return None
    return np.asarray(model.previous.weight.detach().float().cpu().numpy())


def sinusoid(context_length: int, width: int) -> NDArray[np.float32]:
    """The fixed table (context_length, width), see `engine.rotary.sinusoidal_positions`."""
    return sinusoidal_positions(context_length, width)[:, :width].numpy()


def speeds(width: int, rotary: Rotary = PLAIN) -> NDArray[np.float64]:
    """(⌈width/2⌉,) radians that pair j turns with each position: mostly 10000^(-2j/width).

    Vaswani et al. 2017 §3.5 (sines and cosines of these angles are added), Su et al. 2021, arXiv:2104.09864
    (queries and keys are turned by them).

    Args:
        width: how many numbers turn, `rotary.width(d_head)` of a model.
        rotary: another base, and which pairs are slowed down.

    >>> speeds(4).tolist()
    [1.0, 0.01]
    """
    return np.asarray(rotary_speeds(width, rotary).numpy())


def turn(x: ArrayLike, position: float, rotary: Rotary = PLAIN) -> NDArray[np.float64]:
    """Turn the pairs of x (…,D) as rotary positions do at `position`; the opposite position turns back.

    The same as `engine.rotary.rotate`, in float64: numbers 2j and 2j + 1 are a pair; those after the share
    that turns stay as they are.

    >>> turn([1.0, 0.0], np.pi / 2).round(6).tolist()
    [0.0, 1.0]
    """
    x = np.asarray(x, dtype=np.float64)
    width = rotary.width(x.shape[-1])
    angles = position * speeds(width, rotary)
    cos, sin = np.cos(angles), np.sin(angles)
    even, odd = x[..., 0:width:2], x[..., 1:width:2]
    turned = np.stack((even * cos - odd * sin, even * sin + odd * cos), axis=-1)
    return np.concatenate((turned.reshape(*x.shape[:-1], width), x[..., width:]), axis=-1)


@dataclass(frozen=True, eq=False)
class Shifts:
    """What q · k becomes when positions move.

    Attributes:
        shifts: (M,) by how many positions.
        together: (M,) q · k when query and key move by the same.
        alone: (M,) when only the query moves.
    """

    shifts: NDArray[np.int64]
    together: NDArray[np.float64]
    alone: NDArray[np.float64]


def shifted_scores(
    q: ArrayLike,
    k: ArrayLike,
    q_position: int,
    k_position: int,
    shifts: Sequence[int],
    rotary: Rotary = PLAIN,
) -> Shifts:
    """Turn a query and a key (D,), not turned yet, at moved positions, and multiply them there.

    With rotary positions the score depends on the distance of the two alone, so `together` stays.
    """
    key = turn(k, k_position, rotary)
    queries = [turn(q, q_position + s, rotary) for s in shifts]
    together = [
        float(query @ turn(k, k_position + s, rotary)) for query, s in zip(queries, shifts, strict=True)
    ]
    alone = [float(query @ key) for query in queries]
    return Shifts(np.array(shifts, dtype=np.int64), np.array(together), np.array(alone))
