"""What people leave behind on the server when they go, and that it is let go of in time.

Streamlit keeps a session for two minutes after its tab was closed, in case it comes back. But it looks for
those whose time has passed only when the next tab is closed: the last class of a day would stay overnight,
with all the files that it has uploaded. A thread looks for them here.
"""

import threading
import time

from streamlit import runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

from engine import plain_log
from engine.memory import give_back

EVERY = 30.0  # s
_begun = threading.Event()


def begin() -> None:
    """Look from now on, as long as this server lives; once in its life. The frame does this first."""
    if runtime.exists() and not _begun.is_set():
        manager = getattr(runtime.get_instance(), "_session_mgr", None)
        if isinstance(manager, WebsocketSessionManager):  # not in a test without a server
            _begun.set()
            threading.Thread(target=_look, args=(manager,), name="left", daemon=True).start()


def _look(manager: WebsocketSessionManager) -> None:
    while True:
        time.sleep(EVERY)
        if let_go(manager):
            give_back()


def let_go(manager: WebsocketSessionManager) -> int:
    """End the sessions that can't come back any more; how many there were."""
    storage = manager._session_storage
    if not isinstance(storage, MemorySessionStorage):
        return 0
    with manager._storage_lock:
        ended = storage._cache.expire()  # type: ignore[attr-defined]
    for _, info in ended:
        try:
            info.session.shutdown()
        except (
            RuntimeError,
            OSError,
            LookupError,
            ValueError,
            AttributeError,
        ) as error:  # one that can't be ended is no reason to keep all others
            plain_log.failure("session not ended", error)
    return len(ended)
