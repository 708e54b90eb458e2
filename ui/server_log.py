"""What the server itself tells the plain log: its start and its end, and errors that pages ran into.

Streamlit catches whatever a page, a part of a page or a button's callback raises, shows its kind, and hands
it to its own logger: that one is listened to, so that no page needs to catch anything.
"""

import atexit
import logging
import os
from pathlib import Path

import streamlit as st

from engine import plain_log
from engine.memory import free_disk, memory
from engine.selftest_machine import loupe_version, system
from ui import resources

ERRORS = "streamlit.error_util"  # the logger of errors in pages; `logger.enableRich` would pass it by


# Data folders of this process that were begun with. No cache of Streamlit's: any browser may empty those.
_BEGUN: set[Path] = set()


def begin() -> None:
    """Note that this server began, and listen; once in its life."""
    home = resources.home().absolute()
    if home not in _BEGUN:
        _BEGUN.add(home)
        _begin(home)


def _begin(home: Path) -> None:
    room = memory()
    bound = f"{st.get_option('server.address') or 'all'}:{st.get_option('server.port')}"
    plain_log.info(
        "server started", home=home, version=loupe_version(), process=os.getpid(), address=bound,
        system=system(), cores=os.cpu_count(), memory_mb=_mb(room.total), free_mb=_mb(room.free),
        disk_mb=_mb(free_disk(home)),
    )  # fmt: skip
    logger = logging.getLogger(ERRORS)
    for listener in [one for one in logger.handlers if isinstance(one, PageErrors)]:
        logger.removeHandler(listener)  # of a home folder that was before
    logger.addHandler(PageErrors(home))
    atexit.register(_ended, home)


def _mb(n_bytes: int | None) -> int | None:
    return None if n_bytes is None else round(n_bytes / 1e6)


def _ended(home: Path) -> None:
    if home.is_dir():  # a test's is gone by now
        plain_log.info("server ended", home=home, process=os.getpid())


class PageErrors(logging.Handler):
    """Hands errors of pages to the plain log."""

    def __init__(self, home: Path) -> None:
        """For the log of this data folder."""
        super().__init__(logging.ERROR)
        self._home = home

    def emit(self, record: logging.LogRecord) -> None:
        """Note an error and all its places, but not what it says."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            plain_log.failure("page failed", error, home=self._home)
