"""`python -m pretrained.experiments held-out`: train the runs of a study and write its results here.

The same settings and the same worker as in the app, one run after the other; all studies take about half an
hour on one core. Studies that have a file already are left out unless they are named.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: waiting threads must not spin

import torch

from engine.experiments import STUDIES, larger_spec, study_specs
from engine.outcomes import SHIPPED, Outcome, outcome, to_json
from engine.runs import RunSpec, RunStore
from engine.worker import run_folder
from pretrained.make import machine

OWNER = "the app"


def train(store: RunStore, spec: RunSpec) -> Outcome:
    """Train one run here and now; one that diverges is a result as well."""
    run_id = store.create(spec, OWNER)
    try:
        run_folder(store.claim(run_id), report=lambda text: print(f"  {spec.label}: {text}", flush=True))
    except ValueError as error:
        if not store.info(run_id).diverged:
            raise
        print(f"  {spec.label}: {error}", flush=True)
    return outcome(store.info(run_id), store.history(run_id))


def make(study: str, seed: int, folder: Path) -> None:
    """Train all runs of a study and write their results."""
    larger = larger_spec(study, seed)
    specs = [*study_specs(study, seed), *([larger] if larger else [])]
    with tempfile.TemporaryDirectory() as home:
        store = RunStore(home)
        runs = [train(store, spec) for spec in specs]
    seconds = sum(max((r.get("seconds") or 0.0 for r in run.records), default=0.0) for run in runs)
    results = {
        "study": study, "made": time.strftime("%Y-%m-%d"), "machine": machine("cpu"),
        "seconds": round(seconds, 1), "seed": seed, "runs": [to_json(run) for run in runs],
    }  # fmt: skip
    (folder / f"{study}.json").write_text(json.dumps(results, separators=(",", ":")) + "\n", "utf-8")


def main() -> None:
    """Make the studies that are named, or those that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(STUDIES)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    missing = [study for study in STUDIES if not (arguments.out / f"{study}.json").exists()]
    for study in arguments.studies or missing:
        print(study, flush=True)
        make(study, arguments.seed, arguments.out)


if __name__ == "__main__":
    main()
