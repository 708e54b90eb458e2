"""Faults: after each one the newest checkpoint loads, the curve is whole, and the page says how to go on."""

from collections.abc import Callable

from trials import (
    faults_bytes,
    faults_clock,
    faults_disk,
    faults_kill,
    faults_memory,
    faults_offline,
    faults_server,
)
from trials.faults_kit import Tally
from trials.outcomes import Options, Part

KINDS: tuple[Callable[[Options], Tally], ...] = (
    faults_kill.trial,
    faults_memory.trial,
    faults_disk.full,
    faults_disk.closed,
    faults_clock.trial,
    faults_server.trial,
    faults_offline.trial,
    faults_bytes.trial,
)


def trial(options: Options) -> Part:
    """Inject all kinds of faults."""
    tallies = [kind(options) for kind in KINDS]
    figures = {
        tally.kind: {"injected": tally.injected, "survived": tally.survived}
        for tally in tallies
        if tally.injected
    }
    total = {name: sum(line[name] for line in figures.values()) for name in ("injected", "survived")}
    notes = [f"Left out: {tally.kind}, since {tally.left_out}." for tally in tallies if tally.left_out]
    notes += [f"{tally.kind}: {fault}" for tally in tallies for fault in tally.faults[:5]]
    checks = [check for tally in tallies for check in tally.checks]
    return Part("faults", checks, {**figures, "all": total}, notes)
