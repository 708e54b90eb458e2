"""The live view of a run without a browser: lines, quantities, buttons, bar. Nothing is trained here."""

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import reading
from engine.config import ModelConfig, TrainConfig
from engine.run_queue import RunQueue
from engine.runs import RunInfo, RunStore
from tests.pages.conftest import OpenPage, component
from tests.pages.made_runs import EVALS, MINE, make_run, said, set_status
from ui import run_curve, run_player
from ui.cells import table_csv

AGAIN = run_curve.again  # what `open_page` puts something else in place of


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch, loupe_home: Path) -> Iterator[None]:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # every run waits in the queue
    yield
    st.cache_resource.clear()


BASELINE = {
    "kind": "baseline", "step": 0, "uniform": math.log(256), "unigram": 3.0, "bigram": 2.2, "trigram": 1.9,
    "bits_per_byte": {"uniform": 8.0, "unigram": 4.3, "bigram": 3.2, "trigram": 2.7},
}  # fmt: skip
LIVE = [
    EVALS[0], BASELINE, {"kind": "floor", "step": 0, "value": 1.5, "bits_per_byte": 2.2},
    *({"kind": "step", "step": n, "loss": 5.5 - n / 4, "grad_norm": 2.0 / n, "learning_rate": n * 1e-4,
       "tokens_per_second": 1000.0 + n, "seconds": n / 10} for n in range(1, 11)),
    EVALS[2],
]  # fmt: skip


def live(
    open_page: OpenPage, home: Path, *, state: str = "stopped", objective: str = "clm", **more: Any
) -> tuple:
    """The page with a run of these records, and the data of its curve."""
    records = more.pop("records", LIVE)
    run_id = make_run(home, records=records, objective=objective)
    set_status(home, run_id, state=state, step=10, **more)
    at = open_page("training", query={"run": run_id}, _owner_proposal=MINE)
    assert not at.exception
    return at, run_id


def curve(at: AppTest, run_id: str) -> Any:
    return component(at, f"training_curve_{run_id}")


def lines(data: Any) -> dict[str, float]:
    return {r["label"].split(":")[0]: round(r["value"], 3) for r in data["references"]}


def test_the_lines_of_guessing_counting_and_the_floor(open_page: OpenPage, loupe_home: Path) -> None:
    at, run_id = live(open_page, loupe_home)
    data = curve(at, run_id)
    # ln V is what guessing uniformly costs: one line, though it is recorded as a baseline too
    assert lines(data) == {
        "ln V": 5.545, "unigram": 3.0, "bigram": 2.2, "trigram": 1.9, "the floor": 1.5,
    }  # fmt: skip
    assert data["perplexity"] == "perplexity" and data["marks"] == [0, 10]
    assert "Between bigram and trigram: it knows more than counts of pairs" in said(at)
    assert "0.50 nats above the floor." in said(at)
    at.segmented_control(key="training_quantity").set_value("bits_per_byte").run()
    data = curve(at, run_id)
    assert lines(data) == {
        "guessing uniformly": 8.0, "unigram": 4.3, "bigram": 3.2, "trigram": 2.7, "the floor": 2.2,
    }  # fmt: skip
    assert data["perplexity"] == "" and data["series"][0]["y"] == [8.007, 2.885]


def test_a_control_draws_the_parts_that_show_the_run_and_nothing_else(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_curve, "again", AGAIN)
    at, run_id = live(open_page, loupe_home)
    whole = curve(at, run_id)["yTitle"]
    at.segmented_control(key="training_quantity").set_value("grad_norm").run()
    assert not at.exception
    assert curve(at, run_id)["yTitle"] != whole and at.metric, "the curve and its numbers"
    assert any("worked out" in one.value for one in at.subheader), "and what stands below"
    assert not at.segmented_control and not at.title


def test_every_quantity_is_drawn_and_the_choice_outlives_a_page_change(
    open_page: OpenPage, loupe_home: Path
) -> None:
    at, run_id = live(open_page, loupe_home)
    wanted = {"grad_norm": 0.2, "learning_rate": 1e-3, "tokens_per_second": 1010.0}
    for name, last in wanted.items():
        at.segmented_control(key="training_quantity").set_value(name).run()
        data = curve(at, run_id)
        assert data["series"][0]["y"][-1] == pytest.approx(last) and data["perplexity"] == ""
    assert lines(data) == {}
    at.toggle(key="training_log_x").set_value(True).run()
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/training.py").run()
    data = curve(at, run_id)
    assert data["yTitle"] == "tokens a second" and data["logX"] and not data["logY"]


