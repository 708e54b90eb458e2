"""Training in 16 bits is offered where the processor gains from it, and only there."""

import json
from pathlib import Path

import pytest
import streamlit as st
import torch

from engine.run_queue import RunQueue
from tests.pages.conftest import OpenPage
from tests.pages.made_runs import STORY


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs wait in the queue."""
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)


def started(open_page: OpenPage, home: Path, **settings: object) -> dict[str, object]:
    """The training settings of a run that the page starts."""
    at = open_page("training", training_text="pasted", training_paste=STORY * 20, **settings)
    assert not at.exception
    before = set((home / "runs").glob("2*"))
    at.button(key="training_start").click().run()
    assert not at.exception and not at.error
    (made,) = set((home / "runs").glob("2*")) - before
    train: dict[str, object] = json.loads((made / "run.json").read_text("utf-8"))["train"]
    return train


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize("can", [True, False])
def test_it_is_a_choice_where_it_pays(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch, can: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": can})
    at = open_page("training")
    assert [toggle.value for toggle in at.toggle if toggle.key == "training_bfloat16"] == [False] * can
    for wanted in (False, True):  # also from a link that somebody made on another machine
        train = started(open_page, loupe_home, training_bfloat16=wanted)
        assert train["precision"] == ("bfloat16" if wanted and can else "auto")
    st.cache_resource.clear()
