"""The Training page without a browser: settings, refusals, histories, rights. Nothing is trained here."""

import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import corpus as texts
from engine import reading
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, own_text
from engine.plan import make_tokenizer
from engine.run_queue import RunQueue
from engine.runs import RunInfo, RunSpec, RunStore
from engine.tokenizers import byte_tokenizer
from tests.pages.conftest import ROOT, OpenPage, component
from ui import run_player, training_form
from ui.cells import table_csv

MINE, YOURS = "a" * 32, "b" * 32
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
STORY = "Once upon a time there was a fox. The fox had a hat and the hat had a hole. "


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch, loupe_home: Path) -> Iterator[None]:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # every run waits in the queue
    yield
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def few_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "Long ago, a fox found a hat in the old barn.\n"
    monkeypatch.setattr(texts, "stories", lambda: Corpus("Stories", "stories", line * 200, line * 40))


def make_run(
    home: Path, owner: str = MINE, *, name: str = "a run", objective: str = "clm", records: list | None = None
) -> str:
    tokenizer = byte_tokenizer()
    config = ModelConfig(tokenizer.model_vocab_size(objective), 16, 1, 1, 8, objective=objective)
    spec = RunSpec(name, own_text(STORY * 4, name=name), tokenizer, config, TrainConfig(steps=20))
    run_id = RunStore(home).create(spec, owner)
    folder = home / "runs" / run_id
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records or []), "utf-8")
    return run_id


def set_status(home: Path, run_id: str, **changes: object) -> None:
    path = home / "runs" / run_id / "status.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def said(at: AppTest) -> str:
    """All that the page says."""
    kinds = ("title", "markdown", "caption", "text", "error", "warning", "info", "metric")
    return "\n".join(str(e.value) for kind in kinds for e in at.get(kind))


def metrics(at: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in at.metric}


def runs(home: Path) -> list[str]:
    return sorted(p.name for p in (home / "runs").glob("2*"))


EVALS = [
    {"kind": "eval", "step": 0, "train_loss": 5.6, "val_loss": 5.55, "bits_per_byte": 8.007, "seconds": 0.0},
    {"kind": "step", "step": 1, "loss": 5.5, "seconds": 0.5},
    {"kind": "eval", "step": 10, "train_loss": 2.5, "val_loss": 2.0, "bits_per_byte": 2.885, "seconds": 5.0},
]


# ---- before a run


def test_it_opens_without_runs_and_offers_one_obvious_start(open_page: OpenPage) -> None:
    at = open_page("training")
    assert not at.exception
    assert [b.label for b in at.button if b.proto.type == "primary"] == ["Start training"]
    assert "No run yet" in said(at)
    curve = component(at, "training_curve")
    shipped = json.loads((ROOT / "pretrained/stories-clm/checkpoint.json").read_text("utf-8"))
    start, floor = curve["references"]
    assert start["label"] == "ln V: guessing uniformly" and "floor" in floor["label"]
    assert start["value"] == pytest.approx(math.log(shipped["model"]["vocab_size"]))
    (line,) = curve["series"]
    assert line["x"][-1] == shipped["step"] and line["y"][-1] > floor["value"]  # its curve, above the floor


def test_start_makes_the_run_that_the_settings_describe_and_pressing_twice_makes_one(
    open_page: OpenPage, loupe_home: Path
) -> None:
    at = open_page("training", training_text="pasted", training_paste=STORY * 20, training_steps=123)
    at.button(key="training_start").click().run()
    at.button(key="training_start").click().run()
    assert not at.exception and not at.error
    (run_id,) = runs(loupe_home)
    assert at.query_params["run"] == run_id
    settings = json.loads((loupe_home / "runs" / run_id / "run.json").read_text("utf-8"))
    assert settings["train"]["steps"] == 123 and settings["corpus"]["kind"] == "pasted"
    assert (loupe_home / "runs" / run_id / "corpus.txt").read_text("utf-8") == STORY * 20
    waits = f"this machine trains {RunStore(loupe_home).slots} runs at a time. It is number 1 in the queue."
    assert waits in said(at)
    assert at.button(key="training_pause").disabled and not at.button(key="training_stop").disabled