def test_smoothing_keeps_what_was_measured_behind_it(open_page: OpenPage, loupe_home: Path) -> None:
    at, run_id = live(open_page, loupe_home)
    at.select_slider(key="training_smoothing").set_value(1).run()
    raw, smoothed, validation = curve(at, run_id)["series"]
    assert raw["name"] == "training, each step" and raw["alpha"] < 1 == smoothed["alpha"]
    assert smoothed["y"][:2] == pytest.approx([5.25, (5.25 + 2 * 5.0) / 3]) and raw["y"][1] == 5.0
    assert validation["y"] == [5.55, 2.0]  # measured on the same rows each time: nothing to smooth


def test_a_masked_run_has_no_bits_per_byte_and_says_why(open_page: OpenPage, loupe_home: Path) -> None:
    counts = {k: v for k, v in BASELINE.items() if k in ("kind", "step", "uniform", "unigram")}
    records = [{**r, "bits_per_byte": None} for r in EVALS] + [{**counts, "bits_per_byte": None}]
    at, run_id = live(open_page, loupe_home, objective="mlm", records=records)
    assert lines(curve(at, run_id)) == {"ln V": 5.549, "unigram": 3.0}  # ln 257: the mask is a token too
    assert "Better than the unigram baseline: it uses more than how frequent each token is." in said(at)
    at.segmented_control(key="training_quantity").set_value("bits_per_byte").run()
    assert not at.exception and "A masked model has no bits per byte" in said(at)


@pytest.mark.parametrize(
    ("state", "pressable", "why"),
    [
        ("queued", {"stop"}, "It is queued."),
        ("stopped", {"resume", "one_step", "extend"}, "It has ended already."),
        ("finished", {"extend"}, "All its steps are done. Add more."),
        ("failed", {"resume", "one_step", "extend"}, "It has ended already."),
    ],
)
def test_the_buttons_of_each_state(
    open_page: OpenPage, loupe_home: Path, state: str, pressable: set[str], why: str
) -> None:
    at, _ = live(open_page, loupe_home, state=state, message="It failed." if state == "failed" else "")
    found = {key: at.button(key=f"training_{key}") for key in ("one_step", "stop", "extend")}
    play = "pause" if state == "queued" else "resume"
    found[play] = at.button(key=f"training_{play}")
    assert {key for key, button in found.items() if not button.disabled} == pressable
    assert why in {button.help for button in found.values() if button.disabled}
    assert all(button.help for button in found.values() if button.disabled), "each says why"


def info_in(state: str, **more: Any) -> RunInfo:
    config = ModelConfig(256, 16, 1, 1, 8)
    facts = {
        "id": "x",
        "name": "x",
        "state": state,
        "step": 10,
        "steps": 20,
        "message": "",
        "queue_place": None,
    }
    facts |= {
        "model": config,
        "train": TrainConfig(steps=20),
        "corpus": {},
        "tokenizer": "bytes",
        "created": 0.0,
    }
    facts |= {"updated": 0.0, "owner_hash": "", "device": "cpu", "tokens_per_second": None, "eta_s": None}
    return RunInfo(**{**facts, "has_checkpoint": True, "folder": Path(), **more})


def test_running_and_paused_differ_in_what_can_be_pressed() -> None:
    """Their processes are real, so the page can't be shown one here."""
    running = {a.label: a.unless for a in run_player.actions(info_in("running"))}
    assert running == {
        "Pause": "", "One step": "Pause it first.", "Stop": "",
        "100 more steps": "When it has ended or is paused.",
    }  # fmt: skip
    assert [a.unless for a in run_player.actions(info_in("paused"))] == [""] * 4
    diverged = run_player.actions(info_in("failed", diverged=True))
    assert all("lower learning rate" in a.unless for a in diverged if a.label != "Stop")
    long = run_player.actions(info_in("paused", train=TrainConfig(steps=30_000)))
    assert long[-1].label == "15,000 more steps", "as the step beside it is written"
    assert (
        "Play" in run_player.standing(info_in("paused"), 2)
        and run_player.standing(info_in("running"), 2) == ""
    )


