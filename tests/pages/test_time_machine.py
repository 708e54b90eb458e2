"""The time machine without a browser: what it sends for the browser to draw."""

import base64
import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.checkpoints import load_checkpoint, save_checkpoint
from engine.metrics import softmax
from engine.runs import RunStore
from engine.trace import trace
from engine.training import moment_steps
from engine.tuning_start import describe
from tests.engine.small_runs import train_here
from tests.engine.test_one_step import CONFIG, run_with_checkpoints
from tests.engine.test_tuning_runs import tuned
from tests.hub_folders import write_bert
from tests.pages.conftest import ROOT, OpenPage, component
from tests.pages.tiny import save_tiny
from ui import model_refs, time_data

VIEW = {"watch": "time-machine"}
TEXT = "Once upon a time, there was a princess called Lily. She"
HISTORY = ROOT / "pretrained/history"


@pytest.fixture(autouse=True)
def fresh(loupe_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("ui.time_machine.PIECE", 0.0)  # one sample a run is enough
    yield
    st.cache_resource.clear()


@pytest.fixture
def few_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    every = time_data.moments_of
    monkeypatch.setattr(time_data, "moments_of", lambda ref: every(ref)[::8] + every(ref)[-1:])


def machine(at: AppTest) -> dict[str, Any]:
    assert not at.exception, at.exception[0].value
    return component(at, "time_machine")


def said(at: AppTest) -> str:
    return "\n".join(
        str(e.value) for kind in ("info", "warning", "markdown", "caption") for e in at.get(kind)
    )


def test_every_moment_shows_what_its_checkpoint_says(open_page: OpenPage, few_moments: None) -> None:
    data = machine(open_page("training", query=VIEW, text=TEXT))
    steps = data["steps"]
    assert steps[0] == 0 and steps[-1] == 6000 and data["selected"] == 6000
    for i, step in enumerate(steps[:-1]):
        saved = load_checkpoint(HISTORY / "stories-clm/checkpoints" / f"{step:07d}")
        seen = trace(saved.model, saved.tokenizer, TEXT)
        probs = softmax(seen.logits[-1])
        rows = data["bars"]["rows"][i]
        assert [row["id"] for row in rows[:-1]] == np.argsort(-probs, kind="stable")[:8].tolist()
        for row in rows[:-1]:
            assert row["p"] == pytest.approx(probs[row["id"]], rel=1e-5)
        assert sum(row["p"] for row in rows) == pytest.approx(1, abs=1e-4)
        surprise = -np.log(softmax(seen.logits[6])[seen.ids[7]])
        assert data["chips"]["values"][i][7] == (f"{surprise:.2f}" if surprise >= 0.005 else "<0.01")
        n = len(seen.ids)
        weights = np.frombuffer(base64.b64decode(data["head"]["weights"]), np.uint8).reshape(-1, n, n)
        assert abs(weights[i] / 255 - seen.attentions[0, 0]).max() <= 0.5 / 255 + 1e-6
        for line in data["lines"]:
            token = next(
                k for k, v in data["bars"]["names"].items() if "".join(p for p, _ in v) == line["name"]
            )
            assert line["values"][i] == pytest.approx(probs[int(token)], rel=1e-5)


def test_the_kept_precision_and_the_loss_are_said(open_page: OpenPage, few_moments: None) -> None:
    data = machine(open_page("training", query=VIEW, text=TEXT))
    records = [
        json.loads(x) for x in (ROOT / "pretrained/stories-clm/metrics.jsonl").read_text().splitlines()
    ]
    losses = {r["step"]: r["val_loss"] for r in records if r["kind"] == "eval"}
    for step, note in zip(data["steps"], data["notes"], strict=True):
        assert f"{losses[step]:.4f} nats" in note
        assert ("8 bits" in note) == (step != 6000)
    assert data["curve"]["series"][0]["x"] == sorted(losses)
    start, floor = data["curve"]["references"]
    assert start["value"] == pytest.approx(math.log(1024)) and floor["label"].startswith("floor")


def test_the_true_distribution_stands_beside_the_model(open_page: OpenPage, few_moments: None) -> None:
    data = machine(open_page("training", query=VIEW, text=TEXT))
    assert data["bars"]["truth"]
    for rows in data["bars"]["rows"]:
        assert sum(row["true"] for row in rows) == pytest.approx(1, abs=1e-4)
    assert all("true" in line for line in data["lines"])


def test_a_chosen_token_and_head_are_shown(open_page: OpenPage, few_moments: None) -> None:
    at = open_page("training", query=VIEW, text=TEXT)
    for key, value in (("time_place", 4), ("time_head", {"layer": 2, "head": 3})):
        at.session_state[f"_{key}_selection"] = {"value": value, "told": value, "rev": 1, "heard": None}
    data = machine(at.run())
    assert data["chips"]["selected"] == 4 and data["head"]["row"] == 4
    assert (data["head"]["layer"], data["head"]["head"]) == (2, 3)
    saved = load_checkpoint(HISTORY / "stories-clm/checkpoints/0000000")
    seen = trace(saved.model, saved.tokenizer, TEXT)
    first = data["bars"]["rows"][0][0]
    assert first["p"] == pytest.approx(softmax(seen.logits[4]).max(), rel=1e-5)
    came = [row["id"] for row in data["bars"]["rows"][0] if row.get("came")]
    assert came == [seen.ids[5]]
    n = len(seen.ids)
    weights = np.frombuffer(base64.b64decode(data["head"]["weights"]), np.uint8).reshape(-1, n, n)
    assert abs(weights[0] / 255 - seen.attentions[2, 3]).max() <= 0.5 / 255 + 1e-6


def test_samples_come_bit_by_bit_nearest_first_and_polling_ends(
    open_page: OpenPage, few_moments: None
) -> None:
    at = open_page("training", query=VIEW, text=TEXT)
    n = len(machine(at)["steps"])
    assert machine(at)["samples"][-1] is not None and machine(at)["samples"][0] is None
    for _ in range(n):
        at.run()
    samples = machine(at)["samples"]
    assert all(samples) and {pieces[0][0] for pieces in samples} == {TEXT}
    assert len({pieces[1][0] for pieces in samples}) == n  # other weights, other words


def test_a_masked_model_hides_the_chosen_token(open_page: OpenPage, few_moments: None) -> None:
    data = machine(open_page("training", query={**VIEW, "model": "stories-mlm"}, text=TEXT))
    assert data["chips"]["hidden"] and not data["head"]["causal"]
    assert "is hidden" in "".join(text for text, _ in data["heading"])
    assert all("–" not in values for values in data["chips"]["values"])  # also the first one is asked for
    kinds = {kind for pieces in data["samples"] if pieces for _, kind in pieces}
    assert kinds <= {"given", "right", "wrong"} and "given" in kinds


def test_a_run_has_moments_of_its_own(open_page: OpenPage, loupe_home: Path) -> None:
    folder, _ = run_with_checkpoints(loupe_home, replace(CONFIG, moments=4))
    saved = load_checkpoint(folder / "checkpoints/0000000")
    save_checkpoint(folder / "checkpoints/0000000", saved, dtype="int8")  # as older moments of a run are kept
    at = open_page(
        "training", query=VIEW, text="The fox", model=f"run:{folder.name}", _owner_proposal="a" * 32
    )
    data = machine(at)
    assert data["steps"] == sorted({*moment_steps(9, 4), 5, 9})  # 5: kept in any case
    assert "8 bits" in data["notes"][0] and "8 bits" not in data["notes"][-1]
    assert not data["bars"]["truth"]


def test_a_run_from_a_published_masked_model_leaves_what_stands_around_the_text(
    open_page: OpenPage, loupe_home: Path
) -> None:
    store, start = RunStore(loupe_home), describe(write_bert(loupe_home / "models" / "bert"), "hub", "bert")
    run_id = store.create(tuned(start, row_length=24, moments=3), "a" * 32)
    train_here(store, run_id)
    at = open_page("training", query=VIEW, text="the cat", model=f"run:{run_id}", _owner_proposal="a" * 32)
    data = machine(at)
    values = data["chips"]["values"][-1]
    assert [i for i, value in enumerate(values) if value == "–"] == [0, len(values) - 1]  # [CLS] and [SEP]
    assert data["chips"]["selected"] == len(values) - 2
    assert "so long" not in data["chips"]["note"]
    assert not any(
        "[CLS]" in text or "[SEP]" in text for pieces in data["samples"] for text, _ in pieces or []
    )


def test_a_story_that_looks_back_for_its_name(open_page: OpenPage, few_moments: None) -> None:
    at = open_page("training", query=VIEW)
    at.button(key="time_try_2").click().run()
    data = machine(at)
    tokens = [
        "".join(p for p, _ in chip["parts"]) for group in data["chips"]["groups"] for chip in group["chips"]
    ]
    assert data["selected"] == 0 and tokens[data["chips"]["selected"]] == "," and tokens[-1] == "·Lily"
    assert any(row.get("came") for row in data["bars"]["rows"][-1])
    name = tokens.index("·Lily")
    found = re.search(r"\(position (\d+)\): (\d+\.\d+)", data["head"]["said"][-1])
    assert found and int(found[1]) in (name, name + 1) and float(found[2]) > 0.5  # back at the first Lily
    assert "0.0" in data["head"]["said"][0]  # at first it looks nowhere in particular


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
@pytest.mark.parametrize("text", ["a", "😀 né", "Once upon a time. " * 80], ids=["one", "emoji", "long"])
def test_any_text(open_page: OpenPage, few_moments: None, model: str, text: str) -> None:
    data = machine(open_page("training", query={**VIEW, "model": model}, text=text))
    n = len(data["chips"]["values"][0])
    assert n <= 192 and len(data["head"]["names"]) <= time_data.DRAWN
    assert len(data["chips"]["colors"][0]) == n


def test_an_empty_text_is_told(open_page: OpenPage) -> None:
    at = open_page("training", query=VIEW, text="")
    assert not at.exception and "text is empty" in said(at)


def test_a_model_without_a_history_shows_its_one_moment(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tiny(tmp_path, "alone")
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path)
    at = open_page("training", query=VIEW, text="a fox")
    assert machine(at)["steps"] == [0] and "Only one moment" in said(at)


def test_a_damaged_moment_is_told_in_a_sentence(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tiny(tmp_path, "hurt")
    older = tmp_path / "history/hurt/checkpoints/0000000"
    shutil.copytree(tmp_path / "hurt", older)
    weights = older / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"oops")
    description = json.loads((older / "checkpoint.json").read_text())
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path)
    monkeypatch.setattr(time_data, "moments_of", lambda ref: tuple(model_refs.history(ref)))
    assert description["step"] == 0
    at = open_page("training", query=VIEW, text="a fox")
    assert not at.exception and "damaged" in said(at)


