"""A disk that fills up, and a data folder that can't be written: a file system of a few MB in memory.

Only root may mount one; anybody else is told that this part was left out.
"""

import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.app import ROOT, running
from engine import own_vocabularies
from engine.classes import ClassStore
from engine.predictions import Predictions
from engine.progress import ProgressStore
from engine.runs import RunStore
from engine.tokenizers import train_bpe
from trials.faults_kit import (
    ME,
    TEXT,
    Page,
    Tally,
    at_work,
    browser,
    ended,
    spec,
    wait_until,
    whole_run,
    wrong_after,
    wrong_at_end,
)
from trials.outcomes import Options

MB = 6
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
SLOW = {"steps": 48, "d_model": 48, "context_length": 24, "batch_size": 24, "moments": 12}
LEFT_OUT = "a small file system can't be mounted here: that needs root"
Browser = Callable[..., Page]


@contextmanager
def small_disk(mb: int = MB) -> Iterator[Path | None]:
    """A file system of its own with so many MB; None where it can't be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="loupe-disk-"))
    mounted = mount(folder, f"size={mb}m", kind="tmpfs")
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def mount(folder: Path, options: str, kind: str = "") -> bool:
    """Whether a file system could be mounted, or mounted with other options."""
    command = ["mount", *(["-t", kind, kind] if kind else []), "-o", options, str(folder)]
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


def fill(home: Path, left: int = 0) -> Path:
    """Let a file take all the room but so many bytes; gives it."""
    ballast = home / "ballast"
    with suppress(OSError), open(ballast, "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    if left:
        with open(ballast, "rb+") as file:
            file.truncate(max(0, ballast.stat().st_size - left))
    return ballast


# ---- a disk that is full


def full(options: Options) -> Tally:
    """It fills up while runs are trained, while things are kept, and before a run begins."""
    tally, dice, stopped = Tally("disk full"), random.Random(options.seed), 0
    with small_disk() as home:
        if home is None:
            tally.left_out = LEFT_OUT
            return tally
        with at_work(home) as store:
            for i in range(1 if options.toy else 8):
                left = dice.choice((0, 0, 4096, 12_288, 40_960))
                stopped += _while_it_trains(store, tally, left, dice.randrange(1, 30), i)
            _before_it_begins(store, tally)
            for name, (keep, read) in _kept(home).items():
                _while_kept(home, tally, name, keep, read)
    if not options.toy:
        with small_disk(16) as home:
            assert home is not None
            _on_the_page(home, tally)
    return tally.promise(
        "A full disk loses nothing: it is said in a sentence, the newest checkpoint loads, and once there is "
        "room the run goes on to the same losses bit for bit",
        f"{stopped} runs had to stop in the middle" if stopped else "no run had to stop",
    )


def _while_it_trains(store: RunStore, tally: Tally, left: int, records: int, seed: int) -> bool:
    """Gives whether it had to stop; one that needs no more room may end."""
    whole = whole_run(store, **SLOW, seed=seed)
    run_id = store.start(spec(**SLOW, seed=seed), ME)
    file = store.root / run_id / "metrics.jsonl"
    wait_until(lambda: file.exists() and len(file.read_bytes().splitlines()) >= records)
    ballast = fill(store.home, left)
    info = ended(store, run_id)
    wrong = wrong_after(info.folder, store.root / whole)
    if info.state != "finished":
        said = "disk" in info.message and "full" in info.message
        wrong = wrong or (
            "" if said and info.can_resume else f"the page says of the full disk: {info.message}"
        )
        wrong = wrong or _resumed_in_vain(store, run_id)
    ballast.unlink()
    if info.state != "finished":
        store.resume(run_id, ME)
        ended(store, run_id)
    tally.count(wrong or wrong_at_end(store, run_id, whole))
    for one in (run_id, whole):
        shutil.rmtree(store.root / one)
    return info.state != "finished"


def _resumed_in_vain(store: RunStore, run_id: str) -> str:
    """To resume on a disk that is still full may fail, in a sentence; the run is left as it was."""
    fill(store.home)
    try:
        store.resume(run_id, ME)
    except ValueError as error:
        return "" if "disk" in str(error) else f"resumed on a full disk: {error}"
    info = ended(store, run_id)
    return "" if "full" in info.message else f"resumed on a full disk, it says: {info.message}"


def _before_it_begins(store: RunStore, tally: Tally) -> None:
    ballast, before = fill(store.home, 4096), sorted(store.root.iterdir())
    wrong = "a run began on a full disk"
    try:
        store.start(spec(seed=99), ME)
    except ValueError as error:
        wrong = "" if "disk" in str(error) else f"Start says: {error}"
    if sorted(store.root.iterdir()) != before:
        wrong = wrong or "half a run is left behind"
    ballast.unlink()
    run_id = store.start(spec(seed=99), ME)
    if ended(store, run_id).state != "finished":
        wrong = wrong or store.info(run_id).message
    tally.count(wrong)


def _kept(home: Path) -> dict[str, tuple[Callable[[str], object], Callable[[], list[str]]]]:
    """What is kept besides runs: what keeps one more, by a name, and what reads them all."""
    progress, classes, predictions = ProgressStore(home), ClassStore(home), Predictions(home, ME)

    def vocabulary(name: str) -> None:
        own_vocabularies.save(ME, train_bpe(TEXT, 257 + len(name)), name, home=home)

    return {
        "a lesson": (lambda name: progress.pass_lesson(ME, name), lambda: sorted(progress.read(ME).lessons)),
        "a class": (lambda name: classes.create(ME, name), lambda: sorted(c.title for c in classes.of(ME))),
        "a prediction": (lambda name: predictions.commit(name, "more"),
                         lambda: [study for study in ("one", "three", "two2") if predictions.get(study)]),
        "a vocabulary": (vocabulary, lambda: sorted(
            kept.learned_from for kept in own_vocabularies.listed(ME, home=home)[0])),
    }  # fmt: skip


def _while_kept(
    home: Path, tally: Tally, name: str, keep: Callable[[str], object], read: Callable[[], list[str]]
) -> None:
    """What was kept before stays, what can't be kept says so, and later it can."""
    keep("one")
    ballast = fill(home)
    wrong = f"{name} was kept on a full disk?"
    try:
        keep("two2")
    except (ValueError, OSError) as error:
        wrong = "" if "disk" in str(error) and "full" in str(error) else f"{name}: {error}"
    if read() != ["one"]:
        wrong = wrong or f"{name}: what was there before is gone"
    ballast.unlink()
    keep("three")
    tally.count(wrong or ("" if read() == ["one", "three"] else f"{name} can't be kept with room again"))


