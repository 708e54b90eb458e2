"""Muon: every update is the orthogonal matrix nearest to the momentum (Jordan et al. 2024).

A gradient of a matrix is mostly a few large directions. Muon keeps its directions (the singular vectors) and
gives each the same length, so that the small ones are learned as fast as the large ones. The nearest
orthogonal matrix is U V^T of the singular value decomposition U Σ V^T. It is found without one, by matrix
products alone: an odd polynomial a X + b X X^T X + c (X X^T)² X changes each singular value s to
a s + b s³ + c s⁵ and no singular vector. A few such polynomials in turn bring all values close to 1.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

# (a, b, c) of each polynomial in turn: those that, one after the other, bring every singular value between
# 0.001 and 1 as near to 1 as polynomials of degree 5 can ("Polar Express", Amsel et al. 2025,
# arXiv:2505.16932).
POLYNOMIALS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
    (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
)
SAFETY = 1.01  # in 16 bits: a value that rounding lifts above 1 would grow with every further polynomial
IN_A_STEP = 3  # so many of them: five bring the values nearer to 1, but learn no more per step
FIRST_MOMENTUM, LAST_MOMENTUM, MOMENTUM_STEPS = 0.85, 0.95, 200


def momentum_at(step: int) -> float:
    """Share of the old momentum that is kept in the update that follows `step` finished ones.

    Less at first, where gradients still change fast.

    >>> [round(momentum_at(step), 3) for step in (0, 100, 200, 5000)]
    [0.85, 0.9, 0.95, 0.95]
    """
    done = min(1.0, step / MOMENTUM_STEPS)
    return FIRST_MOMENTUM + (LAST_MOMENTUM - FIRST_MOMENTUM) * done


def orthogonal(matrices: Tensor, n_polynomials: int = IN_A_STEP) -> Tensor:
    """The orthogonal matrices nearest to these, roughly.

    Singular values from 0.001 to 1 times the length of a matrix come to lie between 0.13 and 1.87 with three
    polynomials, between 0.87 and 1.13 with five.

    Args:
        matrices: (K,M,N).
        n_polynomials: how many to use; fewer are faster and less exact.

    Returns:
        (K,M,N) float32 as they, with the same singular vectors. Under `precision.computing_in` the products
        between are of 16 bits, and a share `SAFETY` is kept free as the authors advise.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    X = matrices.mT if tall else matrices
    safety = SAFETY if torch.is_autocast_enabled(X.device.type) else 1.0
    X = X / (safety**2 * X.norm(dim=(-2, -1), keepdim=True)).clamp(min=1e-20)  # no singular value above 1
    for k, (a, b, c) in enumerate(POLYNOMIALS[:n_polynomials], 1):
        s = safety if k < n_polynomials else 1.0  # p(X / s) in place of p(X), but for the last one
        A = X @ X.mT  # (K,M,M)
        B = torch.baddbmm(A, A, A, beta=b / s**3, alpha=c / s**5)  # b A + c A A
        X = torch.baddbmm(X, B, X, beta=a / s)  # a X + B X
    return (X.mT if tall else X).type_as(matrices)


class Muon:
    """The update of matrices: p - rate · (decay · p + scale · orthogonal(momentum)).

    The scale 0.2 √(larger side) gives an update the size that one of AdamW has (Liu et al. 2025,
    arXiv:2502.16982), so that one learning rate suits both. Matrices of one shape are stacked: one product
    for all of them.

    Attributes:
        parameters: that it changes.
        state: of each, its "momentum_buffer".
    """

    KEYS = ("momentum_buffer",)

    def __init__(self, parameters: Iterable[Tensor], weight_decay: float) -> None:
        """Start without momentum."""
        self.parameters = list(parameters)
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self._decay = weight_decay
        self._stacks: dict[torch.Size, list[Tensor]] = {}
        for parameter in self.parameters:
            self._stacks.setdefault(parameter.shape, []).append(parameter)

    @torch.no_grad()
    def step(self, learning_rate: float, step: int) -> None:
        """Change the weights by one update, which follows `step` finished ones."""
        momentum = momentum_at(step)
        for shape, parameters in self._stacks.items():
            gradients = torch.stack([p.grad for p in parameters if p.grad is not None])  # (K,M,N)
            for parameter in parameters:
                if parameter not in self.state:
                    self.state[parameter] = {"momentum_buffer": torch.zeros_like(parameter)}
            buffers = [self.state[p]["momentum_buffer"] for p in parameters]
            torch._foreach_lerp_(buffers, list(gradients), 1 - momentum)
            looking_ahead = gradients.lerp(torch.stack(buffers), momentum)  # Nesterov 1983
            scale = 0.2 * math.sqrt(max(shape))
            updates = orthogonal(looking_ahead)
            torch._foreach_mul_(parameters, 1 - learning_rate * self._decay)
            torch._foreach_add_(parameters, list(updates), alpha=-learning_rate * scale)
