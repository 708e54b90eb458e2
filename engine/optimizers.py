"""What turns gradients into new weights: AdamW or Muon, and clipping."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from engine.config import TrainConfig
from wording import words

say = words("engine.optimizers")


class FlatGradients:
    """All gradients of a model in one row: clearing, measuring, clipping and sending them is one operation.

    Attributes:
        flat: (N,) the gradients of all N weights.
        further: (1,) one more number, which travels with them between processes.
        whole: (N+1,) both.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        """Take the model's parameters; `clear` gives each a part of the row as its gradient."""
        self._parameters = list(parameters)
        first, sizes = self._parameters[0], [p.numel() for p in self._parameters]
        self.whole = torch.zeros(sum(sizes) + 1, device=first.device, dtype=first.dtype)
        self.flat, self.further = self.whole[:-1], self.whole[-1:]
        self._views = [
            row.view_as(p) for row, p in zip(torch.split(self.flat, sizes), self._parameters, strict=True)
        ]
        self.clear()

    def clear(self) -> None:
        """Set every gradient to 0, and see to it that the parameters' gradients are these."""
        self.whole.zero_()
        for parameter, view in zip(self._parameters, self._views, strict=True):
            parameter.grad = view

    def norm(self) -> float:
        """Euclidean length over all weights; NaN or infinite as soon as one gradient is."""
        return float(torch.linalg.vector_norm(self.flat))

    def clip(self, norm: float, limit: float) -> None:
        """Shorten to the length `limit` if `norm` is longer (Pascanu 2013, arXiv:1211.5063); 0 is off."""
        if limit and norm > limit:
            self.flat.mul_(limit / norm)

    def release(self) -> None:
        """Take the gradients off the model again, unless somebody else has put theirs there."""
        for parameter, view in zip(self._parameters, self._views, strict=True):
            if parameter.grad is view:
                parameter.grad = None


class Optimizer:
    """AdamW for everything, or Muon for the matrices inside the blocks and AdamW for the rest.

    AdamW (Loshchilov & Hutter 2017, arXiv:1711.05101) pulls matrices towards 0, never biases and norms. Muon
    (Jordan 2024) takes the nearest orthogonal matrix to the momentum as its update; scaled as in Liu et al.
    2025, arXiv:2502.16982, so that one learning rate suits both.
    """

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        """Sort the model's parameters into groups; those that ask for no gradient are left alone."""
        named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        muon = config.optimizer == "muon"
        hidden = {n: p for n, p in named.items() if muon and p.ndim == 2 and n.startswith("blocks.")}
        rest = {n: p for n, p in named.items() if n not in hidden}
        decay = 0.0 if muon else config.weight_decay  # beside Muon, only embeddings and norms are left
        groups = [
            {"params": [p for p in rest.values() if p.ndim >= 2], "weight_decay": decay},
            {"params": [p for p in rest.values() if p.ndim < 2], "weight_decay": 0.0},
        ]
        self.kind = config.optimizer
        self._named = named
        self._parts: list[torch.optim.Optimizer] = []
        if groups := [g for g in groups if g["params"]]:
            self._parts.append(torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.99), fused=True))
        if hidden:
            self._parts.append(
                torch.optim.Muon(
                    list(hidden.values()),
                    lr=0.0,
                    weight_decay=config.weight_decay,
                    adjust_lr_fn="match_rms_adamw",
                )
            )

    def step(self, learning_rate: float) -> None:
        """Change the weights by one update."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = learning_rate
            part.step()

    def state(self) -> dict[str, Tensor]:
        """Copies of all moments: "<which>/<parameter>" -> tensor on the CPU. Empty before the first step."""
        name_of: dict[Tensor, str] = {p: n for n, p in self._named.items()}
        return {
            f"{key}/{name_of[p]}": value.detach().cpu().clone()
            for part in self._parts
            for p, values in part.state.items()
            for key, value in values.items()
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Take over what `state` gave.

        Raises:
            ValueError: if it belongs to another optimizer or another model.
        """
        loaded: set[str] = set()
        for part in self._parts:
            keys = (
                ("momentum_buffer",)
                if isinstance(part, torch.optim.Muon)
                else ("step", "exp_avg", "exp_avg_sq")
            )
            for name in [
                n
                for n, p in self._named.items()
                if any(p is q for g in part.param_groups for q in g["params"])
            ]:
                parameter = self._named[name]
                for key in keys:
                    value = state.get(f"{key}/{name}")
                    if value is None or (key != "step" and value.shape != parameter.shape):
                        raise ValueError(
                            say("optimizer_state_checkpoint_doesnt", part=key, name=name, kind=self.kind)
                        )
                    part.state[parameter][key] = value.to(parameter.device, torch.float32, copy=True)
                    loaded.add(f"{key}/{name}")
        if extra := sorted(set(state) - loaded):
            raise ValueError(say("optimizer_state_checkpoint_doesnt_2", extra=extra[0], kind=self.kind))
