"""The Generation page: what it shows is what the engine computes, and no typed text breaks it."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import viz
from engine.checkpoints import Checkpoint
from engine.dice import cumulative_line, draw_many, fit
from engine.sampling import generate, sampling_stages
from engine.search import beam_search, look_ahead
from engine.strategies import STRATEGIES, Written, distinct, write
from engine.tokenizers import byte_tokenizer, char_tokenizer
from tests.pages.conftest import OpenPage, component, plotly
from tests.pages.tiny import array, save_tiny
from ui import model_refs, resources, worked_sampling, writing
from ui.branches import as_json
from ui.strategies_view import measured
from ui.tree_view import press
from ui.written_text import Piece, written

PROMPT = "Once upon a time"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
C = [3.2, 1.1, 0.4, 2.4, -1.0]


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


def numbers(column: dict[str, Any]) -> list[float]:
    """What stands beside the bars of a column; what was removed counts 0."""
    return [0.0 if cell["state"] != "kept" else number(cell["text"]) for cell in column["cells"]]


def number(text: str) -> float:
    mantissa, _, power = text.replace("−", "-").replace(",", "").partition("×10")
    return float(mantissa) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def bars(at: AppTest, key: str = "generation_stages") -> list[list[float]]:
    return [numbers(column) for column in component(at, key)["columns"]]


def sizes(column: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.array([cell["size"] for cell in column["cells"]])


def test_the_first_picture_is_the_engines(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT)
    assert not at.exception
    ids = model.tokenizer.encode(PROMPT)
    logits = model.model(__import__("torch").tensor([ids]))[0, -1]
    stages = sampling_stages(logits, temperature=1.0, top_p=0.9)
    top = np.argsort(-stages[0].probs, kind="stable")[:9]
    before, after = bars(at)
    assert before[:9] == pytest.approx(stages[0].probs[top].tolist(), rel=5e-3)  # three digits are shown
    assert after[:9] == pytest.approx(stages[-1].probs[top].tolist(), rel=5e-3)
    assert sum(before) == pytest.approx(1, abs=5e-3) and sum(after) == pytest.approx(1, abs=5e-3)
    assert after[-1] == pytest.approx(np.delete(stages[-1].probs, top).sum(), rel=5e-3)
    drawn_bars = [sizes(column) for column in component(at, "generation_stages")["columns"]]
    longest = max(stages[-1].probs[top].max(), np.delete(stages[-1].probs, top).sum(), before[-1], before[0])
    assert drawn_bars[1][:9] * longest == pytest.approx(stages[-1].probs[top], abs=2e-3)
    kept = int((stages[-1].probs > 0).sum())
    assert f"left {kept} token" in captions(at)


def test_the_waterfall_has_every_step_in_order_and_its_masses_add_up(
    open_page: OpenPage, model: Checkpoint
) -> None:
    settings = {"top_k": "50", "top_p": "0.9", "min_p": "0.2", "temperature": "1.4", "penalty": "1.3"}
    at = open_page("generation", text=PROMPT, query={"lab": "waterfall", **settings})
    assert not at.exception
    columns = component(at, "generation_waterfall")["columns"]
    names = [column["title"] for column in columns]
    assert names == ["logits", "penalty", "temperature", "softmax", "top-k", "top-p", "min-p", "drawn from"]
    ids = model.tokenizer.encode(PROMPT)
    logits = writing.logits_after(model_refs.shipped_models()[0], ids)
    keywords = {"temperature": 1.4, "repetition_penalty": 1.3, "previous": ids}
    stages = sampling_stages(logits, top_k=50, top_p=0.9, min_p=0.2, **keywords)
    by_name = {stage.name: stage for stage in stages}
    for column in columns[3:]:
        shown = [number(cell["text"]) for cell in column["cells"] if cell["text"] != "removed"]
        assert sum(shown) + 1e-9 >= 0.97 or column["title"] in ("top-k", "top-p", "min-p")
    for name in ("top-k", "top-p", "min-p"):
        removed, left, entropy, choices = columns[names.index(name)]["facts"]
        stage = by_name[name]
        assert number(removed) == pytest.approx(stage.removed_mass, rel=5e-3)
        assert number(left) == stage.n_kept
        assert number(entropy) == pytest.approx(stage.entropy, rel=5e-3, abs=1e-9)
        assert number(choices) == pytest.approx(math.exp(stage.entropy), rel=5e-3)
    assert number(columns[-1]["facts"][1]) == stages[-1].n_kept
    assert columns[1]["note"] == "θ = 1.3"
    top = np.argsort(-sampling_stages(logits)[0].probs, kind="stable")[:9]
    assert [number(cell["text"]) for cell in columns[0]["cells"][:9]] == pytest.approx(
        logits[top].tolist(), rel=5e-3
    )


def test_the_waterfall_in_bits_and_steps_that_are_off_say_so(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, query={"lab": "waterfall", "top_p": "1.0"})
    columns = component(at, "generation_waterfall")["columns"]
    assert [column["note"] for column in columns if not column["on"]] == ["off"] * 5  # T = 1 changes nothing
    nats = number(columns[-1]["facts"][2])
    at.segmented_control(key="generation_unit").set_value("bits").run()
    bits = number(component(at, "generation_waterfall")["columns"][-1]["facts"][2])
    assert bits == pytest.approx(nats / math.log(2), rel=5e-3)


def test_the_vectors_of_the_cases_through_the_page(
    open_page: OpenPage, model: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C at temperatures 0.5, 1 and 2; top-p 0.8 keeps 1, 2 and 3 tokens: heat comes before the cut."""
    far = np.full(256, -1e9, np.float32)
    far[:5] = C
    monkeypatch.setattr(writing, "next_logits", lambda model, ids: far.copy())
    expected = {
        "0.5": ([0.81913, 0.01228, 0.00303, 0.16538, 0.00018], [1.0]),
        "1.0": ([0.60695, 0.07432, 0.03691, 0.27272, 0.00910], [0.69, 0.31]),
        "2.0": ([0.41853, 0.14646, 0.10321, 0.28055, 0.05125], [0.495, 0.3318, 0.1732]),
    }
    for i, (temperature, (soft, left)) in enumerate(expected.items()):
        query = {"lab": "waterfall", "top_p": "0.8", "temperature": temperature}
        at = open_page("generation", text=f"The vectors {i}", query=query)
        data = component(at, "generation_waterfall")
        ids = [row["id"] for row in data["rows"][:5]]
        assert ids == [0, 3, 1, 2, 4]
        column = data["columns"][3]
        assert [number(cell["text"]) for cell in column["cells"][:5]] == pytest.approx(
            [soft[i] for i in ids], abs=1e-3
        )
        drawn_with = [x for x in numbers(data["columns"][-1]) if x]
        assert drawn_with == pytest.approx(left, abs=1e-3)


