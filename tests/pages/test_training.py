"""The Training page without a browser: settings, refusals, histories, rights. Nothing is trained here."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from engine import corpus as texts
from engine import devices
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, own_text
from engine.devices import Device
from engine.plan import LEARNING_RATES, OPTIMIZER, make_tokenizer
from engine.run_queue import RunQueue
from engine.runs import RunSpec, RunStore
from tests.pages.conftest import ROOT, OpenPage, component
from tests.pages.made_runs import EVALS, MINE, STORY, YOURS, make_run, metrics, said, set_status
from ui import training_settings
from viz import format_number

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch, loupe_home: Path) -> Iterator[None]:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # every run waits in the queue
    yield
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def few_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "Long ago, a fox found a hat in the old barn.\n"
    monkeypatch.setattr(texts, "stories", lambda: Corpus("Stories", "stories", line * 200, line * 40))


def runs(home: Path) -> list[str]:
    return sorted(p.name for p in (home / "runs").glob("2*"))


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
    assert training_settings.head_choices(100, "learned") == [1, 2, 4, 5, 10]
    assert training_settings.head_choices(100, "rotary") == [1, 2, 5, 10]  # 100/4 = 25 is odd
    at = open_page("training")
    at.number_input(key="training_d_model").set_value(100).run()
    assert not at.exception and at.selectbox(key="training_n_head").options == ["1", "2", "5", "10"]
    assert at.session_state["training_n_head"] in (2, 5) and at.session_state["training_size"] == "custom"


def test_a_late_answer_of_a_browser_with_other_heads_is_no_error(open_page: OpenPage) -> None:
    """Streamlit hands on a choice that is no longer offered as a string."""
    at = open_page("training", training_d_model=100, training_n_head="8")
    assert not at.exception
    assert at.session_state["training_n_head"] in (5, 10)


def test_a_press_on_start_that_comes_with_heads_of_another_size_starts(
    open_page: OpenPage, loupe_home: Path
) -> None:
    """A browser may send another width and the press in one message."""
    at = open_page("training", training_text="pasted", training_paste=STORY * 20)
    at.number_input(key="training_d_model").set_value(100)  # the browser still shows 3 heads
    at.button(key="training_start").click().run()
    assert not at.exception and not at.error and len(runs(loupe_home)) == 1


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
    assert at.selectbox(key="training_optimizer").value == "muon"
    assert at.number_input(key="training_learning_rate").value == pytest.approx(0.01)
    at.selectbox(key="training_optimizer").set_value("adamw").run()
    assert at.number_input(key="training_learning_rate").value == pytest.approx(0.004)


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
        and shown["Above floor"] == "0.500"
    )
    curve = component(at, f"training_curve_{run_id}")
    assert [line["name"] for line in curve["series"]] == ["training, each step", "validation"]
    assert curve["series"][1]["x"] == [0, 10] and curve["series"][1]["y"] == [5.55, 2.0]
    assert [round(r["value"], 3) for r in curve["references"]] == [5.545, 1.5]  # ln 256, and the floor
    formulas = " ".join(e.value for e in at.latex)
    assert "e^{2.000} = 7.389" in formulas and r"\ln 256 = 5.545" in formulas


@pytest.mark.parametrize("loss", [0.466648, 2.3514, 6.2484, 0.004])
def test_the_perplexity_is_e_to_the_loss_that_stands_beside_it(
    open_page: OpenPage, loupe_home: Path, loss: float
) -> None:
    run_id = make_run(loupe_home, records=[*EVALS[:-1], {**EVALS[-1], "val_loss": loss}])
    shown = metrics(open_page("training", query={"run": run_id}, _owner_proposal=MINE))
    assert float(shown["Validation loss"]) == pytest.approx(loss, rel=2e-3)
    assert shown["Perplexity"] == format_number(math.exp(float(shown["Validation loss"])))


def test_r05_gaps_and_a_banner_where_the_loss_is_not_finite(open_page: OpenPage, loupe_home: Path) -> None:
    losses = [2.1, math.nan, 2.0, math.inf, 1.9]
    records = [{"kind": "step", "step": n + 1, "loss": loss, "seconds": n} for n, loss in enumerate(losses)]
    first = {
        "kind": "eval",
        "step": 0,
        "train_loss": 5.5,
        "val_loss": 5.6,
        "bits_per_byte": None,
        "seconds": 0,
    }
    records.insert(0, first)  # where it is measured every time; of a run without validation it is never there
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


def test_try_this_keeps_its_promise_after_odd_settings(open_page: OpenPage, loupe_home: Path) -> None:
    odd = {"training_learning_rate": 1000.0, "training_name": "odd", "training_objective": "mlm"}
    at = open_page("training", _owner_proposal=MINE, **odd)
    at.button(key="try_0").click().run()
    (run,) = runs(loupe_home)
    made = json.loads((loupe_home / "runs" / run / "run.json").read_text("utf-8"))
    assert made["train"]["learning_rate"] == LEARNING_RATES[OPTIMIZER] and made["model"]["objective"] == "clm"
    assert made["name"] == "Your text, small"


def test_the_share_for_checking_is_for_texts_without_a_checking_text(open_page: OpenPage) -> None:
    share = "training_val_share"
    assert open_page("training").number_input(key=share).disabled, "the stories have fresh ones to check with"
    assert not open_page("training", training_text="pasted").number_input(key=share).disabled


def test_a_run_computes_on_the_device_that_is_chosen(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("training", training_text="pasted", training_paste=STORY * 20)
    assert at.selectbox(key="training_device").options == ["automatic", "CPU"]  # a GPU isn't here
    gpu = Device("cuda:0", "Test GPU", 1)
    monkeypatch.setattr(devices, "devices", lambda: (Device("cpu"), gpu))
    at.run()
    assert at.selectbox(key="training_device").options == ["automatic", "CPU", "GPU · Test GPU"]
    at.selectbox(key="training_device").set_value("cpu").run()
    at.button(key="training_start").click().run()
    (run_id,) = runs(loupe_home)
    assert not at.exception
    assert json.loads((loupe_home / "runs" / run_id / "run.json").read_text("utf-8"))["device"] == "cpu"
