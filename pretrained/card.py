"""The card of a shipped model: what it is, how it was made, how good it is; a file for each language."""

import re
from collections.abc import Mapping
from pathlib import Path

from engine.checkpoints import Checkpoint
from wording import LANGUAGES, SOURCE, words

say = words("pretrained.card")
THREADS = re.compile(r"(\d+) threads? of a busy CPU \((.+)\)")  # how a checkpoint names a processor
_BEGINS, _ENDS = ("training", "time", "weights"), ("floor", "gap", "kl")
ROWS = {  # of the card, by what the model is: titles and facts
    "clm": ("parameters", "vocabulary_clm", "data", *_BEGINS, "history", "loss_clm", *_ENDS, "more_clm"),
    "mlm": ("parameters", "vocabulary_mlm", "data", *_BEGINS, "history", "loss_mlm", *_ENDS, "more_mlm"),
    "english": ("parameters", "vocabulary_english", "data_english", *_BEGINS, "loss_english", "trigram",
                "bytes", "words", "copied"),
}  # fmt: skip


def file_name(language: str) -> str:
    """Of the card in a language, inside the folder of its model: CARD.md, CARD.es.md."""
    return "CARD.md" if language == SOURCE else f"CARD.{language}.md"


def write_cards(folder: Path, checkpoint: Checkpoint, made_from: Mapping[str, object]) -> None:
    """Write the card of a measured model in all languages.

    Args:
        folder: where its weights lie.
        checkpoint: the model; its info holds the report.
        made_from: see `pretrained.make`.
    """
    for language in LANGUAGES:
        text = card(checkpoint, made_from, language)
        (folder / file_name(language)).write_text(text, encoding="utf-8")


def card(checkpoint: Checkpoint, made_from: Mapping[str, object], language: str) -> str:
    """One card, in Markdown."""
    info, recipe, config = checkpoint.info, checkpoint.train_config, checkpoint.model.config
    assert recipe is not None  # a shipped model says how it was trained
    values: dict[str, object] = {
        **config.to_json(), **recipe.to_json(), **info["report"], **info, **made_from,
        "parameters": checkpoint.model.n_parameters(),
        "positions": say.written(f"positions.{config.positions}", language),
        "n": max(1, round(info["seconds"] / 60)),
        "machine": _machine(info["device"], language),
    }  # fmt: skip
    kind = config.objective if info["corpus"] == "stories" else "english"
    rows = [
        f"| {say.written(f'title.{row}', language)} | {say.written(f'fact.{row}', language, **values)} |"
        for row in ROWS[kind]
    ]
    about = say.written(f"about.{kind}", language)
    made = say.written(f"made.{'english' if kind == 'english' else 'story'}", language, name=info["name"])
    return "\n".join([f"# {info['name']}", "", about, "", "| | |", "| --- | --- |", *rows, "", made, ""])


def _machine(device: str, language: str) -> str:
    found = THREADS.fullmatch(device)
    return say.written("thread", language, n=int(found[1]), kind=found[2]) if found else device
