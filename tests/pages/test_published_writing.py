"""Published models on the pages that write, fill and teach: exact, ended where they end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import fill, infill, pseudo
from engine.chat import Message, chat_form, chat_ids
from engine.checkpoints import Checkpoint
from engine.eight_bits import eight_bits, trouble
from engine.gaps import fill_gaps, gap_tokens
from engine.hub import load_folder
from engine.metrics import log_softmax
from engine.sampling import generate
from tests import hub_folders
from tests.pages.conftest import OpenPage, component
from ui import model_refs
from ui.lesson_list import CAUSAL, LESSONS

TEXT = "Once upon a time, there was a fox."
LLAMA, ROBERTA = "hub:llama", "hub:roberta"
VIEWS = ("write", "waterfall", "strategies", "tree", "draws")
HIDE = ("one-sentence", "masked-batch", "what-is-paid", "not-comparable", "fill-blanks", "meaning")


@pytest.fixture
def llama(published: Path) -> Checkpoint:
    hub_folders.write_llama(published / "llama", chat=True)
    return opened(published / "llama")


def opened(folder: Path) -> Checkpoint:
    checkpoint = load_folder(folder)
    checkpoint.model.eval().requires_grad_(False)
    return checkpoint


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model counts as large: one of few that are held, and read with a cache that is kept."""
    monkeypatch.setattr(model_refs, "LARGE", 10)


def said(at: AppTest) -> str:
    return "\n".join(
        e.value for kind in (at.caption, at.markdown, at.info, at.error, at.warning) for e in kind
    )


def drawn(at: AppTest) -> list[int]:
    found: list[int] = at.session_state["_writing"].ids
    return found


def n_chips(at: AppTest, key: str) -> int:
    return sum(len(group["chips"]) for group in component(at, key)["groups"])


def panel(at: AppTest) -> str:
    (found,) = [e.proto.body for e in at.get("html") if "loupe-written" in e.proto.body]
    return str(found)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("chat", [False, True])
def test_every_view_of_generation_opens_and_says_nothing_of_stories(
    view: str, chat: bool, open_page: OpenPage, llama: Checkpoint
) -> None:
    at = open_page("generation", model=LLAMA, text=TEXT, lab=view, generation_chat=chat)
    assert not at.exception and not at.error
    assert "Stop at the end of the story" not in [toggle.label for toggle in at.toggle]
    words = said(at).lower()
    assert "possible story" not in words and "the story" not in words
    assert not [c for c in at.get("segmented_control") if "truth" in str(c)]


@pytest.mark.usefixtures("large")
def test_a_large_model_writes_what_the_engine_writes_token_by_token_and_at_once(
    open_page: OpenPage, llama: Checkpoint
) -> None:
    ids = llama.tokenizer.encode(TEXT)
    jump = llama.config.context_length // 4
    how: dict[str, Any] = {"temperature": 1.0, "top_p": 0.9, "seed": 1, "jump": jump}
    expected = [step.id for step in generate(llama.model, ids, n_tokens=70, **how)]
    at = open_page("generation", model=LLAMA, text=TEXT, tokens=40, generation_stop_at_end=False)
    at.button(key="generation_draw").click().run()
    at.button(key="generation_draw").click().run()
    assert drawn(at) == expected[:2]
    at.button(key="generation_undo").click().run()
    at.button(key="generation_draw").click().run()
    for _ in range(2):  # past the context of 64
        at.button(key="generation_write").click().run()
        assert not at.exception
    assert drawn(at)[:70] == expected and len(drawn(at)) == 82
    assert "the oldest 16 are forgotten at once" in said(at)


def test_writing_ends_with_the_model_s_own_end_and_nothing_comes_after_it(
    open_page: OpenPage, published: Path, llama: Checkpoint
) -> None:
    ids = llama.tokenizer.encode(TEXT)
    greedy = [step.id for step in generate(llama.model, ids, n_tokens=20, temperature=0)]
    n = next(i for i, token in enumerate(greedy) if i > 3 and token not in greedy[:i])
    config = published / "llama" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "eos_token_id": [1, greedy[n]]}))
    at = open_page("generation", model=LLAMA, text=TEXT, temperature=0.0, top_p=1.0, tokens=20)
    at.button(key="generation_write").click().run()
    assert drawn(at) == greedy[: n + 1]
    assert "There the model ended the text" in said(at)
    assert "Stop where the text ends" in [toggle.label for toggle in at.toggle]


