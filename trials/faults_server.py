"""The server is killed with signal 9 in mid-run, and another one is started on the same folder."""

import os
from contextlib import suppress
from pathlib import Path

from benchmarks.app import App, running
from engine.runs import RunStore
from trials.faults_kit import (
    ME,
    Page,
    Tally,
    at_work,
    broken_checkpoint,
    browser,
    curve,
    ended,
    kill,
    spec,
    wait_until,
    worker_of,
)
from trials.outcomes import Options

LONG = {"steps": 100_000, "d_model": 48, "context_length": 24, "batch_size": 16, "checkpoint_every": 20}


def trial(options: Options) -> Tally:
    """Two servers die, the second one with the worker; the third lets the run go on."""
    tally = Tally("server killed and restarted")
    if options.toy:
        tally.left_out = "it takes three servers"
        return tally
    with at_work() as store:
        home = str(store.home)
        with running(home) as app, browser(app.url) as open_:
            page = open_("training")
            page.press("training_start")
            tally.look(page.wrong())
            (first,) = store.list()
            store.stop(first.id, ME)
            ended(store, first.id)
            store.delete(first.id, ME)
            run_id = store.create(spec(**LONG), ME)
            page = open_("training", run=run_id)
            page.press("training_resume")  # the server itself starts the worker
            tally.look(page.wrong() or _moves(store, run_id))
            kill(app.process.pid)
            app.process.wait()
        tally.count(_moves(store, run_id))  # nobody looks, and it goes on
        with running(home) as app, browser(app.url) as open_:
            page = open_("training", run=run_id)
            tally.look(_followed(store, run_id, page) or _alone(run_id, home))
            page.press("training_pause") if page.button("training_pause") else None
            wait_until(lambda: store.info(run_id).state == "paused")
            page.again()
            page.press("training_resume")
            tally.look(page.wrong() or _moves(store, run_id) or _alone(run_id, home))
            _kill_both(app, store, run_id)
        with running(home) as app, browser(app.url) as open_:
            page = open_("training", run=run_id)
            said = "was killed" in page.words() and page.button("training_resume")
            tally.count("" if said else f"after both died the page says: {page.words()[:300]}")
            page.press("training_resume")
            tally.look(page.wrong() or _moves(store, run_id) or _alone(run_id, home))
            page.again()
            page.press("training_stop")
            info = ended(store, run_id)
            page.again()
            again = info.state == "stopped" and page.button("training_resume")
            tally.look("" if again else f"Stop leaves it {info.state}")
            tally.look(broken_checkpoint(info.folder) or _twice(info.folder))
    return tally.promise(
        "A new server finds the run, the page follows it, there is never a second worker on it, and the "
        "curve has no step twice"
    )


def _moves(store: RunStore, run_id: str) -> str:
    """Whether steps are taken."""
    step = store.info(run_id).step
    went = wait_until(lambda: store.info(run_id).step > step + 5)
    return (
        "" if went else f"it stands at step {step}: {store.info(run_id).state}, {store.info(run_id).message}"
    )


def _followed(store: RunStore, run_id: str, page: Page) -> str:
    """Whether the part of the page that draws the run shows its steps as they come."""
    if page.wrong():
        return page.wrong()
    before = [one.text for one in page.tab.all("progress")]
    _moves(store, run_id)
    for part in list(page.tab.ticks):
        page.loop.run_until_complete(page.tab.tick(part))
    return "" if before != [one.text for one in page.tab.all("progress")] else "the page stands still"


def workers_on(folder: Path) -> list[int]:
    """Processes that have the curve of a run open; [] where the system does not say."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(os.readlink(handle).startswith(f"{folder}/") for handle in (process / "fd").iterdir()):
                found.append(int(process.name))
    return found


def _alone(run_id: str, home: str) -> str:
    n = len(workers_on(Path(home) / "runs" / run_id))
    return "" if n == 1 or not Path("/proc").is_dir() else f"{n} workers on one run"


def _kill_both(app: App, store: RunStore, run_id: str) -> None:
    wait_until(lambda: bool(store.checkpoints(run_id)))
    kill(app.process.pid)
    kill(worker_of(store.root / run_id))
    app.process.wait()


def _twice(folder: Path) -> str:
    steps = [point["step"] for point in curve(folder) if point["kind"] == "step"]
    return "" if steps == sorted(set(steps)) else "the curve has a step twice"
