"""The checkpoints of a run: which there are, which is the newest, and how an older one is made small."""

import os
from contextlib import suppress
from pathlib import Path

from safetensors.torch import save as write_tensors

from engine.checkpoint_files import (
    JSON,
    MODEL,
    OPTIMIZER,
    read_description,
    read_file,
    sealed,
    sha256,
    versions,
)
from engine.compact import pack
from engine.folders import recover, write_file

SMALL = ".model.8bit"  # weights that are about to take the place of the model's file


def list_checkpoints(run_folder: str | Path) -> list[tuple[int, Path]]:
    """Checkpoints of a run as (step, folder), oldest first.

    Only complete ones: their description is readable and the files are there in full length. Checksums are
    left to `load_checkpoint`, since reading all weights takes time.
    """
    parent = Path(run_folder) / "checkpoints"
    found = []
    if not parent.is_dir():
        return []
    _recover_all(parent)
    for path in parent.iterdir():
        if path.name.isdigit() and is_complete(path):
            found.append((int(path.name), path))
    return sorted(found)


def newest_checkpoint(run_folder: str | Path) -> tuple[int, Path] | None:
    """The last of `list_checkpoints`, without reading what all the others say of themselves."""
    parent = Path(run_folder) / "checkpoints"
    if not parent.is_dir():
        return None
    _recover_all(parent)
    for path in sorted((p for p in parent.iterdir() if p.name.isdigit()), key=lambda p: -int(p.name)):
        if is_complete(path):
            return int(path.name), path
    return None


def _recover_all(parent: Path) -> None:
    """Put those back whose writer died between stepping them aside and putting the new one there."""
    for aside in parent.glob(".*.old"):
        with suppress(OSError):  # a folder that can't be written; or its writer is at this very moment there
            recover(parent / aside.name[1 : -len(".old")])


def is_complete(folder: Path) -> bool:
    """Whether the description is readable and the files that it names are there in full length."""
    try:
        files = read_description(folder)["files"]
        return all(
            (folder / name).stat().st_size in [version.get("bytes") for version in versions(file)]
            for name, file in files.items()
            if name in (MODEL, OPTIMIZER)
        )
    except (ValueError, OSError):
        return False


def compact_checkpoint(folder: Path) -> None:
    """Rewrite a checkpoint in 8 bits and without optimizer, about a twelfth of its size.

    Whoever reads or dies meanwhile finds a whole one: the description names old and new weights while the
    file of the one is replaced by that of the other.

    Raises:
        ValueError: if it is damaged; then it is left as it is.
        OSError: if there is no room; then too.
    """
    content = read_description(folder)
    if content["dtype"] != "int8":
        old = {"dtype": content["dtype"], **content["files"][MODEL]}
        tensors = {name: value.float() for name, value in read_file(folder, MODEL, content).items()}
        data = write_tensors(pack(tensors))
        write_file(folder / SMALL, data)
        content["files"].pop(OPTIMIZER, None)
        content["files"][MODEL] = {"sha256": sha256(data), "bytes": len(data), "before": old}
        content |= {"dtype": "int8", "generators": None}
        write_file(folder / JSON, sealed(content))
    if (folder / SMALL).exists():  # also one that was left when a process died here
        os.replace(folder / SMALL, folder / MODEL)
    for leftover in (folder / OPTIMIZER, *folder.glob(".*")):
        leftover.unlink(missing_ok=True)
