"""What a server does once, when it is first looked at: the teacher's secret is there, old runs are gone."""

from contextlib import suppress
from pathlib import Path

import streamlit as st
from filelock import FileLock

from engine import retention, run_bin, teacher_secret
from ui import resources
from wording import words

say = words("ui.server_start")


def begin() -> None:
    """Do it, unless this server did. The frame does this first."""
    _begin(str(resources.home().absolute()))


@st.cache_resource(max_entries=8, show_spinner=False)
def _begin(home: str) -> bool:
    try:
        teacher_secret.secret_of(home)
    except ValueError as error:
        print(error, flush=True)
    else:
        if not teacher_secret.from_environment():
            print(say("where", file=teacher_secret.path(home)), flush=True)
    with suppress(OSError):  # a folder that can't be written: pages say so where it matters
        tidy(Path(home))
    return True


def tidy(home: Path) -> None:
    """Remove for good what was deleted, and delete old runs if a day has passed."""
    if (home / "runs").is_dir():
        with FileLock(home / "runs.lock"):
            run_bin.sweep(home / "runs")
            if retention.is_due(home):
                retention.tidy(home)
