"""status.json of a run while it is trained: written twice a second, so that everybody sees that it lives."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.run_info import update_status

HEARTBEAT_SECONDS = 0.5


class Status:
    """status.json of a run with a heartbeat: a thread writes it anew twice a second, in long steps too.

    Attributes:
        on_beat: is called at each beat.
    """

    def __init__(self, folder: Path, **entries: Any) -> None:
        """Begin at once; the entries are in the file when this returns."""
        self._folder, self._entries = folder, dict(entries)
        self._lock, self._end = threading.Lock(), threading.Event()
        self.on_beat: Callable[[], None] = lambda: None
        self.write()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def set(self, **entries: Any) -> None:
        """Change entries; they are written at the next beat."""
        self._entries |= entries

    def write(self, **entries: Any) -> None:
        """Change entries and write them now."""
        with self._lock:
            self._entries |= entries
            update_status(self._folder, durable=False, **self._entries)

    def close(self, **entries: Any) -> None:
        """Stop beating and write the last entries."""
        self.end()
        self.write(**entries)

    def end(self) -> None:
        """Stop beating; the last entries stay."""
        self._end.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._end.wait(HEARTBEAT_SECONDS):
            self.on_beat()
            with suppress(OSError):  # a full disk: the main thread reports it when a checkpoint fails
                self.write()
