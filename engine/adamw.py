"""AdamW (Loshchilov & Hutter 2017, arXiv:1711.05101): PyTorch's own arithmetic without its Optimizer class.

That class loads PyTorch's compiler at its first step: more than a second in which nothing is learned.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adamw import adamw

BETAS, EPS = (0.9, 0.99), 1e-8


class AdamW:
    """The update of weights, each by its own running means.

    Attributes:
        parameters: that it changes.
        state: of each, "step" (), "exp_avg" and "exp_avg_sq".
    """

    KEYS = ("step", "exp_avg", "exp_avg_sq")

    def __init__(self, parameters: Iterable[Tensor], weight_decay: float) -> None:
        """Matrices are pulled towards 0 by `weight_decay`, biases and norms never."""
        self.parameters = list(parameters)
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self._groups = (
            ([p for p in self.parameters if p.ndim >= 2], weight_decay),
            ([p for p in self.parameters if p.ndim < 2], 0.0),
        )

    @torch.no_grad()
    def step(self, learning_rate: float, step: int) -> None:
        """Change the weights by one update."""
        for parameters, decay in self._groups:
            for parameter in parameters:
                if parameter not in self.state:
                    self.state[parameter] = {
                        "step": torch.zeros((), device=parameter.device),
                        "exp_avg": torch.zeros_like(parameter),
                        "exp_avg_sq": torch.zeros_like(parameter),
                    }
            if parameters:
                counts, means, squares = ([self.state[p][key] for p in parameters] for key in self.KEYS)
                adamw(
                    parameters,
                    [p.grad for p in parameters if p.grad is not None],
                    means,
                    squares,
                    [],
                    counts,
                    fused=True,
                    amsgrad=False,
                    beta1=BETAS[0],
                    beta2=BETAS[1],
                    lr=learning_rate,
                    weight_decay=decay,
                    eps=EPS,
                    maximize=False,
                )