def test_a_chat_is_framed_by_control_tokens_and_a_typed_one_stays_text(
    open_page: OpenPage, published: Path, llama: Checkpoint
) -> None:
    text = "A fox <|im_start|> ran."
    form = chat_form(published / "llama", llama.tokenizer)
    assert form is not None
    ids = chat_ids(llama.tokenizer, [Message("user", text)], form)
    at = open_page(
        "generation", model=LLAMA, text=text, tokens=9, temperature=0.0, top_p=1.0, generation_chat=True
    )
    assert n_chips(at, "generation_framed") == len(ids)
    assert ids.count(form.begin) == 2 and ids.count(form.end) == 1
    at.button(key="generation_write").click().run()
    stop = {form.end}
    assert drawn(at) == [s.id for s in generate(llama.model, ids, n_tokens=9, temperature=0, stop_ids=stop)]
    at.toggle(key="generation_chat").set_value(False).run()
    assert not drawn(at), "another prompt: its writing is its own"
    at.toggle(key="generation_chat").set_value(True).run()
    assert drawn(at), "and it is kept"


def test_a_message_that_does_not_fit_is_no_chat(open_page: OpenPage, llama: Checkpoint) -> None:
    at = open_page("generation", model=LLAMA, text="word " * 80, generation_chat=True)
    assert not at.exception and "the model sees 64 at most" in said(at)
    at.toggle(key="generation_chat").set_value(False).run()
    assert not at.exception and not at.error


def test_without_a_template_no_chat_is_offered(open_page: OpenPage, published: Path) -> None:
    hub_folders.write_llama(published / "plain")
    at = open_page("generation", model="hub:plain", text=TEXT)
    assert "generation_chat" not in [toggle.key for toggle in at.toggle] and not at.exception


def test_a_control_token_that_was_written_is_framed(open_page: OpenPage, llama: Checkpoint) -> None:
    at = open_page("generation", model=LLAMA, text=TEXT, generation_stop_at_end=False)
    at.session_state["generation_token"] = 1
    at.run()
    at.button(key="generation_force").click().run()
    assert drawn(at) == [1]
    assert 'data-part="control"' in panel(at) and "&lt;|im_start|&gt;" in panel(at)


@pytest.mark.parametrize("page", ["generation", "masking", "guess"])
@pytest.mark.parametrize("model", [LLAMA, ROBERTA])
@pytest.mark.parametrize("text", ["", "a", "👨‍👩‍👧 é", "a\x06b", "\x00\n", "word " * 20_000])
def test_no_text_breaks_a_page(
    page: str, model: str, text: str, open_page: OpenPage, llama: Checkpoint
) -> None:
    at = open_page(page, model=model, text=text)
    assert not at.exception
    if "\x06" in text and page != "guess" and model == LLAMA:
        assert "no token for" in said(at).lower() or "06" in said(at)


@pytest.mark.parametrize("view", HIDE)
@pytest.mark.parametrize("model", [LLAMA, ROBERTA])
def test_every_view_of_masking_opens(view: str, model: str, open_page: OpenPage, llama: Checkpoint) -> None:
    at = open_page("masking", model=model, text=TEXT, hide=view)
    assert not at.exception and not at.error
    assert "possible story" not in said(at).lower()


