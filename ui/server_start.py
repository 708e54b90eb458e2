"""What a server does once, when it is first looked at: the teacher's secret is there, old runs are gone.

And from then on it lets go of what people leave behind, see `ui.left`.
"""

from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from engine import retention, run_bin, teacher_secret
from ui import left, resources
from wording import words

say = words("ui.server_start")


# Data folders of this process that were begun with. No cache of Streamlit's: any browser may empty those.
_BEGUN: set[Path] = set()


def begin() -> None:
    """Do it, unless this server did. The frame does this first."""
    left.begin()
    home = resources.home().absolute()
    if home not in _BEGUN:
        _BEGUN.add(home)
        _begin(home)


def _begin(home: Path) -> None:
    try:
        teacher_secret.secret_of(home)
    except ValueError as error:
        print(error, flush=True)
    else:
        if not teacher_secret.from_environment():
            print(say("where", file=teacher_secret.path(home)), flush=True)
    with suppress(OSError):  # a folder that can't be written: pages say so where it matters
        tidy(home)


def tidy(home: Path) -> None:
    """Remove for good what was deleted, and delete old runs if a day has passed."""
    if (home / "runs").is_dir():
        with FileLock(home / "runs.lock"):
            run_bin.sweep(home / "runs")
            if retention.is_due(home):
                retention.tidy(home)
