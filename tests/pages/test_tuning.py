"""The page of fine-tuning: its three views before and after a run, on models far too small to learn much."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest

from engine import corpus as texts
from engine.checkpoints import Checkpoint, load_checkpoint
from engine.corpus import own_text
from engine.framing import framing_for
from engine.moments import write_on
from engine.pair_files import read_pairs, read_preferences
from engine.run_info import update_status
from engine.run_queue import RunQueue
from engine.runs import RunStore
from engine.tokenizers import char_tokenizer
from engine.trained_part import trained_parameters
from engine.worker import run_folder
from tests.hub_folders import write_llama
from tests.pages.conftest import OpenPage, component, plotly
from tests.pages.made_runs import MINE, YOURS, said
from tests.pages.tiny import array, save_tiny
from ui import model_refs, resources, tuning_pairs, tuning_parts, tuning_settings, tuning_spec, tuning_text
from ui.tuning_pairs import Pairs
from ui.tuning_spec import row_length

OWN_PAIRS = "\n".join(
    json.dumps({"prompt": f"Who is fox {i}?", "answer": f"Fox {i} is a cat."}) for i in range(12)
)
OWN_PREFERENCES = "\n".join(
    json.dumps({"prompt": f"Is it {i}?", "chosen": f"Yes, it is {i}.", "rejected": "No."}) for i in range(12)
)
REAL_STORIES = texts.stories


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch, loupe_home: Path, shelf: Path) -> Iterator[Checkpoint]:
    """A tiny causal model as if it were shipped; no worker trains, and there are few stories."""
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)
    monkeypatch.setattr(texts, "stories", lambda: REAL_STORIES(40, 1))
    monkeypatch.setattr(tuning_pairs, "N_PAIRS", {"answers": 16, "preferences": 12})
    monkeypatch.setattr(tuning_pairs, "N_HELD_OUT", 5)
    st.cache_resource.clear()
    st.cache_data.clear()
    yield save_tiny(shelf, "stories-clm", context_length=128)
    st.cache_resource.clear()
    st.cache_data.clear()


def trained(home: Path, aim: Any, *, owner: str = MINE, own: str = "", steps: int = 4) -> tuple[str, Path]:
    """A run of an aim, trained in this process; its id and folder."""
    tuning_settings.DEFAULTS[aim]["steps"], before = steps, tuning_settings.DEFAULTS[aim]["steps"]
    try:
        spec = made(aim, own)
    finally:
        tuning_settings.DEFAULTS[aim]["steps"] = before
    store = RunStore(home)
    run_id = store.create(spec, owner)
    run_folder(home / "runs" / run_id, report=lambda text: None)
    store.close()
    return run_id, home / "runs" / run_id


def made(aim: Any, own: str) -> Any:
    ref = model_refs.shipped_models()[0]
    if aim == "text":
        text = own_text(own or tuning_text.RHYME)
        plan, length = tuning_spec.plan_of(text, ref)
        return tuning_spec.spec(aim, ref, text, length, plan.val_share)
    pairs: Pairs = tuning_pairs._own(aim, "pasted", "mine", own) if own else tuning_pairs._stories(aim)
    return tuning_spec.spec(aim, ref, pairs.corpus(aim), row_length(aim, ref))


def opened(open_page: OpenPage, view: str, **state: Any) -> AppTest:
    at = open_page("tuning", query={"tune": view}, _owner_proposal=MINE, **state)
    assert not at.exception, (at.exception[0].value, at.exception[0].stack_trace)
    return at


def formulas(at: AppTest) -> str:
    return "\n".join(element.value for element in at.latex)


def evals(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "eval"]


def surprisals(model: Any, tokenizer: Any, prompt: str, answer: str) -> tuple[list[float], int]:
    """-ln p of every token of a pair but the first, and how many belong to the answer: by hand."""
    way = framing_for(tokenizer)
    asked, said_back = way.prompt_ids(prompt), way.answer_ids(answer)
    ids = torch.tensor([*asked, *said_back])
    with torch.no_grad():
        log_p = torch.log_softmax(model(ids[None])[0].double(), -1)
    return [-float(log_p[t - 1, ids[t]]) for t in range(1, len(ids))], len(said_back)


# ---- before a run


@pytest.mark.parametrize("view", ["text", "answers", "preferences"])
def test_each_view_opens_with_a_picture_and_one_obvious_start(open_page: OpenPage, view: str) -> None:
    at = opened(open_page, view)
    assert [b.label for b in at.button if b.proto.type == "primary"] == ["Start fine-tuning"]
    assert not at.button(key=f"tuning_start_{view}").disabled and not at.error and not at.warning
    assert plotly(at, f"tuning_stack_{view}")["data"]
    assert at.session_state["tune"] == view


def test_the_stack_counts_every_number_once(start: Checkpoint) -> None:
    config = start.model.config
    whole = sum(p.numel() for p in start.model.parameters())
    for last in (None, 1, 2):
        parts = tuning_parts.parts(config, last)
        assert sum(part.size for part in parts) == whole
        assert sum(part.size for part in parts if part.learns) == trained_parameters(config, last)
    names = [(part.name, part.learns) for part in tuning_parts.parts(config, 1)]
    assert names == [("embedding", False), ("block 1", False), ("block 2", True), ("final norm", True),
                     ("head (tied)", False)]  # fmt: skip


def test_many_blocks_share_a_bar() -> None:
    parts = tuning_parts._blocks([(10, False)] * 9 + [(10, True)])
    assert [(p.name, p.size) for p in parts] == [("blocks 1 to 9", 90), ("block 10", 10)]


def test_freezing_is_seen_in_the_picture(open_page: OpenPage, start: Checkpoint) -> None:
    at = opened(open_page, "text")
    at.button(key="tuning_text_try_1").click().run()
    assert at.session_state["tuning_part_text"] == "last"
    texts_of_bars = plotly(at, "tuning_stack_text")["data"][0]["text"]
    assert sum("learn" in text for text in texts_of_bars) == 2  # block 2 and the final norm
    n = trained_parameters(start.model.config, 1)
    assert f"{n:,} of {sum(p.numel() for p in start.model.parameters()):,} numbers learn" in said(at)


def test_the_prompt_of_a_pair_does_not_count(open_page: OpenPage, start: Checkpoint) -> None:
    at = opened(open_page, "answers")
    pair = tuning_pairs._stories("answers").held_out[0]
    costs, n = surprisals(start.model, start.tokenizer, pair.prompt, pair.answer)
    chips = [c for g in component(at, "tuning_strip_before")["groups"] for c in g["chips"]]
    assert len(chips) == len(costs) + 1 and chips[0]["value"] == "–"
    counted = [not chip["value"].startswith(("(", "–")) for chip in chips]
    assert counted == [False] * (len(chips) - n) + [True] * n
    assert {chip["color"].startswith("#") for chip, on in zip(chips, counted, strict=True) if on} == {True}
    loss = math.fsum(costs[-n:]) / n
    assert f"{loss:.4g}"[:5] in formulas(at)
    assert f"N &= {len(chips)} - {len(chips) - n} = {n}" in formulas(at)


def test_before_training_every_margin_is_nought_and_costs_ln_2(open_page: OpenPage) -> None:
    at = opened(open_page, "preferences")
    (marks,) = plotly(at, "tuning_margins")["data"]
    assert not array(marks["y"]).any() and len(array(marks["y"])) == 5
    assert r"\ln 2 = 0.6931" in formulas(at)


# ---- starting


def test_start_makes_the_run_of_the_settings_and_pressing_twice_makes_one(
    open_page: OpenPage, loupe_home: Path
) -> None:
    at = opened(open_page, "preferences", tuning_beta_preferences=0.5, tuning_part_preferences="last",
                tuning_steps_preferences=7)  # fmt: skip
    at.button(key="tuning_start_preferences").click().run()
    at.button(key="tuning_start_preferences").click().run()
    assert not at.exception and not at.error
    (folder,) = (loupe_home / "runs").glob("2*")
    run = json.loads((folder / "run.json").read_text("utf-8"))
    train = run["train"]
    assert (train["aim"], train["beta"], train["last_blocks"], train["steps"]) == ("preferences", 0.5, 1, 7)
    assert run["start"]["name"] == "stories-clm" and list(run["also_scored"]) == ["Stories"]
    assert "number 1 in the queue" in said(at)
    assert at.button(key="training_pause").disabled and not at.button(key="training_stop").disabled


def test_a_run_is_seen_only_by_whom_it_belongs_to(open_page: OpenPage, loupe_home: Path) -> None:
    trained(loupe_home, "text", owner=YOURS)
    at = opened(open_page, "text")
    assert "is trained already" in said(at)


# ---- after a run


def test_what_a_text_taught_and_what_was_forgotten(
    open_page: OpenPage, loupe_home: Path, start: Checkpoint
) -> None:
    run_id, folder = trained(loupe_home, "text")
    at = opened(open_page, "text", text="Once upon a time")
    measured = evals(folder)
    first, last = measured[0], measured[-1]
    before, after, floor = plotly(at, "tuning_losses_text")["data"]
    assert list(array(before["x"])) == [first["val_loss"], first["also"]["Stories"]]
    assert list(array(after["x"])) == [last["val_loss"], last["also"]["Stories"]]
    assert 0 < array(floor["x"])[0] < first["also"]["Stories"] and list(array(floor["y"])) == [1]
    lines = {line["name"]: line for line in component(at, f"tuning_curve_{run_id}")["series"]}
    assert lines["new text, held out"]["x"][0] == 0  # the start's own loss is the first point
    assert lines["new text, held out"]["y"][0] == pytest.approx(first["val_loss"], rel=1e-5)
    assert lines["Stories, new to it too"]["y"][-1] == pytest.approx(last["also"]["Stories"], rel=1e-5)
    assert "did not know these stories" in said(at) or "got no better" in said(at)
    assert r"L_{\text{old}}" not in formulas(at)  # nothing that the tiny model knew
    ids = start.tokenizer.encode("Once upon a time")
    written = write_on(start.model, start.tokenizer, ids, n_tokens=60, seed=1)
    assert any("Once upon a time" + written.split("\n")[0] in text.value for text in at.text)
    assert [m.value for m in at.markdown if m.value.startswith("**After: step")] == ["**After: step 4**"]


def test_stories_that_the_start_knew_are_forgotten(open_page: OpenPage, loupe_home: Path) -> None:
    run_id, folder = trained(loupe_home, "text")
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    first, last = evals(folder)[0], evals(folder)[-1]
    for record in records:
        if record["kind"] == "eval" and record["step"] == 0:
            record["also"]["Stories"] = 0.5  # as of a model that has learned them
            record["val_loss"] = last["val_loss"] + 0.25
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n", "utf-8")
    at = opened(open_page, "text")
    names = [line["name"] for line in component(at, f"tuning_curve_{run_id}")["series"]]
    assert "Stories, known before" in names and first["also"]["Stories"] > 3
    assert f"= {last['also']['Stories'] - 0.5:.4g}"[:6] in formulas(at)
    assert "It learned **0.25" in said(at) and "nats** a token of what it knew" in said(at)


def test_the_pair_and_the_answers_before_and_after(
    open_page: OpenPage, loupe_home: Path, start: Checkpoint
) -> None:
    _, folder = trained(loupe_home, "answers")
    at = opened(open_page, "answers")
    for _ in range(60):
        if "5 prompts with heroes" in said(at):
            break
        at.run()
    pair = read_pairs((folder / "corpus_val.txt").read_text("utf-8"))[0]
    after = load_checkpoint(resources.run_store().latest_checkpoint(folder.name))
    for model, which in ((start.model, "before"), (after.model, "after")):
        costs, n = surprisals(model, start.tokenizer, pair.prompt, pair.answer)
        assert rf"L_{{\text{{{which}}}}}" in formulas(at)
        assert f"{math.fsum(costs[-n:]) / n:.4g}"[:5] in formulas(at)
        assert component(at, f"tuning_strip_{which}")["groups"]
    bars = plotly(at, "tuning_shares_answers")["data"][0]
    assert len(array(bars["x"])) == 2 and all(0 <= x <= 1 for x in array(bars["x"]))
    assert "5 prompts with heroes that it never learned from" in said(at)
    assert "which is too sure" in said(at)  # so small a model follows none: no error by the formula
    asked = [text.value for text in at.text if text.value.startswith("Begin a story about")]
    assert len(asked) == 3  # answers side by side
    assert plotly(at, "tuning_losses_answers")["data"]


def test_margins_are_those_of_the_two_models(
    open_page: OpenPage, loupe_home: Path, start: Checkpoint
) -> None:
    _, folder = trained(loupe_home, "preferences", own=OWN_PREFERENCES)
    at = opened(open_page, "preferences")
    after = load_checkpoint(resources.run_store().latest_checkpoint(folder.name))
    margins = []
    for one in read_preferences((folder / "corpus_val.txt").read_text("utf-8")):
        gains = []
        for answer in (one.chosen, one.rejected):
            log_probs = []
            for model in (after.model, start.model):
                costs, n = surprisals(model, start.tokenizer, one.prompt, answer)
                log_probs.append(-math.fsum(costs[-n:]))
            gains.append(log_probs[0] - log_probs[1])
        margins.append(0.1 * (gains[0] - gains[1]))
    bars = plotly(at, "tuning_margins")["data"][0]
    assert list(array(bars["y"])) == pytest.approx(sorted(margins, reverse=True), abs=1e-4)
    assert any(margins) and "margins are above 0" in said(at)
    assert "Nobody can tell by rule" in said(at)
    (_, cost) = [evals(folder)[k]["also"]["Stories"] for k in (0, -1)]
    assert array(plotly(at, "tuning_losses_preferences")["data"][1]["x"])[0] == pytest.approx(cost)


def test_a_run_that_was_stopped_at_once_has_nothing_to_compare(open_page: OpenPage, loupe_home: Path) -> None:
    RunStore(loupe_home).create(made("answers", OWN_PAIRS), MINE)
    at = opened(open_page, "answers")
    assert "kept nothing after its first step" in said(at) and "Play" in [b.label for b in at.button]
    assert component(at, "tuning_strip_before")["groups"]  # the pair is there all the same


def test_a_run_that_was_stopped_early_is_compared_as_far_as_it_came(
    open_page: OpenPage, loupe_home: Path
) -> None:
    _, folder = trained(loupe_home, "text")
    update_status(folder, state="stopped", steps=9)
    at = opened(open_page, "text")
    assert "It ended early, at step 4 of" in said(at) and plotly(at, "tuning_losses_text")["data"]


def test_a_run_that_diverged_says_what_to_do(open_page: OpenPage, loupe_home: Path) -> None:
    _, folder = trained(loupe_home, "text")
    update_status(folder, state="failed", message="Step 5 failed: the loss is not a number.", diverged=True)
    at = opened(open_page, "text")
    assert "Step 5 failed" in at.error[0].value.replace("\\", "")


def test_several_runs_can_be_chosen_among(open_page: OpenPage, loupe_home: Path) -> None:
    first, _ = trained(loupe_home, "text")
    second, _ = trained(loupe_home, "text", own="A mouse ran up the clock. " * 60)
    at = opened(open_page, "text")
    assert at.selectbox(key="tuning_run_text").value == second  # the newest
    at.selectbox(key="tuning_run_text").set_value(first).run()
    assert not at.exception and component(at, f"tuning_curve_{first}")["series"]


def test_preferences_after_answers_are_offered_a_rate_that_keeps_the_answers(
    open_page: OpenPage, loupe_home: Path
) -> None:
    run_id, _ = trained(loupe_home, "answers")
    at = opened(open_page, "preferences")
    assert not at.warning  # the shipped model has no answers to lose
    at.button(key="tuning_preferences_try_1").click().run()
    assert at.session_state["model"] == f"run:{run_id}"
    assert at.number_input(key="tuning_rate_preferences").value == 1e-4 and not at.warning
    at.number_input(key="tuning_rate_preferences").set_value(3e-4).run()
    assert len(at.warning) == 1 and "has learned to answer" in at.warning[0].value
    at.button(key="tuning_slower").click().run()
    assert at.number_input(key="tuning_rate_preferences").value == 1e-4 and not at.warning
    assert not at.button(key="tuning_start_preferences").disabled


# ---- what can't be


def test_a_masked_model_is_answered_with_causal_ones(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "stories-mlm", objective="mlm", context_length=64)
    at = opened(open_page, "answers", model="stories-mlm")
    (offer,) = [button for button in at.button if (button.key or "").startswith("use_")]
    assert at.info and offer.label == "Use stories\\-clm"
    offer.click().run()
    assert not at.exception and at.button(key="tuning_start_answers")


@pytest.mark.parametrize(
    ("view", "typed", "words"),
    [
        ("answers", "", "No pairs yet"),
        ("answers", '{"prompt": "a", "answer": "b"}\n{"prompt": broken', "2"),
        ("answers", "just words", "1"),
        ("preferences", '{"prompt": "a", "chosen": "b", "rejected": "b"}', "1"),
    ],
)
def test_pairs_that_cannot_be_read_are_a_sentence_with_the_line(
    open_page: OpenPage, view: str, typed: str, words: str
) -> None:
    at = opened(open_page, view, **{f"tuning_{view}_pairs": "pasted", f"tuning_{view}_paste": typed})
    assert len(at.warning) == 1 and words in at.warning[0].value
    drawn = [id(node) for node in at.main]
    steps = at.number_input(key=f"tuning_steps_{view}")
    assert drawn.index(id(at.warning[0])) < drawn.index(id(steps))  # right below the pairs
    assert at.button(key=f"tuning_start_{view}").disabled


def test_own_pairs_are_shown_as_they_are(open_page: OpenPage, loupe_home: Path) -> None:
    at = opened(open_page, "answers", tuning_answers_pairs="pasted", tuning_answers_paste=OWN_PAIRS)
    chips = [c for g in component(at, "tuning_strip_before")["groups"] for c in g["chips"]]
    shown = "".join(part[0] for chip in chips for part in chip["parts"])
    assert shown.startswith("Who·is·fox·11?⏎Fox·11·is·a·cat.")  # the last one is held out
    assert "11 pairs to learn from, 1 held out" in said(at)
    at.button(key="tuning_start_answers").click().run()
    (folder,) = (loupe_home / "runs").glob("2*")
    assert json.loads((folder / "run.json").read_text("utf-8"))["name"] == "stories-clm + Your pairs"


def test_the_five_pairs_to_try_can_be_read(open_page: OpenPage) -> None:
    for view in ("answers", "preferences"):
        at = opened(open_page, view)
        at.button(key=f"tuning_{view}_try_2").click().run()
        assert not at.exception and not at.warning and not at.button(key=f"tuning_start_{view}").disabled


@pytest.mark.parametrize("typed", ["", "   ", "a"])
def test_a_text_too_short_is_refused_in_words(open_page: OpenPage, typed: str) -> None:
    at = opened(open_page, "text", tuning_text="pasted", tuning_paste=typed)
    assert len(at.warning) == 1 and at.button(key="tuning_start_text").disabled


def test_a_long_text_is_no_trouble(open_page: OpenPage) -> None:
    at = opened(open_page, "text", tuning_text="pasted", tuning_paste="The fox ran. " * 7700,
                text="x " * 50_000)  # fmt: skip
    assert not at.warning and not at.button(key="tuning_start_text").disabled


def test_a_short_text_keeps_something_to_check_with() -> None:
    plan, length = tuning_spec.plan_of(own_text(tuning_text.RHYME), model_refs.shipped_models()[0])
    assert plan.val_tokens > length > 20 and not plan.notice


def test_an_answer_longer_than_the_context_is_a_sentence(open_page: OpenPage) -> None:
    line = json.dumps({"prompt": "Speak.", "answer": "Once upon a time there was a fox. " * 60})
    at = opened(open_page, "answers", tuning_answers_pairs="pasted", tuning_answers_paste=line)
    assert not at.exception and len(at.error) == 1 and "1" in at.error[0].value


@pytest.mark.parametrize("view", ["text", "answers", "preferences"])
def test_in_spanish_nothing_is_lost(open_page: OpenPage, loupe_home: Path, view: str) -> None:
    own = {"text": "", "answers": OWN_PAIRS, "preferences": OWN_PREFERENCES}[view]
    trained(loupe_home, view, own=own)
    at = open_page("tuning", query={"tune": view, "lang": "es"}, _owner_proposal=MINE)
    assert not at.exception and at.button(key=f"tuning_start_{view}").label == "Empezar otro"


def test_a_vocabulary_that_cannot_spell_the_stories_can_be_tuned_all_the_same(
    open_page: OpenPage, loupe_home: Path, shelf: Path
) -> None:
    save_tiny(shelf, "only-abc", tokenizer=char_tokenizer("abc .\n"), context_length=32)
    at = opened(open_page, "text", model="only-abc", tuning_text="pasted", tuning_paste="abc cab. " * 90)
    at.button(key="tuning_start_text").click().run()
    assert not at.exception and not at.error, said(at)
    (folder,) = (loupe_home / "runs").glob("2*")
    assert json.loads((folder / "run.json").read_text("utf-8")).get("also_scored", {}) == {}
    at = opened(open_page, "answers", model="only-abc")
    assert len(at.error) + len(at.warning) >= 1  # a sentence: it can't spell the built-in pairs


def test_a_large_start_is_told_what_memory_it_takes(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_refs, "LARGE", 1000)
    write_llama(loupe_home / "models" / "little-llama", context_length=128)
    at = opened(open_page, "text", model="hub:little-llama")
    assert "GB of memory" in said(at) and "only its last blocks can learn" in said(at)


@pytest.mark.parametrize("view", ["text", "answers", "preferences"])
def test_a_published_model_can_be_the_start(open_page: OpenPage, loupe_home: Path, view: str) -> None:
    write_llama(loupe_home / "models" / "little-llama", context_length=128)
    at = opened(open_page, view, model="hub:little-llama")
    assert not at.error and not at.button(key=f"tuning_start_{view}").disabled, said(at)
    at.button(key=f"tuning_start_{view}").click().run()
    assert not at.exception and not at.error, said(at)
    (folder,) = (loupe_home / "runs").glob("2*")
    assert json.loads((folder / "run.json").read_text("utf-8"))["start"]["kind"] == "hub"
