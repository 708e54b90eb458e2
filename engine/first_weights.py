"""How weights begin: from the caller's generator, and in no other way."""

import math
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from engine.config import ModelConfig


class NoFirstWeights(TorchFunctionMode):
    """Layers made inside get no weights yet: those come from the caller's generator, never the global one.

    (Making them on the "meta" device does the same, but loads torch's compiler first: 1.7 s.)
    """

    def __torch_function__(  # noqa: D105
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@torch.no_grad()
def set_first_weights(model: nn.Module, config: ModelConfig, generator: torch.Generator) -> None:
    """Normal of 0.02; what writes to the residual stream is smaller by √(2L) (Radford et al. 2019, §2.3).

    A tied embedding gives each token a logit of up to 0.02 · d_model for itself, so above a width of 128
    it starts smaller: else the first loss would lie far above ln V.
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)
        else:
            writes = name.endswith(("attention.out.weight", "mlp.down.weight"))
            std = 0.02 / math.sqrt(2 * config.n_layer) if writes else 0.02
            if name == "embedding.weight" and config.tie_head:
                std = min(std, 0.02 * 128 / config.d_model)
            parameter.normal_(0.0, std, generator=generator)