def test_the_statistics_are_said_before_training(open_page: OpenPage) -> None:
    at = open_page(
        "training", training_text="pasted", training_paste="ab cd\n" * 100, training_tokenizer="bytes"
    )
    words = said(at)
    assert "600 characters (6 different), 200 words" in words  # a b c d, space, newline
    assert "600 to learn from (9 rows of 64)" in words
    assert "none to check with" in words  # a tenth are 60 tokens, less than one row of 65
    assert "No validation" in words


def test_asked_for_more_ids_than_the_text_gives(open_page: OpenPage) -> None:
    at = open_page(
        "training", training_text="pasted", training_paste="the cat sat on the mat", training_vocab_size=1000
    )
    assert "asked 1,000, got 268" in said(at)


@pytest.mark.parametrize("text", ["", "   ", " \n\t\n "])
def test_a_blank_text_is_refused_in_words(open_page: OpenPage, loupe_home: Path, text: str) -> None:
    at = open_page("training", training_text="pasted", training_paste=text)
    assert "blank" in at.warning[0].value
    at.button(key="training_start").click().run()
    assert not at.exception and "blank" in at.error[0].value and runs(loupe_home) == []


def test_a_short_text_is_refused_with_the_numbers_and_a_way_out(
    open_page: OpenPage, loupe_home: Path
) -> None:
    at = open_page(
        "training", training_text="pasted", training_paste="a" * 40, training_tokenizer="characters"
    )
    assert "40 tokens" in at.warning[0].value and "65" in at.warning[0].value
    at.button(key="training_start").click().run()
    assert "40 tokens" in at.error[0].value and runs(loupe_home) == []
    at.button(key="training_shorter").click().run()
    assert at.session_state["training_context_length"] == 39 and not at.warning
    assert at.session_state["training_size"] == "custom"


def test_one_symbol_with_characters_can_be_trained_and_with_bpe_is_too_short(
    open_page: OpenPage, loupe_home: Path
) -> None:
    at = open_page(
        "training", training_text="pasted", training_paste="a" * 1000, training_tokenizer="characters"
    )
    at.button(key="training_start").click().run()
    assert not at.exception and not at.error and len(runs(loupe_home)) == 1
    at = open_page("training", training_text="pasted", training_paste="a" * 1000, training_vocab_size=300)
    assert "one training row needs 65" in at.warning[0].value.replace("\\", "")


def test_a_run_with_one_symbol_says_that_there_is_nothing_to_learn(
    open_page: OpenPage, loupe_home: Path
) -> None:
    spec = RunSpec(
        "one", own_text("a" * 200), make_tokenizer("characters", own_text("a")),
        ModelConfig(1, 16, 1, 1, 8), TrainConfig(steps=5),
    )  # fmt: skip
    run_id = RunStore(loupe_home).create(spec, MINE)
    records = [
        {"kind": "eval", "step": n, "train_loss": 0.0, "val_loss": 0.0, "bits_per_byte": 0.0, "seconds": 1.0}
        for n in (0, 5)
    ]
    (loupe_home / "runs" / run_id / "metrics.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in records)
    )
    at = open_page("training", query={"run": run_id}, _owner_proposal=MINE)
    assert not at.exception and "nothing to learn" in said(at)
    assert metrics(at)["Validation loss"] == "0" and metrics(at)["Perplexity"] == "1.00"


@pytest.mark.parametrize("text", ["😀👍🏽" * 50, "שלום עולם " * 30, "a\r\nb" * 60, "\x00\x01" * 60])
def test_any_characters_are_taken(open_page: OpenPage, loupe_home: Path, text: str) -> None:
    at = open_page("training", training_text="pasted", training_paste=text, training_tokenizer="bytes")
    at.button(key="training_start").click().run()
    assert not at.exception and not at.error
    assert (loupe_home / "runs" / runs(loupe_home)[0] / "corpus.txt").read_bytes() == text.encode()


