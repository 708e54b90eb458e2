"""The format of a run's folder: a number in run.json, so that no version misreads what a newer one wrote.

1   run.json, status.json, metrics.jsonl, corpus.txt (and corpus_val.txt), tokenizer.json, checkpoints/ since
    the first version. Later ones added what may be missing: also/, start/, reference.safetensors, and in
    run.json language, group, label, also_scored, start, keep and stopped_by.

A change that an older version would read wrongly, such as another meaning of a name, takes the next number,
and whoever makes it sees to it that runs of this one still open: tests/engine/test_run_format.py has a folder
of the oldest.
"""

from collections.abc import Mapping
from typing import Any

from wording import words

FORMAT = 1
say = words("engine.run_format")


def is_newer(run: Mapping[str, Any]) -> bool:
    """Whether a run.json says that a newer version wrote it."""
    found = run.get("format")
    return isinstance(found, int) and found > FORMAT


def check_format(run: Mapping[str, Any], name: str) -> None:
    """See that this version can read a run.

    Raises:
        ValueError: one sentence with both numbers and the way out, if a newer one wrote it.
    """
    if is_newer(run):
        raise ValueError(say("newer", name=name, found=run["format"], format=FORMAT))