def test_a_token_of_the_waterfall_is_worked_out(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, query={"lab": "waterfall"})
    likeliest = at.selectbox(key="generation_token").value
    at.selectbox(key="generation_token").set_value(7).run()
    assert component(at, "generation_waterfall")["chosen"] in (7, likeliest)
    logits = writing.logits_after(model_refs.shipped_models()[0], model.tokenizer.encode(PROMPT))
    assert f"{logits[7]:.4g}"[:5].rstrip("0") in at.latex[0].value
    assert len(at.selectbox(key="generation_token").options) == 256  # the whole vocabulary


def test_temperature_0_draws_the_likeliest_and_the_chart_is_one_bar(
    open_page: OpenPage, model: Checkpoint
) -> None:
    at = open_page("generation", text=PROMPT, query={"temperature": "0.0"})
    assert at.slider(key="temperature").value == 0
    _, after = bars(at)
    assert sorted(after) == [0] * 9 + [1]
    at.button(key="generation_write").click().run()
    prompt = model.tokenizer.encode(PROMPT)
    expected = [s.id for s in generate(model.model, prompt, n_tokens=60, temperature=0, stop_ids={10})]
    assert drawn(at) == expected


def test_the_same_seed_writes_the_same_text_in_one_go_and_step_by_step(
    open_page: OpenPage, model: Checkpoint
) -> None:
    at = open_page("generation", text=PROMPT, query={"seed": "11"}, generation_stop_at_end=False)
    for _ in range(3):
        at.button(key="generation_draw").click().run()
    at.button(key="generation_write").click().run()
    expected = generate(model.model, model.tokenizer.encode(PROMPT), n_tokens=63, top_p=0.9, seed=11)
    assert drawn(at) == [step.id for step in expected]
    assert "Wrote 60 tokens" in captions(at) and "a second" in captions(at)
    assert component(at, "generation_strip")["selected"] == 39  # the last of the 40 chips
    assert not at.exception