def test_special_token_spellings_in_a_text_are_plain_text(open_page: OpenPage, loupe_home: Path) -> None:
    at = open_page("training", training_text="pasted", training_paste="hi <|endoftext|> " * 60)
    at.button(key="training_start").click().run()
    assert not at.exception and not at.error and len(runs(loupe_home)) == 1


def test_only_numbers_of_heads_that_divide_the_width_are_offered(open_page: OpenPage) -> None:
    assert training_form.head_choices(100, "learned") == [1, 2, 4, 5, 10]
    assert training_form.head_choices(100, "rotary") == [1, 2, 5, 10]  # 100/4 = 25 is odd
    at = open_page("training")
    at.number_input(key="training_d_model").set_value(100).run()
    assert not at.exception and at.selectbox(key="training_n_head").options == ["1", "2", "5", "10"]
    assert at.session_state["training_n_head"] in (2, 5) and at.session_state["training_size"] == "custom"


def test_a_late_answer_of_a_browser_with_other_heads_is_no_error(open_page: OpenPage) -> None:
    """Streamlit hands on a choice that is no longer offered as a string."""
    at = open_page("training", training_d_model=100, training_n_head="8")
    assert not at.exception
    assert at.session_state["training_n_head"] in (5, 10)


def test_an_odd_width_is_explained(open_page: OpenPage) -> None:
    at = open_page("training")
    at.number_input(key="training_d_model").set_value(99).run()
    assert not at.exception and "even" in at.warning[0].value


def test_a_size_sets_the_shape_and_survives_a_page_change(open_page: OpenPage) -> None:
    at = open_page("training")
    at.selectbox(key="training_size").set_value("medium").run()
    assert (at.session_state["training_n_layer"], at.session_state["training_d_model"]) == (4, 128)
    at.number_input(key="training_steps").set_value(77).run()
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/training.py").run()
    assert at.selectbox(key="training_size").value == "medium"
    assert at.number_input(key="training_steps").value == 77


def test_the_optimizer_brings_its_learning_rate(open_page: OpenPage) -> None:
    at = open_page("training")
    at.selectbox(key="training_optimizer").set_value("muon").run()
    assert at.number_input(key="training_learning_rate").value == pytest.approx(0.02)


# ---- uploads


def test_an_upload_in_another_encoding_asks_for_it(open_page: OpenPage, loupe_home: Path) -> None:
    at = open_page(
        "training", training_text="uploaded", training_tokenizer="bytes", training_context_length=8
    )
    at.file_uploader(key="training_file").upload("menu.txt", b"caf\xe9 " * 40, "text/plain").run()
    assert not at.exception and "byte 3" in at.warning[0].value.replace("\\", "")
    at.selectbox(key="training_encoding").set_value("cp1252").run()
    assert "200 characters" in said(at)
    at.button(key="training_start").click().run()
    assert (loupe_home / "runs" / runs(loupe_home)[0] / "corpus.txt").read_text("utf-8") == "café " * 40
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/training.py").run()
    assert "menu" in said(at), "the file is kept on a page change"


def test_a_byte_order_mark_is_not_part_of_the_text(open_page: OpenPage, loupe_home: Path) -> None:
    at = open_page(
        "training", training_text="uploaded", training_tokenizer="bytes", training_context_length=8
    )
    at.file_uploader(key="training_file").upload("bom.txt", b"\xef\xbb\xbf" + b"hi " * 40, "text/plain").run()
    at.button(key="training_start").click().run()
    assert (loupe_home / "runs" / runs(loupe_home)[0] / "corpus.txt").read_bytes() == b"hi " * 40


def test_a_picture_renamed_txt_is_refused(open_page: OpenPage, loupe_home: Path) -> None:
    at = open_page("training", training_text="uploaded")
    at.file_uploader(key="training_file").upload(
        "cat.txt", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 9, "text/plain"
    ).run()
    assert not at.exception and "not text" in at.warning[0].value
    at.button(key="training_start").click().run()
    assert "not text" in at.error[0].value and runs(loupe_home) == []


