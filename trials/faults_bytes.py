"""Half-written files: a save is cut at each of its bytes, and after each cut the folder must open.

What opens is the old state or the new one, never an error and never something in between. The next save then
leaves nothing behind of the one that was cut.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine import new_runs, own_vocabularies, retention
from engine.checkpoint_list import compact_checkpoint, newest_checkpoint
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.classes import ClassStore
from engine.folders import read_json
from engine.predictions import Predictions
from engine.progress import ProgressStore
from engine.records import Metrics, read_records
from engine.run_info import update_status
from engine.runs import RunStore
from engine.tokenizers import train_bpe
from trials.faults_kit import ME, TEXT, Tally, once_a_day, whole_run
from trials.faults_record import Crash, Operation, crashes, recorded, tree_of, write_tree
from trials.outcomes import Options

ALL, EDGE, DRAWN = 30_000, 1_000, 500  # bytes of a write of which each is a cut; else so many at each end
SHARED = Path("/dev/shm")  # a disk in memory, where there is one


@dataclass(frozen=True)
class Subject:
    """Something that is saved.

    Attributes:
        name: of what is saved.
        save: saves it in a folder.
        read: gives what a folder holds; raises ValueError if that can't be opened.
        may_lose: what else may be found after a power cut: a state that says so.
        tidy: what happens once a day.
    """

    name: str
    save: Callable[[Path], object]
    read: Callable[[Path], Any]
    may_lose: Callable[[Any], bool] = lambda state: False
    tidy: Callable[[Path], object] = lambda folder: None


def trial(options: Options) -> Tally:
    """Cut each kind of save everywhere."""
    tally, dice = Tally("half-written files"), random.Random(options.seed)
    counts = []
    with tempfile.TemporaryDirectory(dir=SHARED if os.access(SHARED, os.W_OK) else None) as folder:
        for i, (subject, prepared) in enumerate(_subjects(Path(folder) / "made")):
            before = tally.injected
            cut(subject, prepared, Path(folder) / f"left{i}", tally, lambda one: cuts(one, options.toy, dice))
            counts.append(f"{subject.name} {tally.injected - before:,}")
    return tally.promise(
        "A save cut at any byte leaves the old state or the new one, and in the end nothing lies about",
        ", ".join(counts),
    )  # fmt: skip


def cuts(one: Operation, toy: bool, dice: random.Random) -> list[int]:
    """After how many bytes a write is cut."""
    n = len(one.data)
    if toy:
        return sorted({min(n, k) for k in (0, 1, n // 2, n - 1)})
    if n <= ALL:
        return list(range(n))
    return sorted({*range(EDGE), *range(n - EDGE, n), *dice.sample(range(n), DRAWN)})


def cut(
    subject: Subject, folder: Path, left: Path, tally: Tally, where: Callable[[Operation], list[int]]
) -> None:
    """Save once, then see what each crash on the way would have left.

    Args:
        subject: what is saved.
        folder: in which it can be saved.
        left: where what a crash leaves is put.
        tally: counts them.
        where: to cut a write.
    """
    before, old = tree_of(folder), subject.read(folder)
    with recorded(folder) as operations:
        subject.save(folder)
    new = subject.read(folder)
    assert old != new, f"{subject.name}: the save changes nothing"
    gone = ended_process()
    mine = [replace(one, path=_by(one.path, gone), to=_by(one.to, gone)) for one in operations]
    for crash in crashes(before, mine, where):
        tally.count(wrong(subject, crash, left, old, new))


def _by(path: str, process: int) -> str:
    """The name that a temporary file would have if another process had made it."""
    return path.replace(f"{os.getpid()}-", f"{process}-")


def ended_process() -> int:
    """The number of a process that is no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def wrong(subject: Subject, crash: Crash, folder: Path, old: Any, new: Any) -> str:
    """What is wrong after a crash; "" if nothing is."""
    write_tree(folder, crash.tree)
    where = f"{subject.name}, {crash.where}"
    try:
        found = subject.read(folder)
    except Exception as error:  # whatever it is, a reader must not meet it
        return f"{where}: {type(error).__name__}: {error}"
    lost = "power cut" in crash.where and subject.may_lose(found)
    if found not in ((new,) if crash.done else (old, new)) and not lost:
        return f"{where}: neither the old nor the new state"
    if " bytes" in crash.where:
        return ""
    try:
        subject.save(folder)
    except Exception as error:
        return f"{where}: the next save fails: {type(error).__name__}: {error}"
    if subject.read(folder) != new and not lost:
        return f"{where}: the next save is not what it should be"
    for path in folder.rglob(".*"):
        os.utime(path, (0, 0))  # it is long ago
    subject.tidy(folder)
    left = [path for path in tree_of(folder) if _is_left(Path(path).name)]
    return f"{where}: {left[0]} is still there" if left else ""


def _is_left(name: str) -> bool:
    return name.startswith(".") and not name.endswith(".lock") and not name.startswith(".exercises")


# ---- what is saved


