"""How much memory and disk a run takes, from its settings, before it begins."""

import math
from dataclasses import dataclass
from pathlib import Path

from engine.config import ModelConfig, TrainConfig
from engine.hub_layout import our_shapes
from engine.memory import free_disk, memory
from engine.parts import n_parts
from engine.trained_part import learns
from engine.tuning_start import is_large
from wording import words

say = words("engine.tuning_size")

FLOAT = 4  # bytes of a number
KEPT = 2  # checkpoints of a large model


class NoRoomError(ValueError):
    """The disk is too full.

    Attributes:
        missing: bytes that would have to be free besides.
    """

    def __init__(self, sentence: str, missing: int) -> None:
        super().__init__(sentence)
        self.missing = missing


@dataclass(frozen=True)
class Need:
    """Bytes that a run needs at once.

    Attributes:
        weights: of the whole model.
        gradients: of what learns, once for each part of a batch that goes back on its own.
        optimizer: its moments of what learns.
        update: what Muon computes on the way to new weights, see `update_bytes`.
        activations: what is kept of a step for its gradient, and the logits.
        saving: copies while a checkpoint is written, with the bytes of its files.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    saving: int
    update: int = 0

    @property
    def on_device(self) -> int:
        """While a step is taken: as activations go, gradients come, which are then copied into their row.

        The update follows when both copies are one again.
        """
        on_the_way = max(self.activations, self.gradients, self.update)
        return self.weights + self.gradients + self.optimizer + on_the_way

    @property
    def total(self) -> int:
        """In the memory of the machine, where the same process also writes the checkpoints."""
        return self.on_device + self.saving


def need_of(model: ModelConfig, train: TrainConfig, row_length: int, *, on_gpu: bool = False) -> Need:
    """The memory of a run.

    Args:
        model: its shape.
        train: how it learns; preferences read two rows for each one of `batch_size`.
        row_length: T, tokens of its longest row.
        on_gpu: whether a GPU trains it; a processor cuts large batches into parts, see `engine.parts`.
    """
    sizes = {name: math.prod(shape) for name, shape in our_shapes(model).items()}
    matrices = {name for name, shape in our_shapes(model).items() if len(shape) == 2}
    trained = [name for name in sizes if learns(name, model, train.last_blocks)]
    weights = FLOAT * sum(sizes.values())
    moments = FLOAT * sum(
        # Muon keeps one number for each of a block's matrices, AdamW two for each number
        sizes[n] * (1 if train.optimizer == "muon" and n.startswith("blocks.") and n in matrices else 2)
        for n in trained
    )
    n_tokens = row_length * train.batch_size * (2 if train.aim == "preferences" else 1)
    learning = sum(sizes[n] for n in trained)
    parts = 1 if on_gpu else n_parts(train.batch_size, n_tokens, learning)
    return Need(
        weights,
        FLOAT * parts * learning,
        moments,
        activation_bytes(model, n_tokens, train.last_blocks),
        2 * (weights + moments),  # a copy of the numbers, then the bytes of the files
        update_bytes(model, train),
    )


def update_bytes(model: ModelConfig, train: TrainConfig) -> int:
    """What `engine.muon` holds at once beside gradients and momentum, of all matrices of a shape together.

    Of each (M,N), M ≤ N: a copy of the gradient, the direction looked ahead, the polynomial before and after
    a step, all (M,N), and two products (M,M). AdamW needs nothing: it changes weights in their place.
    """
    if train.optimizer != "muon":
        return 0
    numbers: dict[tuple[int, ...], int] = {}
    for name, shape in our_shapes(model).items():
        if len(shape) == 2 and name.startswith("blocks.") and learns(name, model, train.last_blocks):
            small, large = sorted(shape)
            numbers[shape] = numbers.get(shape, 0) + 4 * small * large + 2 * small * small
    return FLOAT * max(numbers.values(), default=0)


def activation_bytes(model: ModelConfig, n_tokens: int, last_blocks: int | None = None) -> int:
    """What autograd keeps of a step, for so many tokens (N), and the logits with their gradient.

    For each token a block that learns keeps what enters its norms and matrices: 2 inputs of norms and their
    outputs, queries, keys and values as they are multiplied, what the heads gave, the output of the first
    matrix of the MLP and of its bend, and with a gate three of these. Nothing is kept below the first block
    that learns.
    """
    inner, kv = model.n_head * model.d_head, model.kv_heads * model.d_head
    turned = 2 if model.positions == "rotary" else 1  # before and after turning
    heads = turned * (inner + kv) + 2 * kv + inner
    if model.kv_heads != model.n_head:
        heads += 2 * inner  # keys and values repeated for the heads that share them
    mlp = model.ff_width * (4 if model.activation == "swiglu" else 3 if model.activation == "relu2" else 2)
    block = 4 * model.d_model + heads + mlp
    n_blocks = model.n_layer if last_blocks is None else last_blocks
    logits = 3 * model.vocab_size  # themselves, their log-softmax, their gradient
    return FLOAT * n_tokens * (n_blocks * block + 2 * model.d_model + logits)


def check_memory(need: Need, *, on_gpu: int | None = None, machine: int | None = None) -> None:
    """Refuse a run that doesn't fit.

    Args:
        need: of the run.
        on_gpu: bytes free on the GPU that trains it; None if the processor does.
        machine: bytes free in the machine; None asks it.

    Raises:
        ValueError: with what is needed, what there is, and the way out.
    """
    machine = memory().bound if machine is None else machine
    for needed, there, where in (
        (need.on_device, on_gpu, "gpu"),
        (need.saving + need.weights if on_gpu else need.total, machine, "machine"),
    ):
        if there is not None and needed > there:
            raise ValueError(say(f"no_room.{where}", need=needed / 1e9, there=there / 1e9))


def checkpoint_bytes(model: ModelConfig, train: TrainConfig) -> int:
    """Of one checkpoint from which training goes on."""
    need = need_of(model, train, 1)
    return need.weights + need.optimizer


def check_disk(folder: Path, model: ModelConfig, train: TrainConfig) -> None:
    """Refuse a run of a large model whose checkpoints don't fit the disk.

    Raises:
        NoRoomError: with what is needed and what there is.
    """
    if is_large(model):
        needed, there = (KEPT + 1) * checkpoint_bytes(model, train), free_disk(folder)
        if needed > there:
            raise NoRoomError(say("no_disk", need=needed / 1e9, there=there / 1e9), needed - there)


def large_notice(model: ModelConfig, train: TrainConfig) -> str:
    """One sentence if few checkpoints of a run are kept because it is large, else ""."""
    if not is_large(model):
        return ""
    return say("few_checkpoints", n=KEPT, size=checkpoint_bytes(model, train) / 1e9)