def test_no_file_yet(open_page: OpenPage) -> None:
    at = open_page("training", training_text="uploaded")
    assert not at.exception and "no file yet" in at.warning[0].value


# ---- a run and its history


def test_the_numbers_of_a_run(open_page: OpenPage, loupe_home: Path) -> None:
    floor = {"kind": "floor", "step": 5, "value": 1.5, "bits_per_byte": None}
    run_id = make_run(loupe_home, records=[*EVALS, floor])
    at = open_page("training", query={"run": run_id}, _owner_proposal=MINE)
    assert not at.exception
    shown = metrics(at)
    assert (
        shown["Validation loss"] == "2.00"
        and shown["Perplexity"] == "7.39"
        and shown["Above the floor"] == "0.500"
    )
    curve = component(at, f"training_curve_{run_id}")
    assert [line["name"] for line in curve["series"]] == ["training, each step", "validation"]
    assert curve["series"][1]["x"] == [0, 10] and curve["series"][1]["y"] == [5.55, 2.0]
    assert [round(r["value"], 3) for r in curve["references"]] == [5.545, 1.5]  # ln 256, and the floor
    formulas = " ".join(e.value for e in at.latex)
    assert "e^{2.000} = 7.389" in formulas and r"\ln 256 = 5.545" in formulas


def test_r05_gaps_and_a_banner_where_the_loss_is_not_finite(open_page: OpenPage, loupe_home: Path) -> None:
    losses = [2.1, math.nan, 2.0, math.inf, 1.9]
    records = [{"kind": "step", "step": n + 1, "loss": loss, "seconds": n} for n, loss in enumerate(losses)]
    records.append(
        {
            "kind": "eval",
            "step": 5,
            "train_loss": math.nan,
            "val_loss": math.nan,
            "bits_per_byte": None,
            "seconds": 5,
        }
    )
    run_id = make_run(loupe_home, records=records)
    at = open_page("training", query={"run": run_id}, _owner_proposal=MINE)
    assert not at.exception
    line = component(at, f"training_curve_{run_id}")["series"][0]
    assert line["x"] == [1, 2, 3, 4, 5] and [y is None for y in line["y"]] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert "step 2, 4" in at.error[0].value
    assert metrics(at)["Validation loss"] == "not finite"


def test_a_failed_run_says_why(open_page: OpenPage, loupe_home: Path) -> None:
    run_id = make_run(loupe_home, records=EVALS)
    message = "Step 12 failed: the loss is not a finite number. Try a learning rate below 1000 *now*"
    set_status(loupe_home, run_id, state="failed", message=message)
    at = open_page("training", query={"run": run_id}, _owner_proposal=MINE)
    assert "Step 12 failed" in at.error[0].value and "\\*now\\*" in at.error[0].value
    assert at.button(key="training_resume")


def test_masked_numbers_have_another_name(open_page: OpenPage, loupe_home: Path) -> None:
    sample = {"kind": "sample", "step": 10, "masked": "a [MASK] b", "text": "a x b", "truth": "a y b"}
    records = [{**r, "bits_per_byte": None} for r in EVALS] + [sample]
    run_id = make_run(loupe_home, objective="mlm", records=records)
    at = open_page("training", query={"run": run_id}, _owner_proposal=MINE)
    assert not at.exception
    assert (
        "Masked loss" in metrics(at)
        and "Validation loss" not in metrics(at)
        and "Perplexity" not in metrics(at)
    )
    curve = component(at, f"training_curve_{run_id}")
    assert (
        curve["yTitle"].startswith("masked-token loss") and curve["perplexity"] == "masked-token perplexity"
    )
    assert "a [MASK] b" in said(at) and "a y b" in said(at)


