"""What is known of a model from the headers of its files: nothing is loaded for it."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from engine import smollm2
from engine.config import ModelConfig
from engine.hub_plan import look
from engine.hub_tokenizer import load_tokenizer
from engine.tokens import repair_text
from ui import model_refs
from ui.model_refs import ModelRef
from ui.resources import DESCRIPTION
from wording import words

say = words("ui.model_facts")

FAMILIES = {
    "gpt2": "GPT-2", "gpt_neox": "GPT-NeoX", "gpt_neo": "GPT-Neo", "llama": "Llama", "mistral": "Mistral",
    "qwen2": "Qwen2", "qwen3": "Qwen3", "bert": "BERT", "distilbert": "DistilBERT", "roberta": "RoBERTa",
}  # fmt: skip
_CARD = re.compile(r"\A---\n.*?^license:\s*['\"]?([^\s'\"]{1,60})['\"]?\s*$.*?^---", re.M | re.S)
_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md")
_MOST_READ = 100_000  # bytes of a text beside the weights


@dataclass(frozen=True)
class Facts:
    """A model as its files tell.

    Attributes:
        config: its shape.
        kind: its `model_type`; "" for a model of ours.
        n_bytes: of its weights on the disk.
        licence: "" if it is not known.
    """

    config: ModelConfig
    kind: str
    n_bytes: int
    licence: str

    @property
    def family(self) -> str:
        """What its architecture is called."""
        return FAMILIES.get(self.kind, self.kind) if self.kind else say("own_family")


@dataclass(frozen=True)
class Broken:
    """A folder that can't be opened, and why."""

    name: str
    why: str


def facts(ref: ModelRef) -> Facts:
    """What the files of a model tell.

    Raises:
        ValueError: one sentence, if they are gone or damaged by now.
    """
    return _hub_facts(ref) if ref.kind == "hub" else _own_facts(ref)


@st.cache_resource(max_entries=64, show_spinner=False)
def _hub_facts(ref: ModelRef) -> Facts:
    found = look(ref.folder)
    return Facts(found.config, found.kind, found.n_bytes, licence(Path(ref.folder)))


@st.cache_resource(max_entries=64, show_spinner=False)
def _own_facts(ref: ModelRef) -> Facts:
    folder = Path(ref.folder)
    try:
        content = json.loads((folder / DESCRIPTION).read_bytes())
        n_bytes = (folder / "model.safetensors").stat().st_size
    except OSError as error:
        raise ValueError(say("gone", name=ref.name)) from error
    return Facts(ModelConfig.from_json(content["model"]), "", n_bytes, "")


def licence(folder: Path) -> str:
    """The licence of a published model by its card, or the first line of its licence; "" if neither says."""
    card = _CARD.match(_text(folder / "README.md"))
    if card:
        return card[1]
    if folder.name == smollm2.NAME:
        return smollm2.LICENCE
    for name in _LICENCES:
        lines = [line.strip() for line in _text(folder / name).splitlines() if line.strip()]
        if lines:
            return repair_text(lines[0])[0][:60]
    return ""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def broken() -> list[Broken]:
    """The folders in the models folder that can't be opened, each with the reason."""
    found = []
    for folder in model_refs.model_folders():
        if model_refs.hub_model(folder) is None:
            found.append(Broken(*_why(folder)))
    return found


def _why(folder: Path) -> tuple[str, str]:
    name, n_odd = repair_text(folder.name)
    if n_odd:
        return name, say("odd_name")
    try:
        load_tokenizer(folder, look(folder).config.vocab_size)
    except ValueError as error:
        return name, str(error)
    except OSError as error:
        return name, say("not_read", why=error.strerror or str(error))
    return name, say("try_again")
