"""The Generation page: what it shows is what the engine computes, and no typed text breaks it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from engine.dice import cumulative_line
from engine.sampling import generate, sampling_stages
from engine.tokenizers import byte_tokenizer, char_tokenizer
from tests.pages.conftest import OpenPage, component, plotly
from tests.pages.tiny import array, save_tiny
from ui import resources, worked_sampling, writing

PROMPT = "Once upon a time"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
C = [3.2, 1.1, 0.4, 2.4, -1.0]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pretrained"
    monkeypatch.setattr(resources, "PRETRAINED", folder)
    return folder


@pytest.fixture
def model(shelf: Path) -> Checkpoint:
    return save_tiny(shelf, "tiny-clm", tokenizer=byte_tokenizer())


def panel(at: AppTest) -> str:
    (found,) = [e.proto.body for e in at.get("html") if "loupe-written" in e.proto.body]
    return str(found)


def drawn(at: AppTest) -> list[int]:
    return at.session_state["_writing"].ids if "_writing" in at.session_state else []


def captions(at: AppTest) -> str:
    return "\n".join(caption.value for caption in at.caption)


def bars(at: AppTest, key: str = "generation_stages") -> list[np.ndarray[Any, Any]]:
    traces = plotly(at, key)["data"]
    return [array(trace["x"]) for trace in traces if trace["name"] != "before"]


def test_the_first_picture_is_the_engines(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT)
    assert not at.exception
    ids = model.tokenizer.encode(PROMPT)
    logits = model.model(__import__("torch").tensor([ids]))[0, -1]
    stages = sampling_stages(logits, temperature=1.0, top_p=0.9)
    top = np.argsort(-stages[0].probs, kind="stable")[:9]
    before, after = bars(at)
    assert np.abs(before[:9] - stages[0].probs[top]).max() < 1e-6
    assert np.abs(after[:9] - stages[-1].probs[top]).max() < 1e-6
    assert before.sum() == pytest.approx(1, abs=1e-6) and after.sum() == pytest.approx(1, abs=1e-6)
    assert after[-1] == np.float32(np.delete(stages[-1].probs, top).sum())  # exactly 0 if all others are cut
    kept = int((stages[-1].probs > 0).sum())
    assert f"left {kept} token" in captions(at)


def test_a_stage_for_every_cut_in_the_order_that_is_said(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page(
        "generation", text=PROMPT, generation_k=5, generation_min_p=0.2, generation_view="Every stage"
    )
    names = [a["text"] for a in plotly(at, "generation_stages")["layout"]["annotations"]]
    assert names == ["softmax", "temperature", "top-k", "top-p", "min-p"]
    assert "temperature → top-k → top-p → min-p" in captions(at)


def test_temperature_0_draws_the_likeliest_and_the_chart_is_one_bar(
    open_page: OpenPage, model: Checkpoint
) -> None:
    at = open_page("generation", text=PROMPT, query={"temperature": "0.0"})
    assert at.slider(key="temperature").value == 0
    _, after = bars(at)
    assert sorted(after.tolist()) == [0] * 9 + [1]
    at.button(key="generation_write").click().run()
    expected = [
        s.id for s in generate(model.model, model.tokenizer.encode(PROMPT), n_tokens=60, temperature=0)
    ]
    assert drawn(at) == expected


def test_the_same_seed_writes_the_same_text_in_one_go_and_step_by_step(
    open_page: OpenPage, model: Checkpoint
) -> None:
    at = open_page("generation", text=PROMPT, generation_seed=11)
    for _ in range(3):
        at.button(key="generation_draw").click().run()
    at.button(key="generation_write").click().run()
    expected = generate(model.model, model.tokenizer.encode(PROMPT), n_tokens=63, top_p=0.9, seed=11)
    assert drawn(at) == [step.id for step in expected]
    assert "Wrote 60 tokens" in captions(at)
    assert component(at, "generation_strip")["selected"] == 39  # the last of the 40 chips
    assert not at.exception


def test_undo_restart_and_the_dice(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT)
    at.button(key="generation_draw").click().run()
    assert not at.button(key="generation_undo").disabled
    at.button(key="generation_draw").click().run()
    first, second = at.session_state["_writing"].draws
    (line,) = plotly(at, "generation_strip_line")["data"]
    lengths, base = array(line["x"]), array(line["base"])
    assert lengths.sum() == pytest.approx(1, abs=1e-5)
    widths = np.array(line["marker"]["line"]["width"])
    (at_u,) = np.flatnonzero(widths == 3)
    assert base[at_u] <= second.u <= base[at_u] + lengths[at_u] + 1e-6
    assert lengths[at_u] == pytest.approx(second.prob, abs=1e-6)
    probs = sampling_stages(
        writing.logits_after(resources.shipped_models()[0], (*model.tokenizer.encode(PROMPT), first.id)),
        top_p=0.9,
    )[-1].probs
    assert len(lengths) == len(cumulative_line(probs, show=[second.id]))
    at.button(key="generation_undo").click().run()
    assert drawn(at) == [first.id]
    at.button(key="generation_draw").click().run()
    assert drawn(at) == [first.id, second.id]  # the same seed, the same dice
    at.button(key="generation_restart").click().run()
    assert drawn(at) == []


def test_a_stopped_text_stays_and_says_so(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT)
    at.button(key="generation_draw").click().run()
    kept = at.session_state["_writing"]
    kept.asked, kept.done = 200, 20  # as a click leaves it in the middle of writing
    at.slider(key="generation_p").set_value(0.5).run()
    assert "Stopped after 20 of 200 tokens" in captions(at)
    assert len(drawn(at)) == 1


def test_a_new_prompt_begins_anew_and_the_old_settings_stay(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, generation_k=3)
    at.button(key="generation_draw").click().run()
    at.sidebar.text_area(key="text").set_value("The end").run()
    assert drawn(at) == []
    assert at.number_input(key="generation_k").value == 3


def test_a_prompt_of_many_bytes_stays_whole(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text="來")
    at.button(key="generation_draw").click().run()
    assert '<span data-part="prompt">來</span>' in panel(at)
    assert len(drawn(at)) == 1


@pytest.mark.parametrize(
    "data, shown",
    [(b"\xf0\x9f\x98", "\\xf0\\x9f\\x98"), (b"\xf0\x9f\x98\x80", "😀"), ("\ufffd".encode(), "\ufffd")],
)
def test_half_a_character_waits_and_is_shown_as_bytes_at_the_end(data: bytes, shown: str) -> None:
    text = writing.Writing(("m", "p"))
    text.draws = [writing.Draw(i, data[i : i + 1], 0.1, 1.0, 1.0, {}) for i in range(len(data))]
    assert text.text() == shown
    assert text.text(ended=False) == ("" if "\\" in shown else shown)


def test_markup_is_shown_as_it_is() -> None:
    html = writing.written("", MARKUP, MARKUP + "\u202e\x00")
    assert "<b>" not in html and "<img" not in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;") == 2
    assert "⟨202E⟩⟨00⟩" in html


@pytest.mark.parametrize("text", [MARKUP, "👍🏽👩‍👩‍👧", "a", " ", "\n", "שלום"])
def test_any_text_can_be_continued(open_page: OpenPage, model: Checkpoint, text: str) -> None:
    at = open_page("generation", text=text)
    at.button(key="generation_draw").click().run()
    assert not at.exception and not at.error
    assert len(drawn(at)) == 1
    assert ("ends in a space" in captions(at)) is False
    assert at.code[0].value.startswith(text) or not text.strip()


def test_hint_for_a_prompt_that_ends_in_a_space(open_page: OpenPage, model: Checkpoint) -> None:
    assert "ends in a space" in captions(open_page("generation", text="Once "))


def test_empty_text(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text="")
    assert "text is empty" in at.info[0].value
    assert not at.exception


def test_a_prompt_longer_than_the_context(open_page: OpenPage, model: Checkpoint) -> None:
    text = "".join(chr(97 + i % 26) for i in range(500))
    at = open_page("generation", text=text)
    assert "Using the last 32 of 500 tokens" in captions(at)
    assert f'opacity:0.6">{text[:-32]}</span>' in panel(at)
    at.button(key="generation_draw").click().run()
    assert "Using the last 32 of 501 tokens" in captions(at)
    assert not at.exception


def test_no_model_and_the_wrong_kind(open_page: OpenPage, shelf: Path) -> None:
    at = open_page("generation", text=PROMPT)
    assert "no model yet" in at.info[0].value
    save_tiny(shelf, "tiny-mlm", objective="mlm")
    save_tiny(shelf, "tiny-clm")
    at = open_page("generation", text=PROMPT, model="tiny-mlm")
    assert "causal model" in at.info[0].value
    at.button(key="use_tiny-clm").click().run()
    assert plotly(at, "generation_stages")


def test_characters_that_the_vocabulary_lacks(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-clm", tokenizer=char_tokenizer("abc"))
    at = open_page("generation", text="d?")
    assert not at.exception
    assert "without" in at.error[0].value and "d" in at.error[0].value


def test_a_vocabulary_of_one(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-clm", tokenizer=char_tokenizer("aaa"))
    at = open_page("generation", text="aa", generation_k=50)
    assert not at.exception
    assert "The vocabulary has 1 token" in captions(at)
    at.button(key="generation_write").click().run()
    assert drawn(at) == [0] * 60


def test_logits_that_are_not_finite_are_a_sentence(
    open_page: OpenPage, model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = np.full(256, np.nan, np.float32)
    monkeypatch.setattr(writing, "next_logits", lambda model, ids: bad.copy())
    at = open_page("generation", text="not finite")
    assert not at.exception
    assert "not finite" in at.error[0].value


def test_experiments_set_everything_and_write(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, generation_k=7)
    at.button(key="try_0").click().run()
    assert at.slider(key="temperature").value == 0
    assert at.number_input(key="generation_k").value == 0
    assert len(drawn(at)) == 60
    once = drawn(at)
    at.button(key="generation_restart").click().run()
    at.button(key="generation_write").click().run()
    assert drawn(at) == once


def test_the_worked_vector_ties_out() -> None:
    # C at T = 2 with top-p 0.8: sofa (id 3) 0.28055 of 0.84554 kept = 0.3318
    line = worked_sampling.sampled(2.4, 3.2, 2.0, 2.389311, 0.845544, False)
    assert "0.6703" in line and "= 0.3318" in line
    assert "T = 0" in worked_sampling.sampled(3.2, 3.2, 0, 1.0, 1.0, False)
    assert "cut away" in worked_sampling.sampled(-1.0, 3.2, 1.0, 1.6476, 0.9, True)
