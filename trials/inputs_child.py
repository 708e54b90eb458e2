"""`python -m trials.inputs_child KINDS`: the cases of some kinds, in a process with bounds, as lines of JSON.

The parent reads the lines; what the last one began and never ended has killed the process.
"""

import argparse
import json
import os
import random
import resource
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import HypothesisException

from trials.inputs_kind import Kind, Outcome, tried
from trials.inputs_watch import Watch

MORE_MEMORY = 1_500_000_000  # bytes of address space beyond what the process has when it begins
LONGEST = 60  # s of processor time after which the system ends a process that doesn't listen any more
MOST_SHRUNK = 4  # sorts of faults that are made small, so many cases each
SHRINK_CASES = 400


def kind_of(name: str) -> Kind:
    """A kind by its name: trials/inputs_<name>.py has it as KIND."""
    found: Kind = import_module(f"trials.inputs_{name}").KIND
    return found


def bound() -> None:
    """Bound the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if os.path.exists("/proc/self/statm") else 0
    if pages:
        most = pages * resource.getpagesize() + MORE_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def clock() -> None:
    """Bound the processor time of the next case."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + LONGEST, hard))


def say(**line: Any) -> None:
    """Write a line for the parent."""
    print(json.dumps(line), flush=True)


def run(kind: Kind, n: int, seed: int, watch: Watch, *, heavy: bool) -> None:
    """Try the known cases and `n` made up ones; faults are told with the smallest case that shows them."""
    sorts: dict[str, Any] = {}

    def one(case: Any) -> Outcome:
        clock()
        say(begins=repr(case)[:3000])
        outcome = tried(kind, case, watch)
        say(state=outcome.state, seconds=outcome.seconds, megabytes=outcome.megabytes)
        if outcome.state == "fault":
            kept = sorts.get(outcome.sort)
            if kept is None or len(repr(case)) < len(repr(kept[0])):
                sorts[outcome.sort] = (case, outcome.what)
        return outcome

    for case in (*kind.known, *(kind.heavy if heavy else ())):
        one(case)

    @hypothesis.seed(seed)
    @settings(
        max_examples=max(1, n),
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(kind.cases)
    def all_cases(case: Any) -> None:
        one(case)

    all_cases()
    for sort, (case, what) in list(sorts.items()):
        small = _small(kind, sort, seed, watch) if len(sorts) <= MOST_SHRUNK else None
        if small is not None and len(repr(small)) <= len(repr(case)):
            case = small
        say(fault=what, case=repr(case)[:3000])


def _small(kind: Kind, sort: str, seed: int, watch: Watch) -> Any:
    """A small case with a fault of this sort; None if none was found again."""
    bounds = settings(
        max_examples=SHRINK_CASES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    def shows(case: Any) -> bool:
        clock()
        outcome = tried(kind, case, watch)
        return outcome.state == "fault" and outcome.sort == sort

    try:
        return hypothesis.find(kind.cases, shows, settings=bounds, random=random.Random(seed))
    except HypothesisException:
        return None


def main() -> None:
    """Run these kinds, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m trials.inputs_child", description=__doc__)
    parser.add_argument("kinds", nargs="+")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--light", action="store_true", help="without the known cases that take a while")
    asked = parser.parse_args()
    import warnings

    warnings.simplefilter("ignore")
    kinds = [kind_of(name) for name in asked.kinds]
    for kind in kinds:
        kind.ready()
    bound()
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(Path(folder))
        for name, kind in zip(asked.kinds, kinds, strict=True):
            say(kind=name)
            run(kind, asked.cases, asked.seed, watch, heavy=not asked.light)


if __name__ == "__main__":
    main()