def _subjects(folder: Path) -> list[tuple[Subject, Path]]:
    """Everything that Loupe keeps, each with a folder in which it can be saved."""
    home = folder / "home"
    store = RunStore(home)
    tiny = {"context_length": 4, "d_model": 8, "steps": 10, "checkpoint_every": 5}
    run_id = whole_run(store, **tiny)
    run = store.root / run_id
    newest = load_checkpoint(run / "checkpoints" / "0000010")
    made = [
        ("a checkpoint", _another(newest, "0000015", 15)),
        ("a checkpoint in place of another", _another(newest, "0000010", 10)),
    ]
    subjects = [
        (Subject(name, save, _newest), _copied(run, folder / f"c{i}")) for i, (name, save) in enumerate(made)
    ]
    subjects.append(
        (Subject("an older checkpoint made small", _compact, _smaller), _copied(run, folder / "small"))
    )
    subjects.append((Subject("the curve", _append, _records), _curve_only(run, folder / "curve")))
    settings = Subject(
        "a run's settings", lambda at: RunStore(at).rename(run_id, ME, "Other"), lambda at: _run(at).name
    )

    def beat(home: Path) -> None:
        update_status(home / "runs" / run_id, durable=False, state="stopped", step=7)

    def standing(home: Path) -> tuple[str, int, bool]:
        info = _run(home)
        return info.state, info.step, "lost" in info.message

    status = Subject("a run's status", beat, standing, may_lose=lambda state: state == ("failed", 10, True))
    for i, subject in enumerate((settings, status, *_small_files())):
        subjects.append((replace(subject, tidy=once_a_day), _copied(home, folder / f"home{i}")))
    return subjects


def _copied(folder: Path, to: Path) -> Path:
    write_tree(
        to, {path: data for path, data in tree_of(folder).items() if not path.endswith((".lock", ".log"))}
    )
    return to


def _another(checkpoint: Checkpoint, name: str, step: int) -> Callable[[Path], None]:
    """Saves a checkpoint that differs from the one that is there."""
    shifted = load_like(checkpoint)
    return lambda at: save_checkpoint(at / "checkpoints" / name, replace(shifted, step=step))


def load_like(checkpoint: Checkpoint) -> Checkpoint:
    """The same checkpoint with other weights."""
    weights = {name: value + 0.5 for name, value in checkpoint.model.state_dict().items()}
    checkpoint.model.load_state_dict(weights)
    return checkpoint


def _newest(folder: Path) -> tuple[int, list[float]]:
    """Step and some weights of the newest checkpoint, all of it read and checked."""
    found = newest_checkpoint(folder)
    if found is None:
        raise ValueError("there is no checkpoint any more")
    checkpoint = load_checkpoint(found[1])
    if checkpoint.optimizer_state is None or checkpoint.generator_states is None:
        raise ValueError("it can't be resumed from")
    return checkpoint.step, _weights(checkpoint)


def _weights(checkpoint: Checkpoint) -> list[float]:
    return [float(value.sum()) for value in checkpoint.model.state_dict().values()]


def _compact(folder: Path) -> None:
    compact_checkpoint(folder / "checkpoints" / "0000005")


def _smaller(folder: Path) -> tuple[int, list[float]]:
    checkpoint = load_checkpoint(folder / "checkpoints" / "0000005")
    return checkpoint.step, _weights(checkpoint)


def _curve_only(run: Path, to: Path) -> Path:
    to.mkdir()
    (to / "metrics.jsonl").write_bytes((run / "metrics.jsonl").read_bytes())
    return to


def _append(folder: Path) -> None:
    """One more record, as a worker that goes on appends it; again, it is no news."""
    if _records(folder) and _records(folder)[-1]["step"] == 11:
        return
    metrics = Metrics(folder / "metrics.jsonl")
    metrics.write(
        "step", 11, loss=2.5, learning_rate=1e-3, grad_norm=1.0, tokens=44, seconds=1.0, tokens_per_second=5.0
    )
    metrics.close()


def _records(folder: Path) -> list[dict[str, Any]]:
    return read_records(folder / "metrics.jsonl")[0]


def _run(home: Path) -> Any:
    """The run of a data folder, as a page is told of it."""
    (info,) = RunStore(home).list()
    return info


def _small_files() -> list[Subject]:
    """What is kept of people, classes and vocabularies, and of the server itself."""
    bpe = train_bpe(TEXT, 260)

    def vocabularies(home: Path) -> list[str]:
        found, problems = own_vocabularies.listed(ME, home=home)
        if problems:
            raise ValueError(problems[0])
        return [kept.hash for kept in found]

    return [
        Subject("a person's progress", lambda at: ProgressStore(at).pass_lesson(ME, "tokens"),
                lambda at: list(ProgressStore(at).read(ME).lessons)),
        Subject("a prediction", lambda at: Predictions(at, ME).commit("context", "longer"),
                lambda at: Predictions(at, ME).get("context")),
        Subject("a class", lambda at: ClassStore(at).of(ME) or ClassStore(at).create(ME, "7b"),
                lambda at: [each.title for each in ClassStore(at).of(ME)]),
        Subject("a vocabulary", lambda at: own_vocabularies.save(ME, bpe, "cats", home=at), vocabularies),
        Subject("the switch for new runs", lambda at: new_runs.let_begin(at, False), new_runs.may_begin),
        Subject("the list of old runs", retention.tidy, lambda at: not retention.is_due(at)),
    ]  # fmt: skip


def deliberately_bad(folder: Path) -> Subject:
    """A writer that is not careful, to see that this trial would notice: it writes over what is there."""
    file = folder / "careless.json"
    file.write_text('{"state": "old"}')

    def save(at: Path) -> None:
        with open(at / file.name, "w") as opened:
            opened.write('{"state": "new"}')

    return Subject("a careless writer", save, lambda at: read_json(at / file.name).get("state"))
