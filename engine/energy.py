"""Energy that a run takes, where the machine tells it: processor counters on Linux, power of NVIDIA GPUs.

The number is that of the whole processor package, or of the whole GPU, with everything else that ran there
meanwhile, and without memory, fans and screen. It is a fair measure of a run only on a machine that does
nothing else. Most systems let only the administrator read the counters of the processor; then there is no
number, never an estimate.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")  # docs.kernel.org/power/powercap/powercap.html
NVIDIA = ("nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits", "--id={gpu}")
NVIDIA_SECONDS = 2.0  # between two readings of its power, and the longest that one may take


class Package:
    """The energy counter of one processor package, which begins again at 0 when it is full.

    Args:
        folder: of its powercap zone.

    Raises:
        OSError: if it can't be read, usually for lack of rights.
        ValueError: if it holds no numbers.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._full = int((folder / "max_energy_range_uj").read_text())
        self._last = self._read()

    def _read(self) -> int:
        return int(self._file.read_text())

    def joules(self) -> float:
        """Since the last call."""
        now = self._read()
        used = now - self._last if now >= self._last else now + self._full - self._last
        self._last = now
        return used / 1e6


def packages(powercap: Path = POWERCAP) -> list[Package]:
    """The processor packages whose counters can be read: all of them, or none, since a part would mislead."""
    found = []
    for zone in sorted(powercap.glob("intel-rapl:*")):
        if zone.name.count(":") > 1:  # cores, graphics, memory: parts of a package, or outside of it
            continue
        try:
            if (zone / "name").read_text().startswith("package"):  # not psys, which counts packages again
                found.append(Package(zone))
        except (OSError, ValueError):
            return []
    return found


class Gpu:
    """An NVIDIA GPU, asked for its power now and then; between two readings power is taken to change evenly.

    Args:
        command: prints its power in watts.
        clock: seconds.
    """

    def __init__(self, command: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._command, self._clock = list(command), clock
        self._at, self._watts = clock(), self._read()

    @property
    def tells(self) -> bool:
        """Whether it told its power when last asked."""
        return self._watts is not None

    def _read(self) -> float | None:
        try:
            shown = subprocess.run(
                self._command, capture_output=True, text=True, timeout=NVIDIA_SECONDS, check=True
            ).stdout
            return float(shown.strip())
        except (OSError, subprocess.SubprocessError, ValueError):  # not there, hangs, or "[N/A]"
            return None

    def joules(self, *, rest: bool = False) -> float:
        """Since the last reading; 0 until the next one is due, or at once when about to `rest`."""
        now = self._clock()
        if self._watts is None or (now - self._at < NVIDIA_SECONDS and not rest):
            return 0.0
        watts = self._read()
        if watts is None:
            self._watts = None
            return 0.0
        used = (watts + self._watts) / 2 * (now - self._at)
        self._at, self._watts = now, watts
        return used


class Meter:
    """Adds up the energy since it was made, without the time in which it rests.

    Args:
        gpu: name of the GPU that the run uses, None for a run on the processor.
        powercap: where Linux shows its counters.
        nvidia: command that prints the GPU's power, `{gpu}` stands for its name.
        clock: seconds.

    Attributes:
        covers: "processor", "GPU", "processor and GPU", or "" if nothing tells its energy.
    """

    def __init__(
        self,
        gpu: str | None = None,
        *,
        powercap: Path = POWERCAP,
        nvidia: Sequence[str] = NVIDIA,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lock, self._asking = threading.Lock(), threading.Lock()
        self._sum, self._resting = 0.0, False
        self._packages = packages(powercap)
        self._gpu = None if gpu is None else Gpu([part.format(gpu=gpu) for part in nvidia], clock)
        if self._gpu is not None and not self._gpu.tells:
            self._packages = []  # the processor alone would hide the larger part
        covers = ["processor"] * bool(self._packages) + ["GPU"] * bool(self._gpu and self._gpu.tells)
        self.covers = " and ".join(covers)

    def sample(self) -> None:
        """Take a reading, which may take a moment. Seldom is enough, but a counter may end within minutes."""
        self._ask_gpu()
        with self._lock:
            self._read_packages()

    def joules(self) -> float | None:
        """Energy up to the last reading, None where the machine doesn't tell, or stopped telling. At once."""
        with self._lock:
            self._read_packages()
            return self._sum if self.covers else None

    def rest(self) -> None:
        """Count no more until `go_on`."""
        self._ask_gpu(now=True)
        with self._lock:
            self._read_packages()
            self._resting = True

    def go_on(self) -> None:
        """Count again from now on."""
        self._ask_gpu(now=True)
        with self._lock:
            self._read_packages()
            self._resting = False

    def _ask_gpu(self, *, now: bool = False) -> None:
        if self._gpu is None or not self.covers:
            return
        with self._asking:
            used = self._gpu.joules(rest=now)
        with self._lock:
            self._add(used)
            if not self._gpu.tells:
                self.covers = ""

    def _read_packages(self) -> None:
        try:
            self._add(sum(package.joules() for package in self._packages))
        except (OSError, ValueError):
            self.covers, self._packages = "", []

    def _add(self, joules: float) -> None:
        if not self._resting:
            self._sum += joules
