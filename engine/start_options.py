"""`--start`, `--aim` and `--pairs` of `python -m engine.training`: the run that starts from a model."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.checkpoint_files import JSON
from engine.checkpoint_list import newest_checkpoint
from engine.config import Aim, TrainConfig
from engine.corpus import Corpus, decode_upload
from engine.folders import data_folder
from engine.pair_files import as_lines
from engine.plan import rhythm
from engine.run_spec import RunSpec
from engine.story_pairs import story_pairs, story_preferences
from engine.tuning_data import pairs_corpus
from engine.tuning_plan import N_HELD_OUT, N_PAIRS, recipe
from engine.tuning_start import StartModel, describe

PRETRAINED = Path(__file__).parent.parent / "pretrained"
OPTIONS = {
    "start": "train on from this model: a shipped one such as stories-clm, one in the data folder's models/, "
    "or the folder of a checkpoint, of a run or of a Hugging Face model",
    "pairs": "with --aim answers or preferences: a file of JSON lines (prompt and answer; or prompt, chosen "
    "and rejected), a CSV with these names in its first line, or stories for built-in ones",
}
_OWN = ("tokenizer", "vocab_size", "size")  # settings that the start decides


def find_start(wanted: str) -> StartModel:
    """The model of this name or in this folder.

    Raises:
        ValueError: one sentence, if there is none.
    """
    folders = [PRETRAINED / wanted, data_folder() / "models" / wanted, Path(wanted)]
    for folder in folders:
        if (folder / JSON).is_file():
            return describe(folder, "checkpoint", folder.resolve().name)
        if (folder / "run.json").is_file() and (newest := newest_checkpoint(folder)):
            return describe(newest[1], "checkpoint", f"{folder.resolve().name}, step {newest[0]}")
        if (folder / "config.json").is_file():
            return describe(folder, "hub", folder.resolve().name)
    shipped = ", ".join(sorted(path.parent.name for path in PRETRAINED.glob(f"*/{JSON}")))
    raise ValueError(
        f"There is no model {wanted}. Give a shipped one ({shipped}), the name of a folder in "
        f"{data_folder() / 'models'}, or the path of a checkpoint, a run or a Hugging Face folder."
    )


def read_pairs_of(options: argparse.Namespace, aim: Aim) -> Corpus:
    """The pairs that `--pairs` names.

    Raises:
        ValueError: if there are none, or they can't be read.
    """
    wanted = options.pairs or "stories"
    if wanted == "stories":
        make: Any = story_pairs if aim == "answers" else story_preferences
        parts = make(11, N_PAIRS[aim]), make(12, N_HELD_OUT, held_out=True)
        return Corpus("Story pairs" if aim == "answers" else "Story preferences", aim, *map(as_lines, parts))
    path = Path(wanted)
    if not path.is_file():
        raise ValueError(f"There is no file {wanted}. Give stories or the path of a file of pairs.")
    return pairs_corpus(decode_upload(path.read_bytes(), options.encoding), aim, name=path.name)


def check_options(options: argparse.Namespace, model_settings: dict[str, str]) -> None:
    """Refuse what doesn't go together.

    Raises:
        ValueError: one sentence.
    """
    given = [name for name in (*_OWN, *model_settings) if getattr(options, name, None) is not None]
    if options.start is not None and given:
        names = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ValueError(f"{options.start} has its shape and its vocabulary already: leave out {names}.")
    pairs = options.aim in ("answers", "preferences")
    if options.pairs is not None and not pairs:
        raise ValueError("--pairs needs --aim answers or --aim preferences.")
    if options.text is not None and pairs:
        raise ValueError(f"--aim {options.aim} learns from --pairs: leave out --text.")
    if options.aim == "preferences" and options.start is None:
        raise ValueError("--aim preferences needs a model to --start from: it is what is compared with.")


def tuned(options: argparse.Namespace, text: Corpus, given: dict[str, Any]) -> RunSpec:
    """The run that starts from `--start`.

    Args:
        options: of the command line.
        text: a text or pairs.
        given: settings of `TrainConfig` that were given.

    Raises:
        ValueError: one sentence, if there can't be such a run.
    """
    found = find_start(options.start)
    base = recipe(options.aim or "text", options.last_blocks)
    steps = given.get("steps", base.steps)
    train = TrainConfig.from_json({**base.to_json(), **rhythm(steps), **given})
    if found.large:
        train = replace(train, moments=0)
    return RunSpec(
        name=options.name or f"{found.start.name}, {text.name}",
        corpus=text,
        tokenizer=found.tokenizer,
        model=found.model,
        train=train,
        val_share=0.1 if options.val_share is None else options.val_share,
        sample_prompt=options.sample_prompt,
        device=options.device or "auto",
        start=found.start,
    )
