"""The view Runs of the Training page: choice, axes, differences, seeds, files. Nothing is trained here."""

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import corpus as texts
from engine import retention
from engine.corpus import Corpus, own_text
from engine.processes import process_mark
from engine.run_queue import RunQueue
from engine.runs import RunStore
from engine.tokenizers import char_tokenizer
from tests.pages import made_runs
from tests.pages.conftest import OpenPage, plotly
from tests.pages.made_runs import MINE, STORY, YOURS, make_run, set_status
from ui import runs_choice, runs_files

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch, loupe_home: Path) -> Iterator[None]:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # every run waits in the queue
    line = "Long ago, a fox found a hat in the old barn.\n"
    monkeypatch.setattr(texts, "stories", lambda: Corpus("Stories", "stories", line * 200, line * 40))
    yield
    st.cache_resource.clear()


def evals(last: float, *, bits: bool = True, floor: float | None = None, steps: int = 20) -> list[dict]:
    """Records of a run whose validation loss goes straight from 5 to `last`; 3 nats are one bit per byte."""
    found: list[dict[str, Any]] = []
    for step in range(0, steps + 1, 5):
        loss = 5 + (last - 5) * step / steps
        now = {"step": step, "seconds": step / 2}
        scores = {"val_loss": loss, "bits_per_byte": loss / 3 if bits else None, "perplexity": math.exp(loss)}
        found.append({"kind": "eval", **now, "train_loss": loss, **scores})
        now = {"step": step + 1, "seconds": (step + 1) / 2}
        rest = {"learning_rate": 1e-3, "grad_norm": 1.0, "tokens": 256, "tokens_per_second": 512.0}
        found.append({"kind": "step", **now, "loss": loss, **rest})
    if floor:
        found.append({"kind": "floor", "step": 0, "value": floor, "bits_per_byte": floor / 3})
    return found


def make(
    home: Path,
    last: float | None = 2.0,
    *,
    name: str = "a run",
    owner: str = MINE,
    objective: str = "clm",
    text: str = STORY * 4,
    chars: bool = False,
    state: str = "finished",
    floor: float | None = None,
    **train: Any,
) -> str:
    run_id = make_run(
        home,
        owner,
        name=name,
        objective=objective,
        corpus=own_text(text, name="fox"),
        tokenizer=char_tokenizer(text) if chars else None,
        records=evals(last, bits=objective == "clm", floor=floor) if last else None,
        **train,
    )
    set_status(home, run_id, state=state, step=20 if last else 0, message="")
    return run_id


def open_runs(open_page: OpenPage, **query: str) -> AppTest:
    at = open_page("training", query={"watch": "runs", **query}, _owner_proposal=MINE)
    assert not at.exception
    return at


def said(at: AppTest) -> str:
    return made_runs.said(at).replace("\\", "")


def lines(at: AppTest, objective: str = "clm") -> list[dict[str, Any]]:
    return [t for t in plotly(at, f"runs_curves_{objective}")["data"] if t["name"] != "band"]


def numbers(value: Any) -> list[float]:
    """An array of a figure, whichever way it travels."""
    import base64

    import numpy as np

    if isinstance(value, dict):
        return np.frombuffer(base64.b64decode(value["bdata"]), np.dtype(value["dtype"])).tolist()
    return value


def table(at: AppTest, column: str) -> Any:
    """The table that has this column."""
    (found,) = [frame.value for frame in at.dataframe if column in frame.value.columns]
    return found


# ---- choosing


def test_all_runs_that_are_drawn_count_as_opened(open_page: OpenPage, loupe_home: Path) -> None:
    made = [make(loupe_home, 2.0 + i, name=f"run {i}") for i in range(2)]
    at = open_page("training", query={"watch": "runs"}, _owner_proposal=MINE)
    assert not at.exception and set(at.session_state["runs_chosen"]) == set(made)
    assert all((loupe_home / "runs" / run_id / retention.OPENED).exists() for run_id in made)


def test_without_runs_it_says_how_to_start(open_page: OpenPage) -> None:
    at = open_runs(open_page)
    assert "no run yet" in said(at)
    at.button(key="runs_go_train").click().run()
    assert not at.exception and at.session_state["watch"] == "train"


