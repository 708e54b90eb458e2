"""Open a page as Streamlit's own test driver sees it: through app.py, without a browser."""

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from tests import hub_folders
from tests.pages.tiny import save_tiny
from ui import model_refs, run_curve

ROOT = Path(__file__).parents[2]
OpenPage = Callable[..., AppTest]
Pair = tuple[Checkpoint, Checkpoint]


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """open_page("tokens", query={"layer": "2"}, text="a") -> AppTest; keyword arguments are session state."""
    from engine.runs import RunStore

    monkeypatch.setattr(RunStore, "warm", lambda self: None)  # no test here trains: no worker need stand by
    # AppTest knows only what the last run has drawn: here a change draws the whole page, not the parts alone
    monkeypatch.setattr(run_curve, "again", lambda: None)

    def opener(name: str, query: dict[str, str] | None = None, **state: Any) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        for key, value in state.items():
            at.session_state[key] = value
        for key, value in (query or {}).items():
            at.query_params[key] = value
        at.run()
        return at if name == "home" else at.switch_page(f"pages/{name}.py").run()

    return opener


def plotly(at: AppTest, key: str) -> dict[str, Any]:
    """The figure of a `st.plotly_chart` with this key."""
    found = [e for e in at.get("plotly_chart") if key in e.proto.id]
    assert len(found) == 1, f"{len(found)} charts have the key {key}"
    spec: dict[str, Any] = json.loads(found[0].proto.spec)
    return spec


def component(at: AppTest, key: str) -> dict[str, Any]:
    """The data of a component (token_strip, head_grid, live_curve) with this key."""
    found = [e for e in at.get("bidi_component") if key in e.proto.id]
    assert len(found) == 1, f"{len(found)} components have the key {key}"
    data: dict[str, Any] = json.loads(found[0].proto.json)
    if found[0].proto.component_name == "loupe_live_curve":
        data["series"] = [lines_of(line) for line in data["series"]]
    return data


def lines_of(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a live_curve as the browser unpacks it: steps, and values with None where there is none."""
    x = np.frombuffer(base64.b64decode(line["x"]), "<i4")
    y = np.frombuffer(base64.b64decode(line["y"]), "<f4")
    return {**line, "x": x.tolist(), "y": [float(f"{v:.7g}") if v == v else None for v in y.tolist()]}


def unpacked(grid: dict[str, Any]) -> NDArray[Any]:
    """(L,H,T,T) of 0 to 255 as the browser unpacks the data of a head_grid; 0 where nothing is sent."""
    n_layer, n_head, n = grid["shape"]
    raw = np.frombuffer(zlib.decompress(base64.b64decode(grid["weights"])), dtype=np.uint8)
    if not grid["causal"]:
        return raw.reshape(n_layer, n_head, n, n)
    full = np.zeros((n_layer, n_head, n, n), dtype=np.uint8)
    pairs = [(query, key) for key in range(n) for query in range(key, n)]  # column by column
    full[:, :, [q for q, _ in pairs], [k for _, k in pairs]] = raw.reshape(n_layer, n_head, -1)
    return full


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the shipped models."""
    folder = tmp_path / "pretrained"
    monkeypatch.setattr(model_refs, "PRETRAINED", folder)
    return folder


@pytest.fixture
def models(shelf: Path) -> Pair:
    """A small causal and a small masked model with one vocabulary, as if they were shipped."""
    masked: dict[str, Any] = {"objective": "mlm", "context_length": 64}
    return save_tiny(shelf, "tiny-clm", context_length=64), save_tiny(shelf, "tiny-mlm", **masked)


@pytest.fixture
def published(loupe_home: Path) -> Path:
    """The models folder, with two tiny published models: model="hub:llama" or "hub:roberta" chooses one."""
    folder = loupe_home / "models"
    hub_folders.write_llama(folder / "llama")
    hub_folders.write_roberta(folder / "roberta")
    return folder