def test_the_curve_leads_to_the_time_machine_of_its_run(open_page: OpenPage, loupe_home: Path) -> None:
    folder, _ = run_with_checkpoints(loupe_home, replace(CONFIG, moments=4))
    at = open_page("training", query={"run": folder.name}, text="The fox", _owner_proposal="a" * 32)
    at.button(key="training_time_machine").click().run()
    assert machine(at)["steps"] == sorted({*moment_steps(9, 4), 5, 9})
    assert at.session_state["model"] == f"run:{folder.name}" and at.query_params["watch"] == "time-machine"


@pytest.mark.parametrize("view", ["time-machine", "one-step"])
def test_another_model_than_the_run_looked_at_is_named_with_a_way_to_the_run(
    open_page: OpenPage, loupe_home: Path, few_moments: None, view: str
) -> None:
    folder, _ = run_with_checkpoints(loupe_home, replace(CONFIG, moments=4))
    query = {"watch": view, "run": folder.name}
    at = open_page("training", query=query, text="The fox", _owner_proposal="a" * 32)
    assert "This is stories" in said(at)
    at.button(key="training_offer").click().run()
    assert not at.exception and at.session_state["model"] == f"run:{folder.name}"
    assert "This is stories" not in said(at)
    stranger = open_page("training", query=query, text="The fox", _owner_proposal="b" * 32)
    assert not stranger.exception and "This is stories" not in said(stranger)
