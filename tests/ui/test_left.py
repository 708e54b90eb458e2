"""Sessions that were left end without anybody else's doing."""

from types import SimpleNamespace
from typing import Any

import pytest
from streamlit import runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

from engine import plain_log
from ui import left


def session(name: str, files: MemoryUploadedFileManager) -> Any:
    files.add_file(name, UploadedFileRec("1", "a.txt", "text/plain", b"text"))
    return SimpleNamespace(id=name, shutdown=lambda: files.remove_session_files(name))


def test_a_session_that_cannot_come_back_goes_with_its_files() -> None:
    now, files = [0.0], MemoryUploadedFileManager("/upload")
    storage = MemorySessionStorage(ttl_seconds=120)
    cache: Any = storage._cache
    cache._timer = lambda: now[0]
    manager = WebsocketSessionManager(storage, files, ScriptCache(), None)
    storage.save(SessionInfo(client=None, session=session("early", files)))
    now[0] = 100
    storage.save(SessionInfo(client=None, session=session("late", files)))
    assert left.let_go(manager) == 0 and len(files.file_storage) == 2
    now[0] = 121
    assert left.let_go(manager) == 1
    assert list(files.file_storage) == ["late"] and list(cache._data) == ["late"]
    now[0] = 221
    assert left.let_go(manager) == 1 and not files.file_storage and not cache._data


def test_one_session_that_cannot_be_ended_keeps_no_other() -> None:
    now, files = [0.0], MemoryUploadedFileManager("/upload")
    storage = MemorySessionStorage(ttl_seconds=120)
    cache: Any = storage._cache
    cache._timer = lambda: now[0]
    odd = session("odd", files)
    odd.shutdown = lambda: [].pop()
    for one in (odd, session("late", files)):
        storage.save(SessionInfo(client=None, session=one))
    now[0] = 121
    assert left.let_go(WebsocketSessionManager(storage, files, ScriptCache(), None)) == 2
    assert list(files.file_storage) == ["odd"]
    assert "session not ended" in " ".join(plain_log.last_lines(20))


def test_one_thread_looks_and_none_where_there_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    thread = SimpleNamespace(start=lambda: begun.append(1))
    monkeypatch.setattr("ui.left.threading", SimpleNamespace(Thread=lambda **_: thread))
    left._begun.clear()
    left.begin()
    assert not runtime.exists() and not begun
    manager = WebsocketSessionManager(
        MemorySessionStorage(), MemoryUploadedFileManager("/upload"), ScriptCache(), None
    )
    server = SimpleNamespace(exists=lambda: True, get_instance=lambda: SimpleNamespace(_session_mgr=manager))
    monkeypatch.setattr("ui.left.runtime", server)
    for _ in range(2):
        left.begin()
    left._begun.clear()
    assert begun == [1]
