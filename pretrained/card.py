"""The card of a shipped model: what it is, how it was made, how good it is; a file for each language."""

import re
from collections.abc import Mapping
from pathlib import Path

from engine.checkpoints import Checkpoint
from wording import LANGUAGES, SOURCE, words

say = words("pretrained.card")
THREADS = re.compile(r"(\d+) threads? of a busy CPU \((.+)\)")  # how a checkpoint names a processor
ROWS = ("parameters", "vocabulary", "data", "training", "time", "weights", "history", "loss", "floor", "gap",
        "kl", "more")  # fmt: skip
VOCABULARY = {"vocabulary"}  # a masked model has the mask, too


def file_name(language: str) -> str:
    """Of the card in a language, inside the folder of its model: CARD.md, CARD.es.md."""
    return "CARD.md" if language == SOURCE else f"CARD.{language}.md"


def write_cards(folder: Path, checkpoint: Checkpoint, made_from: Mapping[str, object]) -> None:
    """Write the card of a measured model in all languages.

    Args:
        folder: where its weights lie.
        checkpoint: the model; its info holds the report.
        made_from: stories, story_seed, vocab_size, moments: see `pretrained.make`.
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
    rows = [
        f"| {say.written(f'title.{title}', language)} | {say.written(f'fact.{fact}', language, **values)} |"
        for title, fact in _rows(config.objective)
    ]
    about = say.written(f"about.{config.objective}", language)
    made = say.written("made", language, name=info["name"])
    return "\n".join([f"# {info['name']}", "", about, "", "| | |", "| --- | --- |", *rows, "", made, ""])


def _rows(objective: str) -> list[tuple[str, str]]:
    """Keys of each row's title and fact."""
    own = {"loss", "more"}  # rows whose title is another one for each objective
    return [
        (
            f"{row}_{objective}" if row in own else row,
            f"{row}_{objective}" if row in own | VOCABULARY else row,
        )
        for row in ROWS
    ]


def _machine(device: str, language: str) -> str:
    found = THREADS.fullmatch(device)
    return say.written("thread", language, n=int(found[1]), kind=found[2]) if found else device