def _on_the_page(home: Path, tally: Tally) -> None:
    """With a dead run and a full disk every page opens, says so, and the way on works."""
    with at_work(home) as store, running(str(home)) as app, browser(app.url) as open_:
        _use_it(home, store, open_, tally)


def _use_it(home: Path, store: RunStore, open_: Browser, tally: Tally) -> None:
    run_id = whole_run(store)
    broken = store.start(spec(**{**SLOW, "steps": 1_000_000}), ME)  # it never ends by itself
    wait_until(lambda: bool(store.checkpoints(broken)))
    open_("training")
    ballast = fill(home)
    ended(store, broken)
    for name in PAGES:
        tally.look(open_(name).wrong())
    page = open_("training", run=broken)
    tally.count(_says(page, "is full") or _can(page, "training_resume"))
    page.press("training_start")
    tally.look(page.wrong() or _says(page, "is full"))
    page.press("training_resume")
    tally.look(page.wrong() or _says(page, "is full"))
    page.press(f"training_delete_yes_{run_id}")
    tally.look(page.wrong())
    ballast.unlink()
    page.again()
    if not store.info(broken).active:  # else what was asked for on the full disk has waited, and begins
        tally.look(_can(page, "training_resume"))
        page.press("training_resume")
    went = wait_until(lambda: store.info(broken).state == "running")
    tally.look("" if went else f"with room again it is {store.info(broken).state}")
    store.stop(broken, ME)
    ended(store, broken)


def _says(page: Page, words: str) -> str:
    return "" if words in page.words() else f"/{page.tab.page} does not say “{words}”"


def _can(page: Page, key: str) -> str:
    return "" if page.button(key) else f"/{page.tab.page} has no button {key} to go on with"


# ---- a folder that can't be written


def closed(options: Options) -> Tally:
    """Read only, empty at first and then with a run in it: every page opens, and Start says why not."""
    tally = Tally("read-only folder")
    for empty in (True, False):
        with small_disk() as home:
            if home is None:
                tally.left_out = LEFT_OUT
                return tally
            run_id = "" if empty else whole_run(RunStore(home))
            mount(home, "remount,ro")
            if options.toy:
                tally.count(_refuses(home))
            else:
                _pages_of_a_closed_folder(home, tally, run_id)
    return tally.promise(
        "With a folder that can't be written every page works from the shipped models, Start says why it "
        "can't, and works once the folder can be written"
    )


def _refuses(home: Path) -> str:
    """What a store does on a folder that can't be written."""
    store = RunStore(home)
    n = len(store.list())
    try:
        store.start(spec(), ME)
    except ValueError as error:
        said = "" if "written to" in str(error) else f"Start says: {error}"
        return said or ("" if len(store.list()) == n else "a run is there")
    return "a run began in a folder that can't be written"


def _pages_of_a_closed_folder(home: Path, tally: Tally, run_id: str) -> None:
    with running(str(home)) as app, browser(app.url) as open_:
        for name in PAGES:
            tally.look(open_(name).wrong())
        page = open_("training", **({"run": run_id} if run_id else {}))
        tally.count(_says(page, "written to"))
        page.press("training_start")
        tally.look(page.wrong() or _says(page, "written to"))
        mount(home, "remount,rw")
        page.press("training_start")
        with at_work(home) as store:
            begun = any(info.active for info in store.list())
            tally.look(page.wrong() or ("" if begun else "Start does nothing once it can be written"))
