"""`python -m benchmarks.step`: where the time of a training step goes, as a table and as a flame graph.

The table lists PyTorch's operations by their own time. The flame graph is a file for speedscope.app (drop it
there, nothing is uploaded), or for `chrome://tracing` and ui.perfetto.dev with `--trace`. One thread is
measured: with two the parts of a batch run side by side, and no operation is faster.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.peers import NANOGPT_CPU
from benchmarks.rows import Options
from benchmarks.training_speed import loupe, text_ids
from engine.memory import keep_freed

SETTLE = 5


def recorded(step: Callable[[], float], n_steps: int) -> Any:
    """PyTorch's own record of so many steps."""
    for _ in range(SETTLE):
        step()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for _ in range(n_steps):
            step()
    return found


def table(found: Any, n_steps: int, rows: int = 20) -> str:
    """Operations by their own time: ms in a step, share, calls in a step."""
    averages = sorted(found.key_averages(), key=lambda one: -one.self_cpu_time_total)
    total = sum(one.self_cpu_time_total for one in averages)
    lines = [f"{'operation':58}{'ms':>9}{'share':>9}{'calls':>8}"]
    for one in averages[:rows]:
        ms = one.self_cpu_time_total / n_steps / 1e3
        share = one.self_cpu_time_total / total
        lines.append(f"{one.key[:56]:58}{ms:9.3f}{share:9.1%}{one.count / n_steps:8.1f}")
    rest = sum(one.self_cpu_time_total for one in averages[rows:])
    lines.append(f"{'all others':58}{rest / n_steps / 1e3:9.3f}{rest / total:9.1%}")
    lines.append(f"{'together, with what recording costs':58}{total / n_steps / 1e3:9.3f}")
    return "\n".join(lines)


def flame_graph(events: Iterable[Any]) -> dict[str, Any]:
    """The record in speedscope's format (github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources).

    One profile for each thread. An operation lies inside another one if it began and ended while that ran.
    """
    names: dict[str, int] = {}
    threads = defaultdict(list)
    for event in events:
        threads[event.thread].append((event.time_range.start, event.time_range.end, event.name))
    profiles = []
    for thread, spans in threads.items():
        spans.sort(key=lambda span: (span[0], -span[1]))
        open_spans: list[tuple[float, int]] = []  # (end, frame)
        told: list[dict[str, Any]] = []
        for start, end, name in spans:
            while open_spans and open_spans[-1][0] <= start:
                told.append({"type": "C", "frame": open_spans[-1][1], "at": open_spans.pop()[0]})
            if open_spans:
                end = min(end, open_spans[-1][0])
            frame = names.setdefault(name, len(names))
            told.append({"type": "O", "frame": frame, "at": start})
            open_spans.append((end, frame))
        while open_spans:
            end, frame = open_spans.pop()
            told.append({"type": "C", "frame": frame, "at": end})
        profiles.append(
            {
                "type": "evented",
                "name": f"thread {thread}",
                "unit": "microseconds",
                "startValue": told[0]["at"],
                "endValue": told[-1]["at"],
                "events": told,
            }
        )
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": "training step",
        "shared": {"frames": [{"name": name} for name in names]},
        "profiles": profiles,
    }


def main() -> None:
    """Measure, print the table, write the files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step", description=__doc__)
    parser.add_argument("--steps", type=int, default=10, help="how many are recorded (default: 10)")
    parser.add_argument("--out", type=Path, default=Path("step.speedscope.json"), help="the flame graph")
    parser.add_argument("--trace", type=Path, help="also a trace for chrome://tracing and ui.perfetto.dev")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed()
    step = loupe(NANOGPT_CPU, text_ids(Options(), NANOGPT_CPU.vocab_size), threads=1)
    found = recorded(step, options.steps)
    began = time.perf_counter()
    for _ in range(options.steps):
        step()
    alone = (time.perf_counter() - began) / options.steps
    print(table(found, options.steps))
    print(f"{'a step without recording':58}{1e3 * alone:9.3f}")
    options.out.write_text(json.dumps(flame_graph(found.events())), "utf-8")
    print(f"Flame graph: {options.out}")
    if options.trace:
        found.export_chrome_trace(str(options.trace))
        print(f"Trace: {options.trace}")


if __name__ == "__main__":
    main()