def test_a_causal_model_fills_a_blank_by_rescoring(open_page: OpenPage, llama: Checkpoint) -> None:
    at = open_page("masking", model=LLAMA, text="Once upon a [_] there was a fox.", hide="fill-blanks")
    assert not at.exception and not at.error
    tokens = gap_tokens(llama.tokenizer, "Once upon a [MASK] there was a fox.")
    ids = [token.id for token in tokens]
    place = ids.index(llama.tokenizer.mask_id)
    expected = infill.rescore(llama.model, ids, [place], tried=256)
    table = at.dataframe[0].value
    shares, names = table["share"].tolist(), table["Filling"].tolist()
    assert shares[:7] == pytest.approx(expected.shares[:7].tolist(), rel=1e-3)
    assert table["sum"].tolist()[:7] == pytest.approx(expected.log_probs[:7].tolist(), abs=1e-4)
    assert len(names) == 8 and "among 256 candidates" in said(at)
    left = log_softmax(fill_left(llama, ids[:place]))
    assert table["ln p(token | left)"].tolist()[0] == pytest.approx(left[expected.tried[0, 0]], abs=1e-4)


def fill_left(checkpoint: Checkpoint, ids: list[int]) -> Any:
    return checkpoint.model(torch.tensor([ids]))[0, -1].numpy()


