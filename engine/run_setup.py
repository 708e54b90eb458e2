"""From a run's folder to a training that is ready to begin: text, vocabulary, device, weights."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.checkpoint_list import list_checkpoints
from engine.checkpoints import Checkpoint, load_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, split
from engine.folders import read_json
from engine.model import Transformer
from engine.parallel import ALONE, Processes, own_gpu
from engine.run_measures import token_lengths
from engine.tokenizers import Tokenizer, tokenizer_from_json
from engine.training import Training, train
from wording import words

say = words("engine.run_setup")


@dataclass(frozen=True, eq=False)
class Setup:
    """What a run is trained with.

    Attributes:
        ids: of the training text and of the validation text, each (N,) int64.
        model: with its first weights, or those of the checkpoint, on its device.
        checkpoint: the newest good one, None for a new run.
    """

    config: TrainConfig
    tokenizer: Tokenizer
    ids: tuple[torch.Tensor, torch.Tensor]
    model: Transformer
    checkpoint: Checkpoint | None

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return 0 if self.checkpoint is None else self.checkpoint.step

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: it was killed between the last checkpoint and its end."""
        return self.checkpoint is not None and self.checkpoint.step >= self.config.steps

    @property
    def rounded(self) -> bool:
        """Whether it goes on from weights that were kept in 8 bits, since nothing better is left."""
        return self.checkpoint is not None and self.checkpoint.dtype == "int8"

    def training(self, processes: Processes = ALONE) -> Training:
        """The training, before its first event.

        Raises:
            ValueError: if the processes don't begin at the same step.
        """
        if not processes.agree(self.step):
            raise ValueError(
                say("processes_run_found_different", n=processes.n, rank=processes.rank, step=self.step)
            )
        masked = self.model.config.objective == "mlm"
        return train(
            self.model,
            *self.ids,
            self.config,
            resume=None if self.checkpoint is None else self.checkpoint.train_state(),
            line_end_ids=self.tokenizer.line_end_ids,
            mask_id=self.tokenizer.mask_id if masked else None,
            bytes_per_token=token_lengths(self.tokenizer, self.model.config.vocab_size),
            processes=processes,
        )


def set_up(folder: Path, settings: dict[str, Any], report: Callable[[str], None]) -> Setup:
    """Read a run's folder, whose run.json holds `settings`; damaged checkpoints are reported and passed over.

    Raises:
        ValueError: if it can't be trained here.
    """
    config = TrainConfig.from_json(settings["train"])
    tokenizer = tokenizer_from_json(read_json(folder / "tokenizer.json"))
    ids = run_ids(folder, settings["corpus"], tokenizer)
    checkpoint = newest_that_opens(folder, report)
    if checkpoint is None:
        shape = ModelConfig.from_json(settings["model"])
        model = Transformer(shape, torch.Generator().manual_seed(config.seed))
    else:
        model = checkpoint.model
    model.to(choose_device(settings.get("device", "auto")))
    return Setup(config, tokenizer, ids, model, checkpoint)


def run_ids(folder: Path, about: dict[str, Any], tokenizer: Tokenizer) -> tuple[torch.Tensor, torch.Tensor]:
    """Training and validation ids (N,) of a run; `about` is the "corpus" in its run.json."""
    val_file = folder / "corpus_val.txt"
    text = (folder / "corpus.txt").read_bytes().decode()
    val_text = val_file.read_bytes().decode() if val_file.exists() else None
    texts = split(Corpus(about["name"], about["kind"], text, val_text), about["val_share"])
    first, second = (torch.tensor(tokenizer.encode(t), dtype=torch.int64) for t in texts)
    return first, second


def newest_that_opens(folder: Path, report: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that opens; damaged ones are passed over and named."""
    for _, path in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(path)
        except ValueError as error:
            report(str(error))
    return None


def choose_device(wanted: str) -> torch.device:
    """A GPU when there is one and it isn't refused, else the CPU; of several processes each has its own."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError(say("run_asks_gpu_cuda"))
    return own_gpu() if wanted != "cpu" and torch.cuda.is_available() else torch.device("cpu")
