"""A run once more: the same text, vocabulary and settings with other seeds."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.corpus import Corpus
from engine.folders import read_json
from engine.run_spec import ALSO, RunSpec
from engine.tokenizers import tokenizer_from_json
from engine.tuning_start import kept_start
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("engine.repeats")


def spec_of(info: "RunInfo") -> RunSpec:
    """What a run was made from, read from its folder.

    Raises:
        ValueError: if a file is missing or damaged.
    """
    run = read_json(info.folder / "run.json")
    own = info.folder / "corpus_val.txt"
    try:
        corpus = Corpus(
            run["corpus"]["name"],
            run["corpus"]["kind"],
            (info.folder / "corpus.txt").read_bytes().decode(),
            own.read_bytes().decode() if own.is_file() else None,
        )
        return RunSpec(
            name=info.name,
            corpus=corpus,
            tokenizer=tokenizer_from_json(read_json(info.folder / "tokenizer.json")),
            model=info.model,
            train=info.train,
            val_share=run["corpus"]["val_share"],
            sample_prompt=run.get("sample_prompt"),
            device=run.get("device", "auto"),
            also_scored={
                name: (info.folder / ALSO.format(mark[:16])).read_bytes().decode()
                for name, mark in run.get("also_scored", {}).items()
            },
            start=kept_start(info.folder, run["start"]) if run.get("start") else None,
        )
    except (OSError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(say("cant_be_repeated", name=info.name, error=error)) from error


def more_seeds(info: "RunInfo", taken: Iterable[int], n: int = 4) -> list[RunSpec]:
    """The same run with the `n` smallest seeds that are not taken yet, as one group.

    Raises:
        ValueError: if its files are missing or damaged.
    """
    spec, used = spec_of(info), {*taken, info.train.seed}
    seeds = [seed for seed in range(n + len(used)) if seed not in used][:n]
    return [
        replace(spec, train=replace(spec.train, seed=seed), group=f"seeds of {info.id}", label=f"seed {seed}")
        for seed in seeds
    ]
