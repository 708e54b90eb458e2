"""Where a model computes: what there is, which of it a person wants, and what became of that wish.

What there is comes as a tuple of `Device`, so that every rule can be tried on machines that aren't here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from engine.model import Transformer
from wording import words

say = words("engine.devices")

AUTO, CPU, MPS = "auto", "cpu", "mps"
AGREE = 1e-3  # largest difference of logits to the CPU's, as a share of the largest of those
PROBE = 16  # tokens that a device is tried with
SPARE = 1.1  # times the weights that must be free on a GPU: what is computed on the way needs room, too


@dataclass(frozen=True)
class Device:
    """Something that can compute.

    Attributes:
        id: as torch calls it: "cpu", "cuda:0", "mps".
        name: of the GPU, from its maker; "" for the processor.
        free: bytes of its own memory that are free; None if it doesn't tell.
    """

    id: str
    name: str = ""
    free: int | None = None

    @property
    def label(self) -> str:
        """As the screen calls it, such as "GPU · NVIDIA H200"."""
        return f"GPU · {self.name}" if self.id != CPU else "CPU"


def devices() -> tuple[Device, ...]:
    """What is in this machine, the processor first."""
    found = [Device(CPU)]
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            found.append(Device(f"cuda:{i}", torch.cuda.get_device_name(i), torch.cuda.mem_get_info(i)[0]))
    if torch.backends.mps.is_available():
        found.append(Device(MPS, "Apple"))
    return tuple(found)


@dataclass(frozen=True)
class Placed:
    """Where a model's weights are, and why they aren't where they were wanted.

    Attributes:
        device: that holds them.
        why: what came in the way, by a short name; "" if nothing did.
        details: of that.
    """

    device: Device
    why: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """One sentence in the language of whoever reads it; "" if the model is where it was wanted."""
        return say(f"why.{self.why}", **self.details) if self.why else ""


def choose(wanted: str, n_bytes: int, there: Sequence[Device]) -> Placed:
    """The device for a model of so many bytes.

    "auto" is the first NVIDIA or AMD GPU with enough room, else the processor. Apple's GPU is taken only when
    it is asked for: on it a few operations of torch were wrong in the past, see `place`.

    Args:
        wanted: "auto" or the id of a device.
        n_bytes: of the weights.
        there: as `devices` gives.
    """
    cpu = next(device for device in there if device.id == CPU)
    if wanted == AUTO:
        gpus = [device for device in there if device.id.startswith("cuda")]
        roomy = [gpu for gpu in gpus if _fits(gpu, n_bytes)]
        if roomy:
            return Placed(roomy[0])
        return _too_small(gpus[0], cpu, n_bytes) if gpus else Placed(cpu)
    found = next((device for device in there if device.id == wanted), None)
    if found is None:
        return Placed(cpu, "not_there", {"wanted": wanted})
    return Placed(found) if _fits(found, n_bytes) else _too_small(found, cpu, n_bytes)


def _fits(device: Device, n_bytes: int) -> bool:
    return device.free is None or device.free >= SPARE * n_bytes


def _too_small(device: Device, cpu: Device, n_bytes: int) -> Placed:
    sizes = {"need": SPARE * n_bytes / 1e6, "free": (device.free or 0) / 1e6}
    return Placed(cpu, "too_small", {"name": device.name, **sizes})


def _to(model: Transformer, device: str) -> None:
    model.to(device)


def place(
    model: Transformer,
    wanted: str = AUTO,
    there: Sequence[Device] | None = None,
    *,
    move: Callable[[Transformer, str], None] = _to,
) -> Placed:
    """Move a model, which is on the processor, to the device that is wanted; it stays if that fails.

    Args:
        model: float32; its weights are moved in place.
        wanted: "auto" or the id of a device.
        there: what this machine has; None looks.
        move: moves a model to a device.

    Returns:
        Where it is now, and why it isn't where it was wanted.
    """
    there = devices() if there is None else there
    placed = choose(wanted, 4 * model.n_parameters(), there)
    if placed.device.id == CPU:
        return placed
    cpu, device = next(device for device in there if device.id == CPU), placed.device
    expected = _probe(model) if device.id == MPS else None
    try:
        move(model, device.id)
        found = None if expected is None else _probe(model)
    except torch.OutOfMemoryError:
        _back(model)
        return Placed(cpu, "out_of_memory", {"name": device.name})
    except RuntimeError as error:  # its driver, or an operation that it can't do
        _back(model)
        return Placed(cpu, "failed", {"name": device.name, "error": str(error).splitlines()[0][:160]})
    if expected is not None and found is not None:
        apart = difference(found, expected)
        if not apart <= AGREE:  # NaN is refused, too
            _back(model)
            return Placed(cpu, "disagrees", {"name": device.name, "apart": apart, "most": AGREE})
    return placed


def _back(model: Transformer) -> None:
    model.to(CPU)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@torch.no_grad()
def _probe(model: Transformer) -> torch.Tensor:
    """Logits (T,V) for a few ids that are spread over the vocabulary, on the processor."""
    n, size = min(PROBE, model.config.context_length), model.config.vocab_size
    ids = [(7 + 7919 * i) % size for i in range(n)]
    return model(torch.tensor([ids], device=model.device))[0].float().cpu()


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest distance of two sets of logits, as a share of the largest logit expected.

    >>> difference(torch.tensor([2.0, -4.1]), torch.tensor([2.0, -4.0]))  # doctest: +ELLIPSIS
    0.0249...
    """
    return float((found - expected).abs().max() / expected.abs().max().clamp_min(1e-12))