def test_only_like_runs_are_offered_for_comparison(open_page: OpenPage, loupe_home: Path) -> None:
    run_id = make_run(loupe_home, records=EVALS)
    twin = make_run(loupe_home, records=EVALS)
    masked = make_run(loupe_home, objective="mlm", records=EVALS)
    for each in (twin, masked):
        set_status(loupe_home, each, step=10)
    at = open_page("training", query={"run": run_id}, _owner_proposal=MINE)
    assert len(at.selectbox(key="training_compare").options) == 1
    at.selectbox(key="training_compare").set_value(twin).run()
    assert len(component(at, f"training_curve_{run_id}")["series"]) == 3


def test_somebody_elses_run_can_be_watched_but_not_touched(open_page: OpenPage, loupe_home: Path) -> None:
    run_id = make_run(loupe_home, YOURS, name="yours", records=EVALS)
    at = open_page("training", query={"run": run_id}, _owner_proposal=MINE)
    assert not at.exception and metrics(at)["Validation loss"] == "2.00"
    assert "watch only" in said(at)
    keys = {b.key for b in at.button if b.key}
    assert not keys & {"training_stop", "training_resume", "training_extend", "training_use"}
    assert not any(key.endswith(run_id) for key in keys), "it isn't in the list of my runs"
    with pytest.raises(PermissionError):
        RunStore(loupe_home).stop(run_id, MINE)


def test_a_link_to_a_deleted_run_is_explained(open_page: OpenPage) -> None:
    for gone in ("20200101-000000-abcdef", "../../etc/passwd", "<b>x</b>"):
        at = open_page("training", query={"run": gone})
        assert not at.exception and at.error and "No run yet" in said(at)
        assert "run" not in at.query_params


def test_my_runs_can_be_shown_used_and_deleted(open_page: OpenPage, loupe_home: Path) -> None:
    old, new = (
        make_run(loupe_home, name="old", records=EVALS),
        make_run(loupe_home, name="new", records=EVALS),
    )
    at = open_page("training", _owner_proposal=MINE)
    assert {b.key for b in at.button} >= {f"training_delete_yes_{old}", f"training_delete_yes_{new}"}
    other = old if at.query_params["run"] == new else new
    at.button(key=f"training_show_{other}").click().run()
    assert at.query_params["run"] == other
    at.button(key=f"training_delete_yes_{other}").click().run()
    assert not at.exception and not at.error and runs(loupe_home) == [new if other == old else old]
    assert at.query_params["run"] == runs(loupe_home)[0]


def test_u12_markup_is_shown_as_it_is(open_page: OpenPage, loupe_home: Path) -> None:
    sample = {"kind": "sample", "step": 10, "prompt": MARKUP, "text": MARKUP}
    run_id = make_run(loupe_home, name=MARKUP, records=[*EVALS, sample])
    at = open_page(
        "training",
        query={"run": run_id},
        _owner_proposal=MINE,
        training_text="pasted",
        training_paste=MARKUP * 9,
    )
    assert not at.exception
    for element in (*at.markdown, *at.caption, *at.info, *at.warning, *at.error):
        assert not re.search(r"(?<!\\)<(img|b)", element.value)
        assert "$x$" not in element.value and ":smile:" not in element.value
    assert any(MARKUP in element.value for element in at.text)


def test_try_this_starts_a_run_of_its_own(open_page: OpenPage, loupe_home: Path) -> None:
    at = open_page("training", _owner_proposal=MINE)
    at.button(key="try_0").click().run()
    assert not at.exception and not at.error and at.toast
    settings = [
        json.loads((loupe_home / "runs" / r / "run.json").read_text("utf-8")) for r in runs(loupe_home)
    ]
    assert [(s["train"]["steps"], s["corpus"]["kind"]) for s in settings] == [(200, "pasted")]
    at.button(key="try_1").click().run()
    kinds = {
        json.loads((loupe_home / "runs" / r / "run.json").read_text("utf-8"))["model"]["objective"]
        for r in runs(loupe_home)
    }
    assert kinds == {"clm", "mlm"}


# ---- the live view

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
    assert "Better than the unigram baseline: it uses the tokens around a gap." in said(at)
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
    assert "other programs included" in said(at)
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