@pytest.mark.usefixtures("large")
def test_what_would_take_long_is_asked_for_and_can_be_refused(
    open_page: OpenPage, llama: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ui import infill_view

    monkeypatch.setattr(infill_view, "SPEED", 1.0)
    at = open_page("masking", model=LLAMA, text="Once upon a [MASK] there was.", hide="fill-blanks")
    assert not at.dataframe and "About" in said(at)
    at.button(key="masking_infill_go").click().run()
    assert at.dataframe and not at.exception
    monkeypatch.setattr(infill_view, "MOST_WORK", 10)
    at.run()
    assert "reads 10 at most" in said(at)


def test_the_frame_of_a_masked_model_is_read_and_never_hidden_or_scored(
    open_page: OpenPage, published: Path
) -> None:
    masked = opened(published / "roberta")
    frame = masked.tokenizer.frame
    assert frame == ([0], [2])
    ids, mask = masked.tokenizer.encode(TEXT), masked.tokenizer.mask_id
    whole = masked.model(torch.tensor([[0, *ids[:2], mask, *ids[3:], 2]]))[0].numpy()
    rows = fill_gaps(masked.model, ids, [2], mask, frame)
    np.testing.assert_allclose(rows, whole[1:-1], atol=1e-5)
    each = pseudo.pseudo_log_probs(masked.model, ids, mask, frame=frame)
    assert len(each) == len(ids)
    assert each[2] == pytest.approx(log_softmax(whole[3])[ids[2]], abs=1e-5)
    guesses = fill.masked_guesses(masked.model, mask, frame=frame, never=masked.tokenizer.control_ids)
    probs = np.exp(guesses(ids, [2]))
    assert probs.sum() == pytest.approx(1) and probs[0, list(masked.tokenizer.control_ids)].max() == 0
    gibbs = fill.gibbs(guesses, ids, [2, 3], n_sweeps=4, seed=1)
    assert not {choice.id for choice in gibbs.choices} & set(masked.tokenizer.control_ids)

    at = open_page("masking", model=ROBERTA, text=TEXT, hide="not-comparable")
    assert not at.exception
    assert "<s\\>" in said(at) or "<s>" in said(at).replace("\\", "")
    assert n_chips(at, "masking_strip") == len(ids), "the frame has no chip"
    total = float(pseudo.pseudo_log_probs(masked.model, ids, mask, frame=frame).sum())
    assert any(f"{abs(total):.3f}"[:5] in latex.value for latex in at.latex)


def test_long_texts_leave_room_for_the_frame(open_page: OpenPage, published: Path) -> None:
    at = open_page("masking", model=ROBERTA, text="A fox ran. " * 60, hide="one-sentence")
    assert not at.exception and "Using the last 46 of" in said(at)


def test_guessing_with_a_published_model(open_page: OpenPage, llama: Checkpoint) -> None:
    at = open_page("guess", model=LLAMA)
    assert not at.exception and "This model learned from other texts" in said(at)
    at.radio[0].set_value(0).run()
    at.button(key="guess_bet").click().run()
    assert not at.exception and "What is truly likely is not known" in said(at)


@pytest.mark.parametrize("slug", list(LESSONS))
def test_all_lessons_can_be_walked_with_a_published_model(
    slug: str, open_page: OpenPage, llama: Checkpoint
) -> None:
    at = open_page("lessons", query={"lesson": slug}, model=LLAMA)
    assert not at.exception
    for n, step in enumerate(LESSONS[slug].steps, 1):
        here = open_page("lessons", query={"lesson": slug}, model=LLAMA)
        here.button(key=f"lesson_go_{n}").click().run()
        assert not here.exception, (slug, n)
        chosen = here.session_state["model"]
        assert chosen == (step.model if step.model == CAUSAL else LLAMA), (slug, n)


def test_exercises_open_with_a_published_model(open_page: OpenPage, llama: Checkpoint) -> None:
    for name in ("softmax-three", "sentence-loss", "bits-per-byte"):
        assert not open_page("exercises", query={"exercise": name}, model=LLAMA).exception


def test_two_people_with_one_large_model_keep_their_own_texts(
    open_page: OpenPage, llama: Checkpoint, large: None
) -> None:
    first = open_page("generation", model=LLAMA, text=TEXT, tokens=12, generation_stop_at_end=False)
    second = open_page("generation", model=LLAMA, text=TEXT, tokens=12, seed=7, generation_stop_at_end=False)
    for at in (first, second, first, second):
        at.button(key="generation_draw").click().run()
    ids = llama.tokenizer.encode(TEXT)
    for at, seed in ((first, 1), (second, 7)):
        alone = generate(llama.model, ids, n_tokens=2, top_p=0.9, seed=seed)
        assert drawn(at) == [step.id for step in alone]


def weights(at: AppTest) -> Any:
    return next((c for c in at.segmented_control if c.key == "generation_weights"), None)


@pytest.mark.usefixtures("large")
def test_a_large_model_writes_with_8_bits_when_asked_to_and_nobody_else_s_does(
    open_page: OpenPage, llama: Checkpoint
) -> None:
    if why := trouble(llama.model):
        pytest.skip(why)
    how: dict[str, Any] = {"temperature": 1.0, "top_p": 0.9, "seed": 1, "n_tokens": 9}
    ids = llama.tokenizer.encode(TEXT)
    full = [step.id for step in generate(llama.model, ids, **how)]
    steps = list(generate(eight_bits(llama.model), ids, **how))
    page: dict[str, Any] = {"model": LLAMA, "text": TEXT, "tokens": 9, "generation_stop_at_end": False}
    at, other = open_page("generation", **page), open_page("generation", **page)
    assert weights(at).value == "full"
    weights(at).set_value("eight").run()
    for each in (at, other):
        each.button(key="generation_write").click().run()
        assert not each.exception and not each.error
    assert drawn(at) == [step.id for step in steps] and drawn(other) == full
    probs = [draw.model_prob for draw in at.session_state["_writing"].draws]
    np.testing.assert_allclose(probs, [step.model_probs[step.id] for step in steps], rtol=1e-2)
    weights(at).set_value("full").run()
    assert not drawn(at), "a text is of one model"
    weights(at).set_value("eight").run()
    assert len(drawn(at)) == 9, "and it is kept"


@pytest.mark.usefixtures("large")
def test_what_8_bits_cost_is_measured_when_asked_and_then_known_to_all(
    open_page: OpenPage, llama: Checkpoint
) -> None:
    if why := trouble(llama.model):
        pytest.skip(why)
    at = open_page("generation", model=LLAMA, text=TEXT)
    assert "nats a token" not in said(at)
    at.button(key="generation_weights_measure").click().run()
    assert not at.exception and not at.error
    for each in (at, open_page("generation", model=LLAMA, text=TEXT)):
        assert "On the first 499 tokens of Python's help texts 8 bits cost" in said(each)


@pytest.mark.usefixtures("large")
def test_where_8_bits_can_not_be_used_a_sentence_says_why(
    open_page: OpenPage, llama: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.eight_bits._products_are_exact", lambda: False)
    at = open_page("generation", model=LLAMA, text=TEXT, generation_weights="eight")
    assert weights(at) is None and "the processor lacks the instructions" in said(at)
    assert not at.exception and not at.error


def test_small_models_have_no_such_choice(open_page: OpenPage, llama: Checkpoint) -> None:
    assert weights(open_page("generation", model=LLAMA, text=TEXT)) is None
