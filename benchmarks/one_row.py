"""The process in which a row is measured, alone: `python -m benchmarks` starts one for each.

So no row finds the threads, the loaded programs or the memory of another. It writes a line of JSON for each
row as soon as that is measured, and ends with an error at the first that fails.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.rows import Measure, Options, Row

ROOT = Path(__file__).parent.parent
MODULES = {  # where each row is measured; in the order of the table
    "P1": "training_speed",
    "P2": "training_speed",
    "P3": "learning",
    "P4": "learning",
    "P5": "learning",
    "P6": "generation",
    "P7": "generation",
    "P8": "generation",
    "P9": "looking",
    "P10": "tokenizing",
    "P11": "viewers",
    "P12": "slider",
    "P13": "starting",
}
# What says how many threads a process has. A row starts without any of them, as in a newcomer's shell, unless
# it stands in ENVIRONMENT: whoever measures something there sets the number of threads in its program.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "LOUPE_TRAIN_THREADS",
)
IN_THE_APP = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}  # as app.py and worker.py set them
ENVIRONMENT: dict[str, dict[str, str]] = {"P9": IN_THE_APP}
PEERS = ("transformers", "tokenizers", "rustbpe", "tiktoken", "streamlit")


@dataclass(frozen=True)
class Conditions:
    """What a row was measured on and with.

    Attributes:
        date: the day, such as "2026-11-30".
        cores: of the machine.
        processor: its name, as the system gives it.
        versions: of Python, torch, and the peers that are installed.
        threads: of torch's own operations when the row was done (None: torch was not loaded), and each
            environment variable about threads that was set.
        load_before, load_after: how many processes wanted a core in the minute before; None where the system
            does not say.
        seconds: how long the row took.
        rounds, seeds, toy: how it was asked for.
        text: name and fingerprint of the text, if one was given.
    """

    date: str
    cores: int
    processor: str
    versions: dict[str, str]
    threads: dict[str, int | str | None]
    load_before: float | None
    load_after: float | None
    seconds: float
    rounds: int
    seeds: list[int]
    toy: bool
    text: str | None = None


def processor() -> str:
    """The processor's name."""
    told = Path("/proc/cpuinfo")
    if told.exists():
        for line in told.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return platform.processor() or platform.machine()


def load() -> float | None:
    """How many processes wanted a core, on average of the last minute; None where no one knows (Windows)."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def versions(nanogpt: Path | None) -> dict[str, str]:
    """Versions of everything that takes part and is there."""
    found = {"python": platform.python_version()}
    for name in ("torch", *PEERS):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if nanogpt is not None:
        command = ["git", "-C", str(nanogpt), "rev-parse", "--short", "HEAD"]
        found["nanoGPT"] = subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
    return found


def threads() -> dict[str, int | str | None]:
    """How many threads this process has for its sums, and what told it so."""
    torch = sys.modules.get("torch")  # asked only if it is loaded: loading it would take seconds
    told = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    return {"torch": None if torch is None else torch.get_num_threads(), **told}


def environment(row: str) -> dict[str, str]:
    """The variables for a row's process: those of this one, but for the threads."""
    kept = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    return {**kept, **ENVIRONMENT.get(row, {})}


def options_to_json(options: Options) -> str:
    """Options for another process.

    >>> options_from_json(options_to_json(Options(rounds=2))) == Options(rounds=2)
    True
    """
    return json.dumps({n: str(v) if isinstance(v, Path) else v for n, v in asdict(options).items()})


def options_from_json(sent: str) -> Options:
    """What `options_to_json` gave."""
    found = json.loads(sent)
    paths = {name: None if found[name] is None else Path(found[name]) for name in PATHS}
    return Options(**{**found, **paths, "seeds": tuple(found["seeds"])})


PATHS = ("nanogpt", "text", "models")


def measure(row: str, options: Options) -> dict[str, Any]:
    """One row, and its conditions, as JSON."""
    before, began = load(), time.perf_counter()
    measures: Mapping[str, Measure] = import_module(f"benchmarks.{MODULES[row]}").MEASURES
    found: Row = measures[row](options)
    if found.id != row:
        raise ValueError(f"benchmarks/{MODULES[row]}.py gave {found.id} where {row} was asked for.")
    text = options.text
    print_of = None if text is None else hashlib.sha256(text.read_bytes()).hexdigest()[:12]
    conditions = Conditions(
        date=time.strftime("%Y-%m-%d"),
        cores=os.cpu_count() or 1,
        processor=processor(),
        versions=versions(options.nanogpt),
        threads=threads(),
        load_before=before,
        load_after=load(),
        seconds=round(time.perf_counter() - began, 1),
        rounds=options.rounds,
        seeds=list(options.seeds),
        toy=options.toy,
        text=None if text is None else f"{text.name}, sha256 {print_of}",
    )
    return {"row": found.to_json(), "conditions": asdict(conditions)}


def main(arguments: Sequence[str]) -> None:
    """Measure rows one after the other: their ids, the options, the file to write to."""
    rows, options, answer = arguments
    for row in rows.split(","):
        found = measure(row, options_from_json(options))
        with open(answer, "a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
