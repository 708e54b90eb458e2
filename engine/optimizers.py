"""What turns gradients into new weights: AdamW or Muon, and clipping."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from engine.adamw import AdamW
from engine.config import TrainConfig
from engine.muon import Muon
from engine.parts import MOST_PARTS, Threads, slices
from engine.precision import Precision, computing_in
from wording import words

say = words("engine.optimizers")


class FlatGradients:
    """All gradients of a model in one row: measuring, clipping and sending them is one operation.

    Parts of a batch put theirs into rows of their own, which are then added up.

    Attributes:
        flat: (N,) the gradients of all N weights.
        further: (1,) one more number, which travels with them between processes.
        whole: (N+1,) both.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], threads: Threads | None = None) -> None:
        """Take the model's parameters; the gradient of each is a part of the row from now on."""
        self.parameters = list(parameters)
        self._sizes = [p.numel() for p in self.parameters]
        self._threads = threads or Threads(1)
        self.whole = self._empty_row()
        self.flat, self.further = self.whole[:-1], self.whole[-1:]
        self._rows = [self.flat]
        self._views = [
            row.view_as(p)
            for row, p in zip(torch.split(self.flat, self._sizes), self.parameters, strict=True)
        ]

        self.show()

    def show(self) -> None:
        """See to it that the parameters' gradients are these."""
        for parameter, view in zip(self.parameters, self._views, strict=True):
            parameter.grad = view

    def _empty_row(self) -> Tensor:
        first = self.parameters[0]
        return torch.zeros(sum(self._sizes) + 1, device=first.device, dtype=first.dtype)

    def begin(self, n_parts: int) -> None:
        """Make room for the gradients of so many parts."""
        while len(self._rows) < n_parts:
            self._rows.append(self._empty_row()[:-1])

    def put(self, part: int, gradients: Sequence[Tensor] | None) -> None:
        """The gradients of a part, in the order of the parameters; None are zeros."""
        if gradients is None:
            self._rows[part].zero_()
        else:
            torch.cat([gradient.reshape(-1) for gradient in gradients], out=self._rows[part])

    def add_up(self, n_parts: int) -> None:
        """Sum the first so many parts, in their order, and `show` the sum."""
        self.show()
        if n_parts > 1:
            pieces = slices(len(self.flat), MOST_PARTS)

            def add(k: int) -> None:
                for row in self._rows[1:n_parts]:
                    self.flat[pieces[k]] += row[pieces[k]]

            self._threads.each(add, MOST_PARTS)

    def norm(self) -> float:
        """Euclidean length over all weights; NaN or infinite as soon as one gradient is."""
        return float(torch.linalg.vector_norm(self.flat))

    def clip(self, norm: float, limit: float) -> None:
        """Shorten to the length `limit` if `norm` is longer (Pascanu 2013, arXiv:1211.5063); 0 is off."""
        if limit and norm > limit:
            self.flat.mul_(limit / norm)

    def release(self) -> None:
        """Take the gradients off the model again, unless somebody else has put theirs there."""
        for parameter, view in zip(self.parameters, self._views, strict=True):
            if parameter.grad is view:
                parameter.grad = None


class Optimizer:
    """AdamW for everything, or Muon for the matrices inside the blocks and AdamW for the rest.

    AdamW pulls matrices towards 0, but not beside Muon, where only embeddings and norms are left to it. The
    weights are dealt out into portions that threads may update at once.
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainConfig,
        threads: Threads | None = None,
        precision: Precision = "float32",
    ) -> None:
        """Sort the model's parameters; those that ask for no gradient are left alone.

        Args:
            model: what learns.
            config: how.
            threads: that share the work.
            precision: of Muon's matrix products; moments and weights are float32.
        """
        self._precision = precision
        self.kind = config.optimizer
        self._named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._threads = threads or Threads(1)
        muon = config.optimizer == "muon"
        hidden = [p for n, p in self._named.items() if muon and p.ndim == 2 and n.startswith("blocks.")]
        taken = {id(p) for p in hidden}
        rest = [p for p in self._named.values() if id(p) not in taken]
        decay = config.weight_decay
        self._portions: list[list[AdamW | Muon]] = [
            [
                *([Muon(matrices, decay)] if matrices else []),
                *([AdamW(others, 0.0 if muon else decay)] if others else []),
            ]
            for matrices, others in zip(dealt(hidden), dealt(rest), strict=True)
        ]

    def step(self, learning_rate: float, step: int) -> None:
        """Change the weights by one update, which follows `step` finished ones."""

        def update(k: int) -> None:
            for part in self._portions[k]:
                with computing_in(self._precision, part.parameters[0].device):
                    part.step(learning_rate, step)

        self._threads.each(update, len(self._portions))

    def state(self) -> dict[str, Tensor]:
        """Copies of all moments: "<which>/<parameter>" -> tensor on the CPU. Empty before the first step."""
        parts = {p: part for portion in self._portions for part in portion for p in part.parameters}
        return {
            f"{key}/{name}": value.detach().cpu().clone()
            for name, p in self._named.items()
            for key, value in parts[p].state.get(p, {}).items()
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Take over what `state` gave.

        Raises:
            ValueError: if it belongs to another optimizer or another model.
        """
        loaded: set[str] = set()
        name_of: dict[Tensor, str] = {p: n for n, p in self._named.items()}
        for part in (part for portion in self._portions for part in portion):
            for parameter in part.parameters:
                name, found = name_of[parameter], {}
                for key in part.KEYS:
                    value = state.get(f"{key}/{name}")
                    if value is None or (key != "step" and value.shape != parameter.shape):
                        raise ValueError(
                            say("optimizer_state_checkpoint_doesnt", part=key, name=name, kind=self.kind)
                        )
                    found[key] = value.to(parameter.device, torch.float32, copy=True)
                    loaded.add(f"{key}/{name}")
                part.state[parameter] = found
        if extra := sorted(set(state) - loaded):
            raise ValueError(say("optimizer_state_checkpoint_doesnt_2", extra=extra[0], kind=self.kind))


def dealt(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Portions of about as many numbers, one for each part that a batch may have: always the same ones."""
    portions: list[list[Tensor]] = [[] for _ in range(MOST_PARTS)]
    sizes = [0] * MOST_PARTS
    for parameter in parameters:
        smallest = sizes.index(min(sizes))
        portions[smallest].append(parameter)
        sizes[smallest] += parameter.numel()
    return portions
