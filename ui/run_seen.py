"""What the records of a run say, worked out once for all who watch it and again only when there are more."""

from threading import Lock

import viz
from engine import reading
from engine.reading import Line, Record
from ui.components.live_curve import MAX_POINTS

MOST = 64  # runs that are kept


class Seen:
    """What a run's records say up to now. Shared by all people: never change it.

    Attributes:
        reading: its newest numbers; None before the first evaluation.
        bad_steps: steps at which a loss was not a finite number.
        measured: steps at which it was evaluated.
        floors: the records of what guessing, counting and the true source reach.
        samples, notices: the records of what it wrote and of what was said about it.
    """

    def __init__(self, records: list[Record], n_choices: int) -> None:
        self.reading = reading.read(records, n_choices)
        self.bad_steps = reading.bad_steps(records)
        self.measured = [record["step"] for record in records if record["kind"] == "eval"]
        self.floors = [record for record in records if record["kind"] in ("baseline", "floor")]
        self.samples = [record for record in records if record["kind"] == "sample"]
        self.notices = [record for record in records if record["kind"] == "notice"]
        self._records = records
        self._lines: dict[tuple[str, int], tuple[Line, Line | None]] = {}

    def lines(self, name: str, half_life: int) -> tuple[Line, Line | None]:
        """A quantity as measured, and smoothed over all its records; each of at most `MAX_POINTS` points.

        Args:
            name: see `reading.quantity`.
            half_life: of the smoothing, in steps; 0 for none.
        """
        found = self._lines.get((name, half_life))
        if found is None:
            steps, values = reading.quantity(self._records, name)
            smoothed = None
            if half_life and len(steps) >= 3:
                smoothed = viz.thin(steps, reading.smooth(values, half_life, steps), MAX_POINTS)
            found = self._lines[name, half_life] = viz.thin(steps, values, MAX_POINTS), smoothed
        return found

    def of(self, records: list[Record]) -> bool:
        """Whether it was made of these records and no others: whoever reads them keeps what was read."""
        mine = self._records
        return len(mine) == len(records) and (not records or mine[-1] is records[-1])


_kept: dict[str, Seen] = {}
_mutex = Lock()


def seen(run_id: str, records: list[Record], n_choices: int) -> Seen:
    """What the records of a run say.

    Args:
        run_id: of the run.
        records: all of them, as `RunStore.history` gives them.
        n_choices: see `RunInfo.n_choices`.
    """
    found = _kept.get(run_id)
    if found is None or not found.of(records):
        found = Seen(records, n_choices)
        with _mutex:
            _kept.pop(run_id, None)
            _kept[run_id] = found  # now the newest entry
            while len(_kept) > MOST:
                _kept.pop(next(iter(_kept)))
    return found