def test_the_newest_that_can_be_compared_are_chosen_at_first(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, objective="mlm", name="masked")
    make(loupe_home, text="Another text altogether. " * 20, name="other text")
    for rate in (1e-3, 2e-3, 3e-3, 4e-3, 5e-3):
        make(loupe_home, learning_rate=rate)
    make(loupe_home, None, state="queued", learning_rate=9e-3)
    at = open_runs(open_page)
    assert [t["name"][2:] for t in lines(at)] == ["rate 0.005", "rate 0.004", "rate 0.003", "rate 0.002"]
    assert len(at.multiselect(key="runs_chosen").options) == 8


def test_a_run_opened_by_a_link_stands_with_ones_own(open_page: OpenPage, loupe_home: Path) -> None:
    linked = make(loupe_home, 1.5, owner=YOURS, name="theirs")
    make(loupe_home, 2.0, name="mine", learning_rate=1e-3)
    make(loupe_home, 2.0, owner=YOURS, name="not linked")
    at = open_runs(open_page, run=linked)
    assert {t["name"][2:] for t in lines(at)} == {"mine", "theirs"}
    assert f"runs_repeat_{linked}" not in {b.key for b in at.button}
    assert "watch only" in said(at)
    assert at.query_params["run"] == linked


def test_a_choice_stays_when_the_page_changes(open_page: OpenPage, loupe_home: Path) -> None:
    first, second = make(loupe_home), make(loupe_home, learning_rate=1e-3)
    at = open_runs(open_page)
    at.multiselect(key="runs_chosen").set_value([first]).run()
    at.switch_page("pages/tokens.py").run()
    at.query_params["watch"] = "runs"
    at.switch_page("pages/training.py").run()
    assert at.multiselect(key="runs_chosen").value == [first] and second


def test_a_deleted_run_leaves_the_choice(open_page: OpenPage, loupe_home: Path) -> None:
    first, second = make(loupe_home), make(loupe_home, learning_rate=1e-3)
    at = open_runs(open_page)
    at.multiselect(key="runs_chosen").set_value([first, second]).run()
    RunStore(loupe_home).delete(first, MINE)
    at.run()
    assert not at.exception and at.multiselect(key="runs_chosen").value == [second]


# ---- one axis


def test_curves_are_those_of_the_records(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, 2.0, name="x", floor=1.5)
    at = open_runs(open_page)
    (line,) = lines(at)
    assert numbers(line["x"]) == [0, 5, 10, 15, 20]
    assert numbers(line["y"]) == pytest.approx([5, 4.25, 3.5, 2.75, 2])
    assert any("the floor" in a["text"] for a in plotly(at, "runs_curves_clm")["layout"]["annotations"])
    at.segmented_control(key="runs_axis").set_value("tokens").run()
    (line,) = lines(at)
    assert numbers(line["x"]) == [0, 5 * 256, 10 * 256, 15 * 256, 20 * 256]  # 16 rows of 16 tokens a step
    at.segmented_control(key="runs_axis").set_value("seconds").run()
    assert numbers(lines(at)[0]["x"]) == [0, 2.5, 5, 7.5, 10]
    at.segmented_control(key="runs_quantity").set_value("bits_per_byte").run()
    assert numbers(lines(at)[0]["y"])[-1] == pytest.approx(2 / 3)
    assert plotly(at, "runs_curves_clm")["layout"]["yaxis"]["title"]["text"] == "bits per byte"


def test_the_training_loss_is_smoothed_before_it_is_thinned(open_page: OpenPage, loupe_home: Path) -> None:
    run_id = make(loupe_home, None)
    records = [
        {"kind": "step", "step": n, "loss": 4.0 if n % 2 else 2.0, "seconds": n} for n in range(1, 5001)
    ]
    path = loupe_home / "runs" / run_id / "metrics.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in records), "utf-8")
    at = open_runs(open_page)
    at.segmented_control(key="runs_quantity").set_value("loss").run()
    y = numbers(lines(at)[0]["y"])
    assert len(y) <= 800 and y[-1] == pytest.approx(3.0, abs=0.1)  # thinned first, it would end near 2 or 4
    at.slider(key="runs_smooth").set_value(0).run()
    assert set(numbers(lines(at)[0]["y"])) == {2.0, 4.0}


