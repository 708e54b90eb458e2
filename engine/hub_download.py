"""Bring a published model to this machine when somebody asks for it: in a process, one at a time.

The process writes how far it is into `models/.fetch/status.json`, so that every page of every server on this
data folder sees it, and it goes on when pages change or a server ends. What has come stays after a break, and
is not fetched again. A model's folder appears only when all of it is there and checked.
"""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock

from engine import folders, hub_offer, hub_remote, smollm2
from engine.hub_offer import HubError, Offer
from engine.processes import REPO, worker_lives
from wording import language, words

say = words("engine.hub_download")

SMOLLM2 = "smollm2"
LOOK_SECONDS = 45.0  # for all that `look` asks
START_SECONDS = 30.0  # in which a process has to say that it lives
FETCH, STATUS, LOCK = ".fetch", "status.json", "lock"  # folder in the models folder, and files in it
_PARTS, _TEMPORARY = "parts", "tmp"
_children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Fetch:
    """A model on its way, or the last one that was.

    Attributes:
        what: "owner/name" on the hub, or "smollm2".
        state: "running", "done", "failed" or "cancelled".
        stage: what it does now: a file's name, or one of `smollm2.STAGES`.
        share: how much is done, of all or of this stage, 0 to 1.
        n_bytes: that have come, 0 if it doesn't count them.
        size: bytes of all.
        message: what went wrong, one sentence; "" if nothing did.
    """

    what: str
    state: str
    stage: str = ""
    share: float = 0.0
    n_bytes: int = 0
    size: int = 0
    message: str = ""
    status: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def running(self) -> bool:
        """Whether it is on its way."""
        return self.state == "running"


def allowed(*, teacher: bool = False) -> bool:
    """Whether somebody may fetch models here: $LOUPE_DOWNLOADS=off forbids it, `teacher` allows it to one.

    Args:
        teacher: whether they gave the teacher's secret.
    """
    chosen = os.environ.get("LOUPE_DOWNLOADS", "").strip().lower()
    return teacher if chosen == "teacher" else chosen not in ("off", "0", "no", "false")


def latest(models: Path) -> Fetch | None:
    """The model that is on its way, or the last one that was; None if none ever was."""
    for child in list(_children):
        if child.poll() is not None:
            _children.remove(child)
    status = folders.read_json(models / FETCH / STATUS)
    if not isinstance(status.get("what"), str):
        return None
    state = str(status.get("state"))
    message = str(status.get("message", ""))
    if state == "running" and not _lives(status):
        state, message = "failed", say("died", why=_last_line(_log(models)))
    elif status.get("failed"):
        message = _sentence(status)
    return Fetch(
        what=status["what"],
        state=state,
        stage=str(status.get("stage", "")),
        share=min(max(float(status.get("share", 0)), 0.0), 1.0),
        n_bytes=int(status.get("n_bytes", 0)),
        size=int(status.get("size", 0)),
        message=message,
        status=status,
    )


def _log(models: Path) -> bytes:
    try:
        return (models / FETCH / "log").read_bytes()[-10_000:]
    except OSError:
        return b""


def _last_line(log: bytes) -> str:
    lines = log.decode("utf-8", "replace").split("\n")
    return next((line.strip()[:160] for line in reversed(lines) if line.strip()), "–")


def _lives(status: dict[str, Any]) -> bool:
    if not status.get("pid"):
        return time.time() - float(status.get("updated", 0)) < START_SECONDS
    return worker_lives(status)


def _sentence(status: Mapping[str, Any]) -> str:
    """What went wrong, in the language of whoever reads it."""
    try:
        return say(f"failed.{status['failed']}", **status.get("details", {}))
    except (KeyError, ValueError, TypeError):  # written by another version
        return str(status.get("message", ""))


def sentence(error: HubError) -> str:
    """What a `HubError` says, in the language of whoever reads it."""
    return _sentence({"failed": error.kind, "details": error.details})


def start(models: Path, what: str, offer: Offer | None = None, *, teacher: bool = False) -> Fetch:
    """Begin to bring a model, unless it is on its way already.

    Args:
        models: the models folder.
        what: "smollm2", or "owner/name".
        offer: of the hub, for "owner/name".
        teacher: whether who asks gave the teacher's secret.

    Raises:
        ValueError: one sentence, if people may not fetch models here, or another one is on its way.
    """
    if not allowed(teacher=teacher):
        raise ValueError(say("off"))
    folder = models / FETCH
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "start.lock", timeout=5):
        running = latest(models)
        if running and running.running:
            if running.what != what:
                raise ValueError(say("busy", what=running.what))
            return running
        content = {"what": what, "offer": offer.to_json() if offer else None}
        size = offer.n_bytes if offer else smollm2.DOWNLOAD_BYTES
        write_status(folder, {**content, "state": "running", "size": size})
        shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)
        (folder / _TEMPORARY).mkdir()
        _spawn(models)
    found = latest(models)
    assert found is not None
    return found


