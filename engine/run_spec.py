"""What makes a run: text, vocabulary, shape, recipe; checked before anything is written."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from engine.checks import check_lengths
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, split
from engine.tokenizers import Tokenizer
from engine.trained_part import check_blocks
from engine.tuning_data import Rows, encode_rows
from engine.tuning_size import check_memory, need_of
from engine.tuning_start import Start as Start
from engine.tuning_start import check_start
from wording import words

say = words("engine.run_spec")

MOST_AT_ONCE = 2**20  # tokens in one step: a worker listens between two steps, and not within one
ALSO = "also/{}.txt"  # a text that is also scored, by the first 16 digits of its sha256


@dataclass(frozen=True, eq=False)
class RunSpec:
    """Everything that makes a run.

    Attributes:
        val_share: end of the text kept for validation, unless the corpus has a validation text of its own.
        sample_prompt: what the samples on the way continue; None is the start of a line.
        device: "auto" is a GPU when there is one, else the CPU.
        group: names an experiment that several runs belong to; "" for a run of its own.
        label: what this run is in its group, such as "too low".
        also_scored: further texts by name that are scored at each evaluation and never learned from.
        start: the model whose weights are trained on; None begins with new ones.
    """

    name: str
    corpus: Corpus
    tokenizer: Tokenizer
    model: ModelConfig
    train: TrainConfig
    val_share: float = 0.1
    sample_prompt: str | None = None
    device: str = "auto"
    group: str = ""
    label: str = ""
    also_scored: Mapping[str, str] = field(default_factory=dict)
    start: Start | None = None

    def check(self, counted: dict[tuple[str, str], int] | None = None) -> tuple[int, int]:
        """Number of training and validation tokens.

        Args:
            counted: (tokenizer, text) -> tokens; what is there isn't counted again, and what is new is added.

        Raises:
            ValueError: if such a run could not be trained: text too short, tokenizer and model that don't
                fit.
        """
        need = self.tokenizer.model_vocab_size(self.model.objective)
        if self.model.vocab_size != need:
            raise ValueError(
                say(
                    "tokenizer_needs_model_vocab",
                    name=self.tokenizer.name,
                    need=need,
                    objective=self.model.objective,
                    has=self.model.vocab_size,
                )
            )
        if self.device not in ("auto", "cpu", "cuda"):
            raise ValueError(say("device_must_auto_cpu", device=self.device))
        check_blocks(self.model, self.train.last_blocks)
        if self.start is not None:
            check_start(self.start, self.model, self.tokenizer)
        if self.sample_prompt:
            self.tokenizer.encode(self.sample_prompt)  # a character vocabulary may not know it
        counted = {} if counted is None else counted
        texts = split(self.corpus, self.val_share)
        if self.train.aim == "text":
            length = self.train.longest_row(self.model.context_length)
            n_train, n_val = (self._count(text, counted) for text in texts)
            check_lengths(n_train, n_val, length)
        else:
            rows = self._rows(texts)
            n_train, n_val = rows[0].n_tokens, rows[1].n_tokens
            length = max(rows[0].length, rows[1].length)
        for name, text in self.also_scored.items():
            if self._count(text, counted) < 2:
                raise ValueError(say("text_scored_needs_least", name=name))
        if (n := length * self.train.batch_size) > MOST_AT_ONCE:
            raise ValueError(say("too_many_at_once", n=n, most=MOST_AT_ONCE))
        gpu = free_on_gpu() if self.device != "cpu" else None
        check_memory(need_of(self.model, self.train, length, on_gpu=gpu is not None), on_gpu=gpu)
        return n_train, n_val

    def _rows(self, texts: tuple[str, str]) -> Rows:
        if self.corpus.kind != self.train.aim:
            raise ValueError(say("aim_needs_pairs", aim=self.train.aim, kind=self.corpus.kind))
        if self.model.objective != "clm":
            raise ValueError(say("pairs_need_causal"))
        if self.train.aim == "preferences" and self.start is None:
            raise ValueError(say("preferences_need_start"))
        return encode_rows(texts, self.train, self.tokenizer, self.model.context_length)

    def _count(self, text: str, counted: dict[tuple[str, str], int]) -> int:
        key = (self.tokenizer.hash, text)
        if key not in counted:
            counted[key] = len(self.tokenizer.encode(text))
        return counted[key]

    def to_json(self) -> dict[str, Any]:
        """Settings as plain values; texts and vocabulary as fingerprints."""
        return {
            "model": self.model.to_json(),
            "train": self.train.to_json(),
            "corpus": {
                "name": self.corpus.name,
                "kind": self.corpus.kind,
                "val_share": self.val_share,
                "sha256": self.corpus.sha256,
            },
            "tokenizer": {"name": self.tokenizer.name, "hash": self.tokenizer.hash},
            "sample_prompt": self.sample_prompt,
            "device": self.device,
            "group": self.group,
            "label": self.label,
            "also_scored": {name: fingerprint(text) for name, text in self.also_scored.items()},
            **({} if self.start is None else {"start": self._start()}),
        }

    def _start(self) -> dict[str, str]:
        assert self.start is not None
        return {"kind": self.start.kind, "name": self.start.name, "identity": self.start.identity}


def fingerprint(text: str) -> str:
    """The sha256 of a text as UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def spec_hash(spec: RunSpec) -> str:
    """The same for two specs that would train the same numbers, whatever they are called."""
    settings = spec.to_json()
    if spec.start is not None:  # the same weights, whatever they are called
        settings["start"] = spec.start.identity
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def free_on_gpu() -> int | None:
    """Bytes free on the GPU that a run would take; None without one."""
    return int(torch.cuda.mem_get_info()[0]) if torch.cuda.is_available() else None


def also_file(text: str) -> str:
    """Where in a run's folder a text that is also scored lies."""
    return ALSO.format(fingerprint(text)[:16])