def test_p10_causal_and_masked_runs_have_a_picture_each(open_page: OpenPage, loupe_home: Path) -> None:
    causal, masked = make(loupe_home, name="causal"), make(loupe_home, 3.0, objective="mlm", name="masked")
    at = open_runs(open_page)
    at.multiselect(key="runs_chosen").set_value([causal, masked]).run()
    assert not at.exception
    assert [t["name"] for t in lines(at)] == ["A causal"] and [t["name"] for t in lines(at, "mlm")] == [
        "B masked"
    ]
    titles = [plotly(at, f"runs_curves_{o}")["layout"]["yaxis"]["title"]["text"] for o in ("clm", "mlm")]
    assert titles == ["validation loss (nats per token)", "masked-token loss (nats)"]
    assert "never share an axis" in said(at)
    assert table(at, "best masked loss")["run"].tolist() == ["B masked"]
    assert table(at, "best loss")["run"].tolist() == ["A causal"]
    at.segmented_control(key="runs_quantity").set_value("bits_per_byte").run()
    assert not at.exception and "masked runs guess only the hidden ones" in said(at)


def test_another_vocabulary_is_moved_to_bits_per_byte(open_page: OpenPage, loupe_home: Path) -> None:
    runs = [make(loupe_home, 3.0, name="bytes"), make(loupe_home, 1.5, name="characters", chars=True)]
    at = open_runs(open_page)
    at.multiselect(key="runs_chosen").set_value(runs).run()
    assert plotly(at, "runs_curves_clm")["layout"]["yaxis"]["title"]["text"] == "bits per byte"
    assert [numbers(t["y"])[-1] for t in lines(at)] == pytest.approx([1.0, 0.5])
    assert "Shown in bits per byte: the vocabularies" in said(at)
    assert list(table(at, "best loss").columns)[:4] == ["run", "state", "bits per byte", "best loss"]


def test_runs_without_numbers_are_named(open_page: OpenPage, loupe_home: Path) -> None:
    done = make(loupe_home, name="done")
    make(loupe_home, None, name="waits", state="queued", seed=9)
    other = make(loupe_home, None, name="failed", state="failed", learning_rate=1.0)
    at = open_runs(open_page)
    at.multiselect(key="runs_chosen").set_value([done]).run()  # the other seed belongs to it
    assert [t["name"] for t in lines(at)] == ["A done"]
    at.multiselect(key="runs_chosen").set_value([done, other]).run()
    assert not at.exception and "No validation loss to draw: B failed" in said(at)


# ---- what differs


def test_only_what_differs_is_in_the_table(open_page: OpenPage, loupe_home: Path) -> None:
    runs = [make(loupe_home, learning_rate=1e-3), make(loupe_home, learning_rate=2e-3, weight_decay=0.0)]
    at = open_runs(open_page)
    at.multiselect(key="runs_chosen").set_value(runs).run()
    found = table(at, "setting")
    assert found["setting"].tolist() == ["learning rate", "weight decay"]
    a, b = (column for column in found.columns if column[:2] in ("A ", "B "))
    assert found[a].tolist() == ["0.001", "0.1"] and found[b].tolist() == ["0.002", "0"]
    assert "Alike in all" in said(at) and "steps 20" in said(at)


def test_the_results(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, 2.0, floor=1.5, name="x")
    row = table(open_runs(open_page), "best loss").iloc[0]
    assert (row["best loss"], row["bits per byte"], row["over floor"]) == pytest.approx((2.0, 2 / 3, 0.5))
    assert (row["at step"], row["tokens"], row["seconds"], row["state"]) == (20, 20 * 256, 10.5, "finished")


# ---- seeds


def test_seeds_are_one_line_with_a_band(open_page: OpenPage, loupe_home: Path) -> None:
    for seed, last in enumerate((2.0, 2.3, 2.6)):
        make(loupe_home, last, name="x", seed=seed)
    at = open_runs(open_page)
    band, line = plotly(at, "runs_curves_clm")["data"]
    assert band["name"] == "band" and len(at.multiselect(key="runs_chosen").options) == 1
    assert numbers(line["y"])[-1] == pytest.approx(2.3)
    assert max(v for v in band["y"][:5]) == pytest.approx(5) and min(
        v for v in band["y"] if v
    ) == pytest.approx(2)
    assert "3 seeds. Best loss 2.300 on average, 2.000 to 2.600, standard deviation 0.300 nats" in said(at)
    at.toggle(key="runs_bands").set_value(False).run()
    assert [t["name"] for t in plotly(at, "runs_curves_clm")["data"]] == ["A x"] * 3