def test_undo_restart_and_the_dice(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT)
    at.button(key="generation_draw").click().run()
    assert not at.button(key="generation_undo").disabled
    at.button(key="generation_draw").click().run()
    first, second = at.session_state["_writing"].draws
    (line,) = plotly(at, "generation_dice")["data"]
    lengths, base = array(line["x"]), array(line["base"])
    assert lengths.sum() == pytest.approx(1, abs=1e-5)
    widths = np.array(line["marker"]["line"]["width"])
    (at_u,) = np.flatnonzero(widths == 3)
    assert base[at_u] <= second.u <= base[at_u] + lengths[at_u] + 1e-6
    assert lengths[at_u] == pytest.approx(second.prob, abs=1e-6)
    probs = sampling_stages(
        writing.logits_after(model_refs.shipped_models()[0], (*model.tokenizer.encode(PROMPT), first.id)),
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
    at.slider(key="top_p").set_value(0.5).run()
    assert "Stopped after 20 of 200 tokens" in captions(at)
    assert len(drawn(at)) == 1


def test_a_new_prompt_begins_anew_and_the_old_settings_stay(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, query={"top_k": "3"})
    at.button(key="generation_draw").click().run()
    at.sidebar.text_area(key="text").set_value("The end").run()
    assert drawn(at) == []
    assert at.number_input(key="top_k").value == 3


def test_a_prompt_of_many_bytes_stays_whole(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text="來")
    at.button(key="generation_draw").click().run()
    assert '<span data-part="prompt">來</span>' in panel(at)
    assert len(drawn(at)) == 1


def test_markup_is_shown_as_it_is() -> None:
    html = written("", MARKUP, [Piece(MARKUP + "\u202e\x00"), Piece("<b>", control=True)])
    assert "<b>" not in html and "<img" not in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;") == 2
    assert "⟨202E⟩⟨00⟩" in html


@pytest.mark.parametrize("text", [MARKUP, "👍🏽👩‍👩‍👧", "a", " ", "\n", "שלום"])
def test_any_text_can_be_continued(open_page: OpenPage, model: Checkpoint, text: str) -> None:
    at = open_page("generation", text=text, generation_keep=True)
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


@pytest.mark.parametrize("view", ["waterfall", "strategies", "tree", "draws"])
def test_every_view_says_what_the_model_does_not_see(
    open_page: OpenPage, model: Checkpoint, view: str
) -> None:
    at = open_page("generation", text="abcdefghij" * 50, query={"lab": view})
    assert "Using the last 32 of 500 tokens" in captions(at)
    assert not at.exception and not at.error


def test_no_model_and_the_wrong_kind(open_page: OpenPage, shelf: Path) -> None:
    at = open_page("generation", text=PROMPT)
    assert "no model yet" in at.info[0].value
    save_tiny(shelf, "tiny-mlm", objective="mlm")
    save_tiny(shelf, "tiny-clm")
    at = open_page("generation", text=PROMPT, model="tiny-mlm")
    assert "causal model" in at.info[0].value
    at.button(key="use_tiny-clm").click().run()
    assert component(at, "generation_stages")


def test_characters_that_the_vocabulary_lacks(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-clm", tokenizer=char_tokenizer("abc"))
    at = open_page("generation", text="d?")
    assert not at.exception
    assert "without" in at.error[0].value and "d" in at.error[0].value


def test_a_vocabulary_of_one(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-clm", tokenizer=char_tokenizer("aaa"))
    at = open_page("generation", text="aa", query={"top_k": "50"})
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
    at = open_page("generation", text=PROMPT, query={"top_k": "7"})
    at.button(key="try_0").click().run()
    assert at.slider(key="temperature").value == 0
    assert at.number_input(key="top_k").value == 0
    once = drawn(at)
    assert once == [s.id for s in generate(model.model, model.tokenizer.encode(PROMPT), n_tokens=60,
                                           temperature=0, stop_ids={10})]  # fmt: skip
    at.button(key="try_0").click().run()  # again, in a branch of its own
    assert drawn(at) == once
    assert [branch.name for branch in at.session_state["_writing"].branches] == ["A", "B"]


def test_the_worked_vector_ties_out() -> None:
    # C at T = 2 with top-p 0.8: sofa (id 3) 0.28055 of 0.84554 kept = 0.3318
    line = worked_sampling.sampled(2.4, 3.2, 2.0, 2.389311, 0.845544, False)
    assert "0.6703" in line and "= 0.3318" in line
    assert "T = 0" in worked_sampling.sampled(3.2, 3.2, 0, 1.0, 1.0, False)
    assert "cut away" in worked_sampling.sampled(-1.0, 3.2, 1.0, 1.6476, 0.9, True)


def writing_of(at: AppTest) -> writing.Writing:
    text: writing.Writing = at.session_state["_writing"]
    return text


def rewind(at: AppTest, chip: int) -> None:
    at.session_state["generation_strip"] = {"selected": chip}
    at.run()
    at.button(key="generation_rewind").click().run()


def test_any_token_can_be_forced_and_says_that_it_had_no_dice(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT)
    at.button(key="generation_draw").click().run()
    ids = [*model.tokenizer.encode(PROMPT), *drawn(at)]
    at.selectbox(key="generation_token").set_value(200).run()
    at.button(key="generation_force").click().run()
    assert not at.exception and drawn(at)[1] == 200
    forced = writing_of(at).draws[1]
    stages = sampling_stages(writing.logits_after(model_refs.shipped_models()[0], ids), top_p=0.9)
    assert forced.forced and forced.model_prob == pytest.approx(stages[0].probs[200])
    assert forced.prob == pytest.approx(stages[-1].probs[200])
    assert "no dice were thrown" in captions(at)
    assert not [e for e in at.get("plotly_chart") if "generation_dice" in e.proto.id]
    chips = component(at, "generation_strip")["groups"]
    assert chips[1]["chips"][0]["value"] == "forced"
    assert "2 tokens, 1 of them forced" in captions(at)


def test_a_token_that_is_pressed_in_the_picture_is_forced(open_page: OpenPage, model: Checkpoint) -> None:
    ref = model_refs.shipped_models()[0]
    text, prompt = writing.Writing((ref.id, PROMPT)), model.tokenizer.encode(PROMPT)
    at = open_page("generation", text=PROMPT)
    how = writing.Settings({"temperature": 1.0, "top_k": 2}, 1, 60, frozenset())
    writing.force(text, ref, prompt, 65, how)
    assert text.ids == [65] and text.draws[0].prob == 0  # top-k 2 had removed it
    rows = component(at, "generation_stages")
    assert rows["verb"] == "Force" and len(rows["rows"]) == 10


def test_rewind_branches_and_the_old_text_stays(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, query={"seed": "3"})
    for _ in range(4):
        at.button(key="generation_draw").click().run()
    first = drawn(at)
    rewind(at, 1)
    assert drawn(at) == first[:1]
    assert [branch.ids for branch in writing_of(at).branches] == [first, first[:1]]
    for _ in range(3):
        at.button(key="generation_draw").click().run()
    prompt = model.tokenizer.encode(PROMPT)
    own = generate(model.model, [*prompt, *first[:1]], n_tokens=3, top_p=0.9, seed=3, stream=1, skip=1)
    assert drawn(at) == [*first[:1], *(step.id for step in own)]  # numbers of the branch's own stream
    (table,) = [e.proto.body for e in at.get("html") if "loupe-branches" in e.proto.body]
    assert 'data-branch="A"' in table and 'data-branch="B"' in table and "left A after 1 token" in table
    at.segmented_control(key="generation_branch").set_value("A").run()
    assert drawn(at) == first and not at.exception
    at.button(key="generation_delete").click().run()
    assert drawn(at)[:1] == first[:1] and len(writing_of(at).branches) == 1


def test_branches_outlive_a_page_change_and_another_text(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT)
    at.button(key="generation_draw").click().run()
    at.button(key="generation_draw").click().run()
    rewind(at, 0)
    at.button(key="generation_draw").click().run()
    both = [branch.ids for branch in writing_of(at).branches]
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/generation.py").run()
    assert [branch.ids for branch in writing_of(at).branches] == both
    at.sidebar.text_area(key="text").set_value("The end").run()
    assert drawn(at) == []
    assert "is kept: 2 branches" in captions(at)
    at.button(key="generation_back").click().run()
    assert [branch.ids for branch in writing_of(at).branches] == both
    assert at.session_state["text"] == PROMPT


def test_writing_stops_at_the_end_of_the_story_and_need_not(open_page: OpenPage, model: Checkpoint) -> None:
    hot = {"temperature": "3.0", "top_p": "1.0", "seed": "5", "tokens": "1000"}
    prompt = model.tokenizer.encode(PROMPT)
    free = [s.id for s in generate(model.model, prompt, n_tokens=1000, temperature=3.0, seed=5)]
    end = free.index(10) + 1  # the byte of a line end
    at = open_page("generation", text=PROMPT, query=hot)
    at.button(key="generation_write").click().run()
    assert drawn(at) == free[:end]
    assert f"Wrote {end} tokens" in captions(at) and "There the line ends" in captions(at)
    at.button(key="generation_restart").click().run()
    at.toggle(key="generation_stop_at_end").set_value(False).run()
    at.number_input(key="tokens").set_value(end + 5).run()
    at.button(key="generation_write").click().run()
    assert drawn(at) == free[: end + 5]


def test_the_repetition_penalty_is_used_and_worked_out(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, query={"penalty": "1.5", "temperature": "0.0"})
    prompt = model.tokenizer.encode(PROMPT)
    keywords = {"temperature": 0, "repetition_penalty": 1.5, "stop_ids": {10}}
    at.button(key="generation_write").click().run()
    assert drawn(at) == [s.id for s in generate(model.model, prompt, n_tokens=60, **keywords)]
    at.slider(key="temperature").set_value(1.0).run()
    at.selectbox(key="generation_token").set_value(drawn(at)[-1]).run()
    assert "theta" in at.latex[0].value


def test_json_and_link(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, query={"seed": "9", "top_k": "4"}, generation_keep=True)
    at.button(key="generation_draw").click().run()
    link = component(at, "generation_link")["text"]
    for part in ("seed=9", "top_k=4", "temperature=1.0", "text=Once+upon+a+time", "model=tiny-clm"):
        assert part in link
    assert component(at, "generation_copy")["text"] == PROMPT + writing_of(at).text()
    content = json.loads(as_json(writing_of(at), model.tokenizer.encode(PROMPT), {"seed": 9}))
    assert content["branches"][0]["tokens"][0]["seed"] == 9


@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_a_histogram_of_draws_agrees_with_the_displayed_distribution(
    open_page: OpenPage, model: Checkpoint, n: int
) -> None:
    at = open_page("generation", text=PROMPT, query={"lab": "draws", "seed": "4", "top_k": "6"},
                   generation_n_draws=n)  # fmt: skip
    assert not at.exception
    came, due, _ = plotly(at, "generation_counts")["data"]
    logits = writing.logits_after(model_refs.shipped_models()[0], model.tokenizer.encode(PROMPT))
    probs = sampling_stages(logits, top_k=6, top_p=0.9)[-1].probs
    counts = draw_many(probs, n, 4)
    order = np.argsort(-probs, kind="stable")[: int((probs > 0).sum())]
    assert array(came["x"])[:-1].tolist() == counts[order].tolist() and array(came["x"]).sum() == n
    assert array(due["x"])[:-1] == pytest.approx(n * probs[order], rel=1e-5)
    error = 2 * np.sqrt(n * probs[order] * (1 - probs[order]))
    assert array(due["error_x"]["array"])[:-1] == pytest.approx(error, rel=1e-5)
    found = fit(counts, probs)
    assert found.p_value > 0.001  # a fixed seed; honest draws
    assert any(f"p-value {viz.format_prob(found.p_value)}" in m.value for m in at.markdown)
    assert "chi^2" in at.latex[0].value


def test_draws_that_do_not_fit_are_found_out_and_one_token_has_nothing_to_test(
    open_page: OpenPage, model: Checkpoint
) -> None:
    query = {"lab": "draws", "temperature": "0.4", "top_p": "1.0"}
    at = open_page("generation", text=PROMPT, query=query, generation_against=True)
    assert "they came from another one" in captions(at)
    at.slider(key="temperature").set_value(0.0).run()
    at.toggle(key="generation_against").set_value(False).run()
    assert "nothing to test" in captions(at) and not at.exception


def test_the_tree_is_the_engines_and_can_be_grown_and_written(open_page: OpenPage, model: Checkpoint) -> None:
    at = open_page("generation", text=PROMPT, query={"lab": "tree"})
    assert not at.exception
    prompt = model.tokenizer.encode(PROMPT)
    root = look_ahead(model.model, prompt[-32:], breadth=3, depth=2, stop_ids={10})
    data = component(at, "generation_tree")["root"]
    first = data["kids"][0]
    assert [kid["path"] for kid in data["kids"]] == [list(node.path) for node in root.children]
    grandchild = root.children[0].children[1]
    assert first["kids"][1]["prob"] == viz.format_prob(grandchild.prob)
    assert first["kids"][1]["whole"] == f"path {viz.format_prob(math.exp(grandchild.log_prob))}"
    beam = beam_search(model.model, prompt[-32:], n_tokens=2, width=3, stop_ids={10})[0]
    framed = [kid["path"] for kid in data["kids"] if kid["beam"]]
    assert framed == ([list(beam.ids[:1])] if root.find(beam.ids[:1]) else [])
    state = at.session_state["_generation_tree"]
    press(state, grandchild.path, True)
    at.run()
    grown = component(at, "generation_tree")["root"]["kids"][0]["kids"][1]
    assert len(grown["kids"]) == 3 and not grown["grows"]
    assert "prod" in at.latex[0].value
    at.button(key="generation_take").click().run()
    assert drawn(at) == list(grandchild.path)
    assert all(draw.forced for draw in writing_of(at).draws)


def test_a_tree_that_is_too_large_says_the_way_out(open_page: OpenPage, model: Checkpoint) -> None:
    state = {"generation_tree_breadth": 8, "generation_tree_depth": 8}
    at = open_page("generation", text=PROMPT, query={"lab": "tree"}, **state)
    assert not at.exception
    assert "Choose a smaller breadth or depth" in at.error[0].value


def test_strategies_are_measured_and_kept(open_page: OpenPage, shelf: Path) -> None:
    model = save_tiny(shelf, "tiny-clm")  # a vocabulary that can spell the stories
    at = open_page("generation", text="Once upon a time, there", query={"lab": "strategies", "tokens": "12"})
    at.button(key="strategies_run").click().run()
    assert not at.exception
    (html,) = [e.proto.body for e in at.get("html") if "loupe-strategies" in e.proto.body]
    prompt = model.tokenizer.encode("Once upon a time, there")
    stop = set(model.tokenizer.line_end_ids)
    for strategy in STRATEGIES:
        row = html.split(f'data-strategy="{strategy.name}"')[1].split("</tr>")[0]
        done = write(model.model, prompt, strategy, n_tokens=12, seed=1, stop_ids=stop)
        assert f">{viz.format_number(done.log_prob)}<" in row
        assert f">{viz.format_number(done.per_token)}<" in row
        assert f">{viz.format_number(distinct(done.ids, 2))}<" in row
    assert html.count('data-part="legal"') == 7 and "✗" in html
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/generation.py").run()
    assert [e for e in at.get("html") if "loupe-strategies" in e.proto.body]
    assert at.button(key="strategies_run").label == "Write again with a new seed"


def test_where_a_story_breaks_is_where_the_oracle_says() -> None:
    ref = model_refs.shipped_models()[0]
    text = "Once upon a time, there was a spreadsheet"
    ids = resources.tokenizer(ref).encode(text[21:])
    row = measured(ref, text[:21], "x", Written(tuple(ids), -3.0), 0.1)
    legal = resources.oracle_for(ref).legal_prefix(text)
    assert row.text == text[21:] and row.n_legal == legal.n_chars - 21
    assert row.broke_at == "spreadsheet"
