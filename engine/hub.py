"""Published models from a Hugging Face folder, as our own `Transformer`.

Only config.json, safetensors and tokenizer.json are read; nothing in the folder is run.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from engine import hub_files
from engine.checkpoints import Checkpoint
from engine.hub_files import CONFIG, read_tensor
from engine.hub_layout import unpacked
from engine.hub_plan import HubFolder as HubFolder
from engine.hub_plan import HubPlan, plan_folder, some
from engine.hub_plan import look as look
from engine.hub_tokenizer import load_tokenizer
from engine.model import Transformer
from wording import words

say = words("engine.hub")


def load_model(folder: str | Path, *, context_length: int | None = None) -> Transformer:
    """The model in a folder, with float32 weights on the CPU.

    Args:
        folder: with config.json and model.safetensors, or an index and its shards.
        context_length: most tokens to read at once, of a model with rotary positions; None: at most
            `hub_families.LONGEST`.

    Raises:
        ValueError: one sentence, if the architecture is unknown, a weight is missing, left over, of the wrong
            shape or not finite, or the folder holds what can't be read safely.
    """
    return _filled(plan_folder(Path(folder), context_length))


def load_folder(
    folder: str | Path, *, device: str | torch.device = "cpu", context_length: int | None = None
) -> Checkpoint:
    """The model and the tokenizer in a folder.

    Raises:
        ValueError: one sentence, if either can't be loaded exactly, or they don't belong together.
    """
    planned = plan_folder(Path(folder), context_length)
    config = planned.found.config
    files = {stored.file for stored in planned.stored.values()}
    info = {"name": planned.found.folder.name, "source": "hub", "kind": planned.found.kind}
    with ThreadPoolExecutor(1) as beside:  # a second for every 500 MB, while the weights are read
        identity = beside.submit(hub_files.fingerprint, [*files, planned.found.folder / CONFIG])
        return Checkpoint(
            tokenizer=load_tokenizer(planned.found.folder, config.vocab_size),
            model=_filled(planned).to(device),
            config=config,
            info=info,
            identity=identity.result(),
        )


@torch.no_grad()
def _filled(planned: HubPlan) -> Transformer:
    """The model with its weights, one tensor of the files in memory at a time."""
    model = Transformer(planned.found.config, initial=False)
    parameters = dict(model.named_parameters())
    left = set(planned.shapes)
    for weight in planned.weights:
        tensor = read_tensor(planned.stored[weight.theirs])
        for name, part in zip(
            weight.ours, unpacked(weight, tensor, planned.found.config, planned.shapes), strict=True
        ):
            if weight.layout == "added":
                parameters[name].add_(part)
            else:
                parameters[name].copy_(part)  # as float32
                left.discard(name)
            if not _all_finite(parameters[name]):
                raise ValueError(say("not_finite", tensor=weight.theirs))
    for copy, of in planned.copies:
        if not torch.equal(read_tensor(planned.stored[copy]), read_tensor(planned.stored[of])):
            raise ValueError(say("copies_differ", tensor=copy, other=of))
    if left:  # a gap in the family's table
        raise ValueError(say("weights_missing", names=some(sorted(left))))
    return model


def _all_finite(weights: torch.Tensor) -> bool:
    """Whether all are numbers; their sum, if it doesn't overflow, tells it faster than a look at each."""
    return bool(weights.sum().isfinite()) or bool(weights.isfinite().all())