def write_status(folder: Path, content: Mapping[str, Any]) -> None:
    """Write status.json in the folder `FETCH`."""
    folders.write_json(folder / STATUS, {**content, "updated": time.time()}, durable=False)


def _environment(temporary: Path) -> dict[str, str]:
    """Of a process that talks to the hub: no token, no habits of its own, nothing outside the data folder."""
    kept = {k: v for k, v in os.environ.items() if "TOKEN" not in k or not k.startswith(("HF_", "HUGGING"))}
    place = str(temporary.absolute())
    return kept | {
        "HF_HOME": place, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": f"{hub_remote.PATIENCE:g}", "TMPDIR": place, "TMP": place,
        "TEMP": place, "LOUPE_LANGUAGE": language(), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE",
    }  # fmt: skip


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "engine.hub_worker", *arguments]


def _spawn(models: Path) -> None:
    with open(models / FETCH / "log", "wb") as log:
        _children.append(
            subprocess.Popen(
                _command("bring", str(models.absolute())), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=REPO, env=_environment(models / FETCH / _TEMPORARY), start_new_session=True,
            )
        )  # fmt: skip


@atexit.register
def _leave() -> None:
    """When this server ends: what is on its way goes on, and is no longer ours to wait for."""
    for child in _children:
        if child.poll() is None:
            child.returncode = 0  # or Popen would complain


def cancel(models: Path) -> None:
    """End what is on its way. What has come of it stays, for another try; `forget` deletes it."""
    folder = models / FETCH
    running = latest(models)
    if running is None or not running.running:
        return
    pid = int(running.status.get("pid") or 0)
    for sign in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if pid and worker_lives(dict(running.status)):
            with suppress(ProcessLookupError, PermissionError):
                _end(pid, sign)
            _wait_for(lambda: not worker_lives(dict(running.status)))
    after = latest(models)
    if after is None or after.state == "done":
        return  # it was faster
    write_status(folder, {**running.status, "state": "cancelled", "pid": 0})
    shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)
    folders.clean(models)


def _end(pid: int, sign: int) -> None:
    """End a process and those that it started, such as pip."""
    if os.name == "posix":
        os.killpg(pid, sign)
    else:
        os.kill(pid, sign)


def _wait_for(done: Callable[[], bool], seconds: float = 5.0) -> None:
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:
        for child in _children:
            child.poll()  # or it stays as a zombie
        time.sleep(0.02)


def forget(models: Path) -> None:
    """Delete what has come of models that never were complete, and what was said about the last one."""
    running = latest(models)
    if running is not None and running.running:
        return
    for name in (_PARTS, _TEMPORARY):
        shutil.rmtree(models / FETCH / name, ignore_errors=True)
    (models / FETCH / STATUS).unlink(missing_ok=True)


def parts(models: Path, name: str) -> Path:
    """Where the files of "owner/name" wait until all are there."""
    return models / FETCH / _PARTS / name.replace("/", "--")


def come(models: Path, name: str) -> int:
    """Bytes that are there of a model that is not complete."""
    folder = parts(models, name)
    return hub_offer.size_of(folder) if folder.is_dir() else 0


def look(models: Path, typed: str, *, teacher: bool = False) -> Offer:
    """Ask the hub what a model is, in a process of its own.

    Args:
        models: the models folder.
        typed: its name or address.
        teacher: whether who asks gave the teacher's secret.

    Raises:
        ValueError: one sentence, if the name is none, or the hub does not answer well.
    """
    if not allowed(teacher=teacher):
        raise ValueError(say("off"))
    name = hub_offer.checked_repo(typed)
    if missing := hub_remote.missing_package():
        raise ValueError(missing)
    (models / FETCH).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=models / FETCH, prefix="look-") as temporary:
        try:
            answer = subprocess.run(
                _command("look", name), stdin=subprocess.DEVNULL, capture_output=True, cwd=REPO,
                env=_environment(Path(temporary)), timeout=LOOK_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise ValueError(say("failed.silent", patience=LOOK_SECONDS)) from error
    try:
        content = json.loads(answer.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise ValueError(say("died", why=_last_line(answer.stderr))) from error
    if "failed" in content:
        raise ValueError(_sentence(content))
    return Offer.from_json(content)