def test_a_seed_that_has_just_begun_is_a_thin_line_beside_the_band(
    open_page: OpenPage, loupe_home: Path
) -> None:
    for seed in (0, 1):
        make(loupe_home, 2.0, name="x", seed=seed)
    run_id = make(loupe_home, 2.0, name="x", seed=2)
    path = loupe_home / "runs" / run_id / "metrics.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in evals(2.0)[:4]), "utf-8")
    faint, line = lines(open_runs(open_page))
    assert numbers(faint["x"]) == [0, 5] and numbers(line["x"]) == [0, 5, 10, 15, 20]
    assert "2 seeds" in line["customdata"][0]


def test_a_seed_that_goes_on_or_was_stopped_early_is_no_part_of_the_spread(
    open_page: OpenPage, loupe_home: Path
) -> None:
    for seed, last in enumerate((2.0, 2.4)):
        make(loupe_home, last, name="x", seed=seed)
    for seed, state in enumerate(("running", "stopped"), start=2):
        run_id = make(loupe_home, 4.5, name="x", seed=seed, state=state)
        path = loupe_home / "runs" / run_id / "status.json"
        at_work = {"pid": os.getpid(), "mark": process_mark(os.getpid())} if state == "running" else {}
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "step": 5, **at_work}), "utf-8")
    words = said(open_runs(open_page))
    assert "4 seeds, 3 ended. Best loss 2.200 on average, 2.000 to 2.400" in words


def test_a_difference_below_the_spread_is_said_to_be_chance(open_page: OpenPage, loupe_home: Path) -> None:
    for seed, last in enumerate((2.0, 2.3, 2.6)):
        make(loupe_home, last, name="x", seed=seed)
    close = make(loupe_home, 2.2, name="close", learning_rate=1e-3)
    far = make(loupe_home, 4.5, name="far", learning_rate=1.0)
    at = open_runs(open_page)
    seeds = next(i for i in at.session_state["runs_chosen"] if i not in (close, far))
    at.multiselect(key="runs_chosen").set_value([seeds, close]).run()
    # t(2) · 0.3 · sqrt(1/3 + 1) = 4.303 · 0.3 · 1.1547
    margin = 4.303 * 0.3 * math.sqrt(4 / 3)
    assert f"up to {margin:.2f} nats" in said(at) and "which may be chance" in said(at)
    assert f"{margin:.3g}" in at.latex[0].value
    at.multiselect(key="runs_chosen").set_value([seeds, far]).run()
    assert "more than the seed" in said(at)
    at.multiselect(key="runs_chosen").set_value([close, far]).run()
    assert "one seed each" in said(at) and not at.latex


def test_runs_of_two_vocabularies_are_compared_in_bits_per_byte_and_of_two_texts_not_at_all(
    open_page: OpenPage, loupe_home: Path
) -> None:
    for seed, last in enumerate((2.7, 3.0, 3.3)):
        make(loupe_home, last, name="bytes", seed=seed)
    chars = make(loupe_home, 1.5, name="characters", chars=True)
    other = make(loupe_home, 1.5, name="other", text="ab " * 200)
    at = open_runs(open_page)
    seeds = RunStore(loupe_home).list(MINE)
    first = next(i.id for i in sorted(seeds, key=lambda i: i.created) if i.name == "bytes")
    at.multiselect(key="runs_chosen").set_value([first, chars]).run()
    assert not at.exception
    # means 3.0 / 3 and 1.5 / 3 bits per byte; the losses would be 1.5 apart
    assert "ends 0.500 bits per byte lower" in said(at)
    at.multiselect(key="runs_chosen").set_value([first, other]).run()
    assert not at.exception and "These two can’t be compared" in said(at) and not at.latex


def test_four_more_seeds_are_four_more_runs(open_page: OpenPage, loupe_home: Path) -> None:
    run_id = make(loupe_home, name="x", seed=1)
    at = open_runs(open_page)
    at.button(key=f"runs_repeat_{run_id}").click().run()
    assert not at.exception and not at.error
    infos = RunStore(loupe_home).list(MINE)
    assert sorted(i.train.seed for i in infos) == [0, 1, 2, 3, 4]
    assert len({i.group for i in infos if i.id != run_id}) == 1
    assert "5 seeds, 1 ended" in said(at)
    at.button(key=f"runs_stop_{run_id}").click().run()
    assert {i.state for i in RunStore(loupe_home).list(MINE)} == {"finished", "stopped"}


# ---- files


