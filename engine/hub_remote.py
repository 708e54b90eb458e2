"""Talks to the Hugging Face hub: what a model is before anything of it is fetched, and its files one by one.

Runs in a process of its own, see `engine.hub_download`: with a time-out for each answer, and without any
person's token.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engine.hub_families import shape_of
from engine.hub_files import CONFIG
from engine.hub_offer import HubError, Offer, RemoteFile, check_room, folder_name, size_of, wanted
from engine.hub_plan import look
from engine.parameter_parts import parameter_count
from wording import words

say = words("engine.hub_remote")

PATIENCE = 10.0  # seconds for each answer
CHUNK = 262_144  # bytes that are written at once; the package's own 10 MB leave a slow line without a sign
COMMAND = "pip install -r requirements-models.txt"
_WHOLE = re.compile(r"[0-9a-f]{40}")


def ask(name: str) -> Offer:
    """What a model on the hub is, in its newest version; of its files only config.json is read.

    Args:
        name: "owner/name".

    Raises:
        HubError: if it can't be had, or the hub can't be reached.
    """
    hub = _hub()
    info = _answered(
        name,
        lambda: hub.HfApi(_endpoint(), token=False).model_info(
            name, files_metadata=True, timeout=PATIENCE, token=False
        ),
    )
    if not _WHOLE.fullmatch(str(info.sha)):
        raise HubError("odd_answer", name=name)
    if info.gated:
        raise HubError("gated", name=name)
    files = wanted((str(s.rfilename), s.size, s.lfs.sha256 if s.lfs else "") for s in info.siblings or ())
    with TemporaryDirectory(prefix="look-") as folder:
        config = next(file for file in files if file.name == CONFIG)
        path = fetch(name, str(info.sha), config, Path(folder), lambda n: None)
        kind, n, refused = _known(path)
    return Offer(name, str(info.sha), _licence(info), files, n, kind, refused)


def _known(config: Path) -> tuple[str, int, str]:
    """Architecture and number of weights by config.json, or why Loupe can't load it."""
    try:
        settings = json.loads(config.read_bytes())
        kind = str(settings.get("model_type", ""))[:80]
    except (ValueError, AttributeError, RecursionError) as error:
        raise HubError("odd_answer", name=CONFIG) from error
    try:
        return kind, parameter_count(shape_of(settings)), ""
    except ValueError as error:
        return kind, 0, str(error)


def _licence(info: Any) -> str:
    card = getattr(info.card_data, "license", None) if info.card_data else None
    tags = [tag.removeprefix("license:") for tag in info.tags or () if str(tag).startswith("license:")]
    return str(card or (tags[0] if tags else ""))[:80]


def fetch(name: str, revision: str, file: RemoteFile, folder: Path, tell: Callable[[int], None]) -> Path:
    """One file of a model, whole and checked; what came before a break is not fetched again.

    Args:
        name: "owner/name".
        revision: the exact version.
        file: which one.
        folder: where it goes.
        tell: is told how many bytes of it are there.

    Raises:
        HubError: if it doesn't come, or is another one than the hub said.
    """
    hub = _hub()

    class Progress:
        """Counts bytes in place of a bar, and ends what brings more than it should."""

        def __init__(self, *args: object, initial: int = 0, **how: object) -> None:
            self.n = initial

        def update(self, n: int = 1) -> None:
            self.n += n
            if self.n > file.size:
                shutil.rmtree(folder / ".cache", ignore_errors=True)
                raise HubError("wrong_size", file=file.name, n=self.n, size=file.size)
            tell(self.n)

        def close(self) -> None:
            pass

        def __enter__(self) -> "Progress":
            return self

        def __exit__(self, *error: object) -> None:
            pass

    path = folder / file.name
    _answered(
        name,
        lambda: hub.hf_hub_download(
            name, file.name, revision=revision, local_dir=folder, token=False, etag_timeout=PATIENCE,
            tqdm_class=Progress, endpoint=_endpoint(),
        ),
    )  # fmt: skip
    try:
        _check(path, file)
    except HubError:
        path.unlink()
        shutil.rmtree(folder / ".cache", ignore_errors=True)  # what was noted of it, too
        raise
    tell(file.size)
    return path


def _check(path: Path, file: RemoteFile) -> None:
    """See whether a file is the one that the hub spoke of."""
    size = path.stat().st_size
    if size != file.size:
        raise HubError("wrong_size", file=file.name, n=size, size=file.size)
    if file.sha256:
        with open(path, "rb") as opened:
            if hashlib.file_digest(opened, "sha256").hexdigest() != file.sha256:
                raise HubError("another_file", file=file.name)


def bring(offer: Offer, models: Path, staging: Path, tell: Callable[[str, int], None]) -> Path:
    """Fetch a model and put it into the models folder, once all of it is there and can be opened.

    Args:
        offer: which one, in which version.
        models: the models folder.
        staging: where its files wait; what is there from a broken try is used.
        tell: is told the file that comes, and how many bytes of all are there.

    Raises:
        HubError: if it doesn't come.
        ValueError: one sentence, if Loupe can't open what came.
    """
    target = models / folder_name(offer.name)
    if target.exists():
        raise HubError("name_taken", folder=target.name)
    staging.mkdir(parents=True, exist_ok=True)
    check_room(offer, models, size_of(staging))
    done = 0
    for file in offer.files:
        tell(file.name, done)
        fetch(offer.name, offer.revision, file, staging, partial(_tell_all, tell, file.name, done))
        done += file.size
    tell("", done)
    shutil.rmtree(staging / ".cache", ignore_errors=True)
    for path in staging.iterdir():  # of another version, perhaps
        if path.name not in {file.name for file in offer.files}:
            path.unlink()
    look(staging)
    staging.rename(target)
    return target


def _tell_all(tell: Callable[[str, int], None], name: str, before: int, n: int) -> None:
    tell(name, before + n)


def missing_package() -> str:
    """A sentence if the package that talks to the hub is not installed; else ""."""
    from importlib.util import find_spec

    return "" if find_spec("huggingface_hub") else say("no_package", command=COMMAND)


def _hub() -> Any:
    try:
        import huggingface_hub
        from huggingface_hub import constants
    except ImportError as error:
        raise HubError("no_package", command=COMMAND) from error
    constants.DOWNLOAD_CHUNK_SIZE = CHUNK
    return huggingface_hub


def _answered(name: str, call: Callable[[], Any]) -> Any:
    """What a call to the hub gives; its errors in our words."""
    from huggingface_hub import errors

    try:
        return call()
    except errors.GatedRepoError as error:
        raise HubError("gated", name=name) from error
    except errors.RepositoryNotFoundError as error:
        raise HubError("not_found", name=name) from error
    except (errors.EntryNotFoundError, errors.RevisionNotFoundError) as error:
        raise HubError("gone", name=name) from error
    except errors.HfHubHTTPError as error:
        raise HubError("refused", code=getattr(error.response, "status_code", "?")) from error
    except OSError as error:
        if error.errno:  # the disk
            raise HubError("not_written", why=error.strerror or str(error)) from error
        if "Consistency check" in str(error):
            raise HubError("broke_off", name=name) from error
        raise HubError("not_reached", why=_first_line(error)) from error
    except getattr(errors, "HTTPError", OSError) as error:  # of the library below it
        if "Timeout" in type(error).__name__:
            raise HubError("silent", patience=PATIENCE) from error
        raise HubError("not_reached", why=_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:160]


def _endpoint() -> str | None:
    """Another hub than the usual one, if the surroundings name it."""
    return os.environ.get("HF_ENDPOINT") or None
