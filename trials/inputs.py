"""Bad input: what people type, upload, open and keep, damaged in every way that hypothesis can think of.

Each kind is a file trials/inputs_<kind>.py, tried in a process of its own with bounds on memory and processor
time, in a data folder that is watched; links and widgets are tried on a server that is watched. A case either
works or is refused in a sentence. A fault is told with a case that shows it again:

    from trials.inputs_kind import again
    from trials.inputs_runs import *
    print(again(KIND, Place(at=2, what="itself")))
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from trials.outcomes import Check, Options, Part

ROOT = Path(__file__).parent.parent
KINDS = ("texts", "uploads", "vocabularies", "checkpoints", "published", "gguf", "runs", "kept", "zips")
TOY, TOY_ON_SERVER = 25, 3  # cases of a kind
ON_SERVER = 0.4  # of the cases: each opens a page


@dataclass
class Found:
    """What became of a kind.

    Attributes:
        counts: cases by state: "taken", "refused", "fault".
        faults: (what, case), one of each sort, the smallest.
        slowest: s of processor time of the slowest case.
        megabytes: that a case took at most.
        died: how the process ended, and at which case; "" if it came to its end.
    """

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("taken", "refused", "fault"), 0))
    faults: list[tuple[str, str]] = field(default_factory=list)
    slowest: float = 0.0
    megabytes: float = 0.0
    died: str = ""

    @property
    def tried(self) -> int:
        """All cases."""
        return sum(self.counts.values()) + bool(self.died)


def trial(options: Options) -> Part:
    """Try all kinds."""
    if options.toy:  # to begin a process takes longer than so few cases
        kinds = tried(KINDS, TOY, options.seed, "--light")
    else:
        with ThreadPoolExecutor(2) as beside:
            each = beside.map(lambda kind: tried([kind], options.cases, options.seed), KINDS)
        kinds = {name: one for part in each for name, one in part.items()}
    n = TOY_ON_SERVER if options.toy else max(1, round(ON_SERVER * options.cases))
    return told(kinds | on_server(n, options.seed))


def tried(
    kinds: Sequence[str], n: int, seed: int, *more: str, module: str = "trials.inputs_child"
) -> dict[str, Found]:
    """Try kinds in a process of their own; gives what became of each."""
    found, name, last = {kind: Found() for kind in kinds}, kinds[0], ""
    command = [sys.executable, "-m", module, *kinds, "--cases", str(n), "--seed", str(seed), *more]
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "errors", "w+b") as errors:
        places = {
            "HYPOTHESIS_STORAGE_DIRECTORY": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
            "RUST_BACKTRACE": "0",
        }
        environment = {**os.environ, **places}
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as child:
            assert child.stdout is not None
            for line in map(json.loads, child.stdout):
                name = line.get("kind", name)
                last = _taken_in(found[name], line) or ("" if "state" in line else last)
        if child.returncode:
            errors.seek(0)
            tail = deque(errors.read().decode("utf-8", "replace").splitlines(), maxlen=1)
            found[
                name
            ].died = f"its process ended with {child.returncode} at {last[:300]} {''.join(tail)[:200]}"
    return found


def _taken_in(found: Found, line: dict) -> str:
    """Take a line in; gives the case that it begins, if it does."""
    if "fault" in line:
        found.faults.append((line["fault"], line["case"]))
    if "state" in line:
        found.counts[line["state"]] += 1
        found.slowest = max(found.slowest, line["seconds"])
        found.megabytes = max(found.megabytes, line["megabytes"])
    return str(line.get("begins", ""))


def on_server(n: int, seed: int) -> dict[str, Found]:
    """Links and widgets, on one server."""
    from trials.inputs_pages import run_both
    from trials.inputs_server import MEGABYTES, served

    with served() as server:
        before = server.app.memory()
        tallies = run_both(server, n, seed)
        grown = server.app.memory() - before
    found = {}
    for name, tally in tallies.items():
        counts = {"taken": tally.taken, "refused": tally.refused, "fault": len(tally.faults)}
        found[name] = Found(counts, _sorts(tally.faults), tally.slowest, grown)
        if grown > MEGABYTES:
            found[name].faults.append((f"the server has grown by {grown:.0f} MB", "all"))
    return found


def _sorts(faults: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """One fault of each sort, with the shortest case."""
    found: dict[str, tuple[str, str]] = {}
    for what, case in sorted(faults, key=lambda fault: len(fault[1])):
        found.setdefault(what[:60], (what, case))
    return list(found.values())


def told(kinds: dict[str, Found]) -> Part:
    """The promises, and a line of figures for each kind."""
    n, n_refused = (
        sum(one.tried for one in kinds.values()),
        sum(one.counts["refused"] for one in kinds.values()),
    )
    n_faults = sum(one.counts["fault"] + bool(one.died) for one in kinds.values())
    touched = [what for one in kinds.values() for what, _ in one.faults if what.startswith("touched")]
    slow = [what for one in kinds.values() for what, _ in one.faults if _is_bound(what)]
    died = [f"{name}: {one.died}" for name, one in kinds.items() if one.died]
    rest = [
        what for one in kinds.values() for what, _ in one.faults if what not in touched and what not in slow
    ]
    checks = [
        Check(
            "Any input works or is refused in a plain sentence; no traceback, no error of another kind",
            f"{n:,} cases, {n_refused:,} refused, {n_faults:,} faults" + _few(rest),
            not rest and n > 0,
        ),
        Check(
            "Nothing outside the data folder is written or changed, no connection is opened, no pickle read",
            f"{n:,} cases under watch" + _few(touched),
            not touched,
        ),
        Check(
            "Each case stays within its bounds of processor time and memory, and its process lives",
            f"slowest {max(one.slowest for one in kinds.values()):.1f} s" + _few([*slow, *died]),
            not slow and not died,
        ),
    ]
    figures = {
        name: {
            "cases": one.tried,
            "taken in": one.counts["taken"],
            "refused": one.counts["refused"],
            "faults": one.counts["fault"] + bool(one.died),
            "slowest ms": round(1000 * one.slowest),
            "peak MB": round(one.megabytes),
        }
        for name, one in kinds.items()
    }
    notes = list(_shown(kinds))
    notes.append(
        "Times are of the processor. A peak is what a case took beyond what its process had; of links and "
        "widgets it is how far the server grew in all."
    )
    return Part("inputs", checks, figures, notes)


def _is_bound(what: str) -> bool:
    return (
        what.startswith(("TooLong", "memory", "MemoryError")) or "processor time" in what or "grown" in what
    )


def _few(faults: Sequence[str]) -> str:
    return f": {'; '.join(fault[:160] for fault in faults[:3])}" if faults else ""


def _shown(kinds: dict[str, Found]) -> Iterator[str]:
    """Every sort of fault with a case that shows it."""
    for name, one in kinds.items():
        for what, case in one.faults[:12]:
            yield f"{name}: {what[:300]} Case: {_short(case)}"


def _short(case: str) -> str:
    return case if len(case) <= 400 else f"{case[:300]} … ({len(case):,} characters)"