def test_all_numbers_as_csv_are_safe_for_a_spreadsheet(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(loupe_home, 2.0, name="=1+1")
    made: list[str] = []
    monkeypatch.setattr(runs_files, "table_csv", lambda t: made.append(real(t)) or made[-1])
    open_runs(open_page)
    store = RunStore(loupe_home)
    info = store.list(MINE)[0]
    monkeypatch.setattr(runs_files.resources, "run_store", lambda: store)
    found = runs_files.records_table([runs_choice.RunSet((info,), {})])
    assert found["step"].tolist() == sorted(found["step"]) and found["val_loss"].iloc[-2] == 2.0
    text = real(found)
    assert '"\'=1+1"' in text and text.startswith('"run","id","seed","step"')


real = runs_files.table_csv


def test_rename_and_delete(open_page: OpenPage, loupe_home: Path) -> None:
    run_id, other = make(loupe_home, name="old", seed=0), make(loupe_home, name="old", seed=1)
    at = open_runs(open_page)
    at.text_input(key=f"runs_name_{run_id}").set_value(MARKUP).run()
    at.button(key="runs_rename").click().run()
    assert RunStore(loupe_home).info(run_id).name == MARKUP
    at.multiselect(key="runs_chosen").set_value([run_id]).run()
    at.button(key="runs_delete_yes").click().run()
    assert not at.exception and not at.error
    assert [i.id for i in RunStore(loupe_home).list(MINE)] == [other]
    assert at.multiselect(key="runs_chosen").value == [other]  # the rest of its set


def test_a_run_that_goes_on_can_be_taken_away_but_not_deleted(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, state="queued")
    at = open_runs(open_page)
    assert "runs_delete_yes" not in {b.key for b in at.button}
    assert "as its newest checkpoint has it" in said(at)
    assert not next(b for b in at.get("download_button") if "runs_export" in b.proto.id).proto.disabled


def test_a_run_goes_out_as_a_file_and_comes_back(open_page: OpenPage, loupe_home: Path) -> None:
    from engine import bundles

    run_id = make(loupe_home, 2.0, name="travels")
    data = bundles.export_run(RunStore(loupe_home), run_id)
    RunStore(loupe_home).delete(run_id, MINE)
    at = open_runs(open_page)
    at.file_uploader(key="runs_upload").upload("travels.zip", data, "application/zip").run()
    assert not at.exception and not at.error, said(at)
    (info,) = RunStore(loupe_home).list(MINE)
    assert info.name == "travels" and [t["name"] for t in lines(at)] == ["A travels"]
    assert [s.value for s in at.success] == ["travels is here now, in the picture above\\."]


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04" + b"\x00" * 50])
def test_a_file_that_is_no_run_is_refused_in_words(
    open_page: OpenPage, loupe_home: Path, data: bytes
) -> None:
    at = open_runs(open_page)
    at.file_uploader(key="runs_upload").upload("x.zip", data, "application/zip").run()
    assert not at.exception and RunStore(loupe_home).list(MINE) == []
    (sentence,) = at.error
    assert "no zip" in sentence.value
    order = [e.type for e in at.main if e.type in ("error", "file_uploader")]
    assert order == ["file_uploader", "error"], "said where it happened, not at the top of a long page"


# ---- anything


def test_u12_names_are_shown_as_they_are(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, name=MARKUP)
    make(loupe_home, name=MARKUP, objective="mlm")
    make(loupe_home, None, name=MARKUP, state="failed", learning_rate=1.0)
    at = open_runs(open_page)
    at.multiselect(key="runs_chosen").set_value([i.id for i in RunStore(loupe_home).list(MINE)]).run()
    assert not at.exception
    for element in (*at.markdown, *at.caption, *at.info, *at.warning, *at.error):
        assert not re.search(r"(?<!\\)<(img|b)", element.value)
        assert "$x$" not in element.value and ":smile:" not in element.value


def test_try_this_starts_a_run_and_leaves_the_settings_as_they_were(
    open_page: OpenPage, loupe_home: Path
) -> None:
    make(loupe_home, name="x")
    at = open_runs(open_page)
    rate = at.session_state["training_learning_rate"]
    at.button(key="runs_try_1").click().run()
    assert not at.exception and not at.error
    new = RunStore(loupe_home).list(MINE)[0]
    assert new.train.learning_rate == pytest.approx(rate / 3)
    assert at.session_state["training_learning_rate"] == rate
    assert new.id in at.multiselect(key="runs_chosen").value
