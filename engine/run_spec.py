"""What makes a run: text, vocabulary, shape, recipe; checked before anything is written."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, split
from engine.tokenizers import Tokenizer
from engine.training import check_lengths
from wording import words

say = words("engine.run_spec")

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
        if self.sample_prompt:
            self.tokenizer.encode(self.sample_prompt)  # a character vocabulary may not know it
        counted = {} if counted is None else counted
        n_train, n_val = (self._count(text, counted) for text in split(self.corpus, self.val_share))
        check_lengths(n_train, n_val, self.model.context_length)
        for name, text in self.also_scored.items():
            if self._count(text, counted) < 2:
                raise ValueError(say("text_scored_needs_least", name=name))
        return n_train, n_val

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
        }


def fingerprint(text: str) -> str:
    """The sha256 of a text as UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def spec_hash(spec: RunSpec) -> str:
    """The same for two specs that would train the same numbers, whatever they are called."""
    return hashlib.sha256(json.dumps(spec.to_json(), sort_keys=True).encode()).hexdigest()[:16]


def also_file(text: str) -> str:
    """Where in a run's folder a text that is also scored lies."""
    return ALSO.format(fingerprint(text)[:16])