def test_pressing_the_curve_works_out_the_numbers_there(open_page: OpenPage, loupe_home: Path) -> None:
    at, run_id = live(open_page, loupe_home)
    assert curve(at, run_id)["cursor"] is None and curve(at, run_id)["presses"]
    at.session_state["_training_chosen"] = {run_id: 0}  # what a press at step 0 leaves
    at.run()
    assert curve(at, run_id)["cursor"] == 0
    assert "At step 0, as pressed on the curve." in said(at)
    assert any("e^{5.550} = 257.2" in e.value for e in at.latex)
    at.button(key="training_newest").click().run()
    assert curve(at, run_id)["cursor"] is None and "At step 10 a token" in said(at)


def test_the_bar_says_how_far_how_fast_and_what_it_took(open_page: OpenPage, loupe_home: Path) -> None:
    at, _ = live(open_page, loupe_home, tokens_per_second=1234.5, joules=7200.0)
    (bar,) = at.get("progress")
    assert bar.proto.value == 50
    assert "step 10 of 20 · 5 s of training · 1,234 tokens a second · 2.00 Wh" in bar.proto.text
    assert "whatever else ran there" in said(at)
    at, _ = live(open_page, loupe_home)
    assert "Wh" not in at.get("progress")[0].proto.text and "energy" not in said(at)


def test_the_numbers_can_be_taken_away(open_page: OpenPage, loupe_home: Path) -> None:
    at, run_id = live(open_page, loupe_home)
    (button,) = [b for b in at.get("download_button") if b.proto.label == "Numbers (CSV)"]
    assert button.proto.id
    text = table_csv(pd.DataFrame(reading.table(RunStore(loupe_home).history(run_id))))
    table = pd.read_csv(io.StringIO(text))
    assert list(table["step"]) == list(range(11)), "every step once, none thinned out"
    assert list(table.columns[:4]) == ["step", "loss", "train_loss", "val_loss"]
    assert math.isnan(table["loss"][0]) and (table["loss"][10], table["val_loss"][10]) == (3.0, 2.0)
    assert table["grad_norm"][4] == 0.5 and table["bits_per_byte"][10] == 2.885


def test_validation_below_training_is_explained_where_rows_begin_mid_story(
    open_page: OpenPage, loupe_home: Path
) -> None:
    assert LIVE[-1]["train_loss"] == 2.5 > LIVE[-1]["val_loss"] == 2.0
    at, run_id = live(open_page, loupe_home)
    assert "Why training lies above" not in said(at), "a text without stories: other rows are no reason"
    path = loupe_home / "runs" / run_id / "run.json"
    settings = json.loads(path.read_text("utf-8"))
    settings["train"]["aligned_share"] = 0.25
    path.write_text(json.dumps(settings), "utf-8")
    at.run()
    assert "Why training lies above validation: 75% of its rows begin anywhere" in said(at)


def test_a_sign_without_a_shape_is_spelled_out(open_page: OpenPage, loupe_home: Path) -> None:
    sample = {"kind": "sample", "step": 10, "prompt": "A", "text": " fox\x14\x7f\tand\na hat"}
    at, _ = live(open_page, loupe_home, records=[*LIVE, sample])
    assert at.text[0].value == "A fox\\x14\\x7f\tand⏎\na hat"


def test_the_list_gives_no_step_that_goes_stale(open_page: OpenPage, loupe_home: Path) -> None:
    at, _ = live(open_page, loupe_home, state="queued")
    (row,) = [m.value for m in at.markdown if ":small[" in m.value]
    assert "20 steps" in row and "step 10" not in row and "best" not in row
    at, _ = live(open_page, loupe_home, state="stopped")
    assert any("step 10 of 20" in m.value for m in at.markdown if ":small[" in m.value)


def test_the_list_gives_the_bits_of_the_best_loss(open_page: OpenPage, loupe_home: Path) -> None:
    worse = {**EVALS[2], "step": 15, "val_loss": 4.0, "bits_per_byte": 5.7708}
    at, _ = live(open_page, loupe_home, records=[*LIVE, worse])
    (row,) = [m.value for m in at.markdown if ":small[" in m.value]
    assert "best validation loss 2.00 · 2.89 bits per byte" in row  # both of step 10, 2.0 / ln 2 = 2.885
