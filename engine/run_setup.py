"""From a run's folder to a training that is ready to begin: text, vocabulary, device, weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from engine.aims import Aim
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
from engine.tuning_data import (
    Rows,
    cut_notice,
    encode_rows,
    first_prompt,
    keep_reference,
    kept_reference,
    make_aim,
)
from engine.tuning_size import large_notice
from engine.tuning_start import is_large, start_of_run
from wording import words

say = words("engine.run_setup")


@dataclass(frozen=True, eq=False)
class Setup:
    """What a run is trained with.

    Attributes:
        ids: of the training text and of the validation text, each (N,) int64.
        model: with its first weights, or those of the checkpoint, on its device.
        checkpoint: the newest good one, None for a new run.
        aim: what is learned if that is no text; then `ids` are empty.
        rows: the pairs behind the aim.
        notices: what the user should know of how it begins.
        first_prompt: of the first pair that is held out, or else of the first of all; "" without pairs.
    """

    config: TrainConfig
    tokenizer: Tokenizer
    ids: tuple[torch.Tensor, torch.Tensor]
    model: Transformer
    checkpoint: Checkpoint | None
    aim: Aim[Any] | None = None
    rows: Rows | None = None
    notices: tuple[str, ...] = ()
    first_prompt: str = ""

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
            special_ids=self.tokenizer.control_ids,
            bytes_per_token=token_lengths(self.tokenizer, self.model.config.vocab_size),
            processes=processes,
            aim=self.aim,
        )


def set_up(folder: Path, settings: dict[str, Any], report: Callable[[str], None]) -> Setup:
    """Read a run's folder, whose run.json holds `settings`; damaged checkpoints are reported and passed over.

    Raises:
        ValueError: if it can't be trained here.
    """
    config = TrainConfig.from_json(settings["train"])
    shape = ModelConfig.from_json(settings["model"])
    tokenizer = tokenizer_from_json(read_json(folder / "tokenizer.json"))
    checkpoint = newest_that_opens(folder, report)
    if is_large(shape):
        config = replace(config, moments=0)
    device = choose_device(settings.get("device", "auto"))
    model = first_model(folder, settings, shape, config) if checkpoint is None else checkpoint.model
    model.to(device)
    notices = [large_notice(shape, config)]
    if config.last_blocks is not None and shape.tie_head:
        notices.append(say("tied_head_frozen"))
    if config.aim == "text":
        ids = run_ids(folder, settings["corpus"], tokenizer)
        return Setup(config, tokenizer, ids, model, checkpoint, notices=tuple(filter(None, notices)))
    texts = run_texts(folder, settings["corpus"])
    rows = encode_rows(texts, config, tokenizer, shape.context_length)
    reference = None
    if config.aim == "preferences":
        reference = kept_reference(folder, rows)
        if reference is None:
            before = model if checkpoint is None else first_model(folder, settings, shape, config).to(device)
            reference = keep_reference(folder, rows, before, config)
    notices.append(cut_notice(rows))
    nothing = torch.empty(0, dtype=torch.int64)
    return Setup(
        config,
        tokenizer,
        (nothing, nothing),
        model,
        checkpoint,
        make_aim(rows, model, config, reference),
        rows,
        tuple(filter(None, notices)),
        first_prompt(texts, config.aim),
    )


def first_model(
    folder: Path, settings: dict[str, Any], shape: ModelConfig, config: TrainConfig
) -> Transformer:
    """The model of a run before its first step: its start, or new weights from its seed.

    Raises:
        ValueError: one sentence, if its start is gone or another one.
    """
    start = start_of_run(folder, settings)
    if start is None:
        return Transformer(shape, torch.Generator().manual_seed(config.seed))
    if start.model.config != shape:
        raise ValueError(say("start_has_another_shape", name=settings["start"]["name"]))
    return start.model


def run_ids(folder: Path, about: dict[str, Any], tokenizer: Tokenizer) -> tuple[torch.Tensor, torch.Tensor]:
    """Training and validation ids (N,) of a run; `about` is the "corpus" in its run.json."""
    texts = run_texts(folder, about)
    first, second = (torch.tensor(tokenizer.encode(t), dtype=torch.int64) for t in texts)
    return first, second


def run_texts(folder: Path, about: dict[str, Any]) -> tuple[str, str]:
    """Training and validation text of a run."""
    val_file = folder / "corpus_val.txt"
    text = (folder / "corpus.txt").read_bytes().decode()
    val_text = val_file.read_bytes().decode() if val_file.exists() else None
    return split(Corpus(about["name"], about["kind"], text, val_text), about["val_share"])


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
