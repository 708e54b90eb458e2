"""The app as several benchmarks need it: a server of its own, a browser, and runs that train beside it."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, Playwright

from engine.config import ModelConfig, TrainConfig
from engine.corpus import stories
from engine.plan import SIZES
from engine.runs import RunSpec, RunStore
from engine.tokenizers import train_bpe

ROOT = Path(__file__).parent.parent
OWNER = "benchmark"
FLAGS = ["--no-sandbox", "--disable-gpu"]
# What Streamlit does as it comes: a full garbage collection after every run of a page, no uvloop, and nothing
# that is loaded is left out of the collections. The rest of the settings stays as the app has it.
STOCK = """
import gc
import sys

gc.freeze = lambda: None
sys.modules["uvloop"] = None
"""


@dataclass(frozen=True)
class App:
    """A server that is running.

    Attributes:
        url: without a slash at its end.
        home: its data folder.
        process: of the server.
        started: time.perf_counter() when the process was started.
    """

    url: str
    home: str
    process: subprocess.Popen[bytes]
    started: float

    def cpu(self) -> float:
        """Processor time of the server up to now, in seconds; NaN where the system does not say."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return float("nan")
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def workers_cpu(self) -> float | None:
        """Processor time of the server's children, such as a worker; None where the system does not say."""
        stats = []
        for file in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has just ended
                stats.append(file.read_text().rpartition(")")[2].split())
        stats = [one for one in stats if int(one[1]) == self.process.pid]
        if not stats:
            return None
        return sum(int(one[11]) + int(one[12]) for one in stats) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Memory that the server has now, in MB; NaN where the system does not say."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return float("nan")
        return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS"))


@contextmanager
def running(
    home: str | None = None,
    *,
    stock: bool = False,
    wait: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Iterator[App]:
    """`streamlit run app.py` on a free port of this machine.

    Args:
        home: data folder; one of its own if not given.
        stock: with Streamlit's own settings instead of the app's, see `STOCK`.
        wait: until it answers.
        environment: further variables.
    """
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        environment = {**os.environ, **(environment or {}), "LOUPE_HOME": home or f"{folder}/home"}
        if stock:
            (Path(folder) / "sitecustomize.py").write_text(STOCK, "utf-8")
            path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
            environment |= {"PYTHONPATH": path, "STREAMLIT_RUNNER_POST_SCRIPT_GC": "true"}
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
        started = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--server.port", str(port)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )
        app = App(f"http://localhost:{port}", environment["LOUPE_HOME"], process, started)
        try:
            if wait:
                wait_for(app)
            yield app
        finally:
            process.terminate()
            process.wait()


def wait_for(app: App) -> None:
    """Wait until the server answers."""
    while time.perf_counter() - app.started < 60:
        try:
            urllib.request.urlopen(f"{app.url}/_stcore/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("The app did not start within 60 s.")


def chromium_path() -> str | None:
    """Where a Chromium is, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def new_page(playwright: Playwright) -> Page:
    """An empty page of a Chromium of its own."""
    window = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
    return window.new_page(viewport={"width": 1280, "height": 800})


def start_runs(store: RunStore, n: int) -> list[str]:
    """Runs of the app's medium size on the stories, at once; waits until each has done a step."""
    corpus, size = stories(4000, seed=1), SIZES[2]
    tokenizer = train_bpe(corpus.text[:200_000], 512)
    model = ModelConfig(tokenizer.vocab_size, size.context_length, size.n_layer, size.n_head, size.d_model)
    specs = [
        RunSpec(f"Run {seed}", corpus, tokenizer, model, TrainConfig(steps=1_000_000, moments=24, seed=seed))
        for seed in range(n)
    ]
    ids = store.start_many(specs, OWNER)
    while any(store.info(run_id).step < 1 for run_id in ids):
        failed = [info.message for info in map(store.info, ids) if not info.active]
        if failed:
            raise RuntimeError(f"A run ended before the measurement: {failed[0]}")
        time.sleep(0.2)
    return ids


def stop_runs(store: RunStore, ids: Sequence[str]) -> None:
    """Stop runs and wait for their end."""
    for run_id in ids:
        store.stop(run_id, OWNER)
    while any(store.info(run_id).active for run_id in ids):
        time.sleep(0.1)


@contextmanager
def training(home: str, n: int) -> Iterator[tuple[RunStore, list[str]]]:
    """So many runs at work in a data folder: they are stopped at the end."""
    store, ids = RunStore(home), list[str]()
    try:
        ids = start_runs(store, n)
        yield store, ids
    finally:
        stop_runs(store, ids)
        store.close()
