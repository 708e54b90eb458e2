"""The Compare page: two models on one text, every number the engine's, nothing compared that can't be."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import metrics
from engine.checkpoints import Checkpoint, save_checkpoint
from engine.compare import Scored, compare, js_divergence
from engine.tokenizers import byte_tokenizer, char_tokenizer
from engine.trace import trace
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly
from ui import lesson, model_refs
from ui.compare_text import signed
from viz import format_perplexity, visible

STORY = "Once upon a time, there was a fox called Lily."
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
Models = dict[str, Checkpoint]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("models")
    found = {"stories-clm": tiny.save_tiny(folder, "stories-clm")}
    found["of-bytes"] = tiny.save_tiny(folder, "of-bytes", tokenizer=byte_tokenizer(), context_length=64)
    found["three-letters"] = tiny.save_tiny(folder, "three-letters", tokenizer=char_tokenizer("abc"))
    tiny.save_tiny(folder, "stories-mlm", objective="mlm")
    for step in (2, 7):
        young = tiny.save_tiny(folder, f"young-{step}")
        generator = torch.Generator().manual_seed(step)
        with torch.no_grad():
            for weights in young.model.parameters():
                weights.add_(torch.randn(weights.shape, generator=generator) * 0.3)
        moment = Checkpoint(young.model, young.tokenizer, step=step)
        save_checkpoint(folder / "history" / "stories-clm" / "checkpoints" / f"{step:07d}", moment)
        found[f"step {step}"] = young
        for path in (folder / f"young-{step}").iterdir():
            path.unlink()
        (folder / f"young-{step}").rmdir()
    found["stories-clm"].info["folder"] = str(folder)
    return found


@pytest.fixture(autouse=True)
def folder(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_refs, "PRETRAINED", Path(models["stories-clm"].info["folder"]))


def opened(
    open_page: OpenPage, text: str, other: str, model: str = "stories-clm", **state: object
) -> AppTest:
    query = {"other": other, **state.pop("query", {})}  # type: ignore[dict-item]
    at = open_page("compare", text=text, model=model, query=query, **state)
    assert not at.exception, at.exception[0].value
    return at


def said(at: AppTest) -> str:
    return " ".join(e.value for e in [*at.info, *at.warning, *at.error]).replace("\\", "")


def scored(checkpoint: Checkpoint, text: str) -> tuple[Scored, np.ndarray]:
    traced = trace(checkpoint.model, checkpoint.tokenizer, text)
    logs = metrics.log_softmax(traced.logits)
    return Scored(traced.tokens, logs[np.arange(len(logs) - 1), traced.ids[1:]]), logs


def chips(at: AppTest) -> list[dict[str, object]]:
    return [chip for group in component(at, "compare_strip")["groups"] for chip in group["chips"]]


EARLY = "stories-clm-at-2"


def test_an_earlier_moment_of_the_same_model(open_page: OpenPage, models: Models) -> None:
    at = opened(open_page, STORY, EARLY)
    (a, _), (b, _) = scored(models["stories-clm"], STORY), scored(models["step 2"], STORY)
    gap = b.log_probs - a.log_probs
    np.testing.assert_allclose(tiny.array(plotly(at, "compare_difference")["data"][0]["y"]), gap, atol=1e-5)
    assert [chip.get("value") for chip in chips(at)] == ["", *(signed(x) for x in gap)]
    assert chips(at)[0].get("greyed")
    totals = at.dataframe[0].value
    assert list(totals["tokens"]) == [len(gap)] * 2
    losses = [-part.log_probs.mean() for part in (a, b)]
    assert list(totals["loss (nats per token)"]) == pytest.approx(losses, rel=1e-6)
    assert list(totals["perplexity"]) == [format_perplexity(x) for x in np.exp(losses)]
    n_bytes = len(STORY) - len(a.tokens[0].data)
    assert list(totals["bytes"]) == [n_bytes] * 2
    bits = [-part.log_probs.sum() / math.log(2) / n_bytes for part in (a, b)]
    assert list(totals["bits per byte"]) == pytest.approx(bits, rel=1e-6)


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_the_chosen_place_shows_both_distributions_and_their_distance(
    open_page: OpenPage, models: Models, unit: str
) -> None:
    at = opened(open_page, STORY, EARLY, compare_unit=unit, query={"pos": "4"})
    (a, logs_a), (_, logs_b) = scored(models["stories-clm"], STORY), scored(models["step 2"], STORY)
    p, q = np.exp(logs_a[3]), np.exp(logs_b[3])  # row 3 predicts token 4
    assert "position 4" in at.subheader[0].value and visible(a.tokens[4].data) in at.subheader[0].value
    first, second = plotly(at, "compare_bars")["data"]
    marked = [i for i, text in enumerate(first["text"]) if "came next" in text]
    came = a.tokens[4].id
    assert len(marked) == 1
    assert tiny.array(first["x"])[marked[0]] == pytest.approx(p[came], abs=1e-6)
    assert tiny.array(second["x"])[marked[0]] == pytest.approx(q[came], abs=1e-6)
    for drawn, probs in ((first, p), (second, q)):
        assert tiny.array(drawn["x"]).sum() == pytest.approx(1, abs=1e-6)
        assert tiny.array(drawn["x"]).max() <= 1 and abs(probs.sum() - 1) < 1e-9
    size = 1 if unit == "nats" else math.log(2)
    formula = next(e.value for e in at.latex if "JS" in e.value)
    for number in (metrics.kl_divergence(p, q), metrics.kl_divergence(q, p), js_divergence(p, q)):
        assert f"= {float(number) / size:.4g}" in formula
    piece = next(e.value for e in at.latex if "s_A" in e.value)
    assert rf"\text{{{unit}}}" in piece


def test_where_they_differ_most_comes_first_and_a_button_goes_there(
    open_page: OpenPage, models: Models
) -> None:
    at = opened(open_page, STORY, EARLY)
    (a, _), (b, _) = scored(models["stories-clm"], STORY), scored(models["step 2"], STORY)
    gap = b.log_probs - a.log_probs
    table = at.dataframe[1].value
    assert list(table["position"])[:3] == (1 + np.argsort(-np.abs(gap))[:3]).tolist()
    assert list(table["token"])[0] == visible(a.tokens[int(table["position"][0])].data)
    assert at.query_params["pos"] == str(1 + int(np.abs(gap).argmax()))
    drawn = plotly(at, "compare_difference")
    assert drawn["layout"]["xaxis"]["title"]["text"] == "token (position)"
    assert tiny.array(drawn["data"][0]["x"]).tolist() == list(range(1, len(a.tokens)))
    for name, place in (("A", gap.argmax()), ("B", gap.argmin())):
        at.button(key=f"compare_go_{name}").click().run()
        assert not at.exception
        assert at.query_params["pos"] == str(1 + int(place))


@pytest.mark.parametrize("text", [STORY, "a😀b 👩‍👩‍👧 中文"])
def test_different_tokens_are_compared_in_common_pieces(
    open_page: OpenPage, models: Models, text: str
) -> None:
    at = opened(open_page, text, "of-bytes")
    (a, _), (b, _) = scored(models["stories-clm"], text), scored(models["of-bytes"], text)
    expected = compare(a, b)
    drawn = tiny.array(plotly(at, "compare_difference")["data"][0]["y"])
    np.testing.assert_allclose(drawn, expected.difference, rtol=1e-4, atol=1e-5)
    totals = at.dataframe[0].value
    assert "perplexity" not in totals and "loss (nats per token)" not in totals
    assert list(totals["bits per byte"]) == pytest.approx(list(expected.bits_per_byte), rel=1e-6)
    assert list(totals["bytes"]) == [expected.n_bytes] * 2
    compared = [chip for chip in chips(at) if not chip.get("greyed")]
    shown = "".join(part[0] for chip in compared for part in chip["parts"])  # type: ignore[attr-defined]
    raw = text.encode()
    assert shown == "".join(visible(raw[s.byte_start : s.byte_end]) for s in expected.spans)
    assert not [e for e in at.latex if "KL" in e.value]
    for side in "ab":
        assert tiny.array(plotly(at, f"compare_bars_{side}")["data"][0]["x"]).sum() == pytest.approx(
            1, abs=1e-6
        )


def test_each_reads_its_own_context_and_the_same_bytes_count(open_page: OpenPage, models: Models) -> None:
    text = (STORY + " ") * 9
    at = opened(open_page, text, "of-bytes")
    (a, _), (b, _) = scored(models["stories-clm"], text), scored(models["of-bytes"], text)
    expected = compare(a, b)
    words = " ".join(c.value for c in at.caption)
    assert f"A the last {len(a.tokens)} tokens, B the last {len(b.tokens)}" in words
    assert f"the {expected.n_bytes} of {len(text.encode())} bytes that both predict" in words
    assert list(at.dataframe[0].value["bytes"]) == [expected.n_bytes] * 2


def test_pieces_are_grouped_by_the_text_s_own_graphemes(open_page: OpenPage, models: Models) -> None:
    text = "“é” " * 40 + STORY + " 👍"  # what comes before the window has more bytes than characters
    for other in (EARLY, "of-bytes"):
        groups = component(opened(open_page, text, other), "compare_strip")["groups"]
        whole = [group["whole"] for group in groups if len(group["chips"]) > 1]
        assert set(whole) <= {"é", "”", "“", "👍", "“é", "é”", "“é”", "·“é”", "·“", "·👍"}, whole


def test_a_whole_text_is_compared_in_windows(open_page: OpenPage, models: Models) -> None:
    text = (STORY + " ") * 9
    at = opened(open_page, text, EARLY, compare_scope="whole")
    ids = models["stories-clm"].tokenizer.encode(text)
    losses = [metrics.score(models[name].model, ids).loss for name in ("stories-clm", "step 2")]
    assert list(at.dataframe[0].value["loss (nats per token)"]) == pytest.approx(losses, rel=1e-5)
    assert "windows that move by half" in " ".join(c.value for c in at.caption)
    assert not [e for e in at.get("plotly_chart") if "compare_bars" in e.proto.id]


def test_p10_a_masked_model_is_not_compared(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, EARLY, model="stories-mlm")
    assert "can’t be compared" in said(at)
    assert not at.get("plotly_chart")
    at.button(key="use_stories-clm").click().run()
    assert not at.exception and plotly(at, "compare_difference")


def test_masked_models_are_not_offered(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, EARLY)
    options = at.selectbox(key="other").options
    assert {"of-bytes", "three-letters", "stories-clm at step 2", "stories-clm at step 7"} == set(options)


def test_a_moment_is_offered_first(open_page: OpenPage) -> None:
    at = open_page("compare", text=STORY, model="stories-clm")
    assert str(at.selectbox(key="other").value).startswith("stories-clm-at-")


def test_an_unknown_model_in_the_address_is_ignored(open_page: OpenPage) -> None:
    assert plotly(opened(open_page, STORY, "somebody's"), "compare_difference")


def test_a_text_that_the_second_model_can_t_spell(open_page: OpenPage) -> None:
    at = opened(open_page, "abd?", "three-letters")
    assert "B, three-letters" in said(at) and "'d'" in said(at)


@pytest.mark.parametrize("text", ["", "a", "ab", MARKUP])
def test_any_text(open_page: OpenPage, text: str) -> None:
    for other in (EARLY, "of-bytes"):
        at = opened(open_page, text, other)
        assert at.get("plotly_chart") or "nothing" in said(at).lower()
        written = [e.value for e in [*at.markdown, *at.subheader, *at.caption]]
        assert not [v for v in written if "<b>" in v.replace("\\<", "")]


def test_without_a_second_model_the_page_says_what_to_do(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.save_tiny(tmp_path, "alone")
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path)
    at = open_page("compare", text=STORY)
    assert not at.exception and "nothing to compare with" in said(at)


def test_a_diverged_second_model_is_a_sentence(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = tiny.save_tiny(tmp_path, "stories-clm")
    with torch.no_grad():
        next(iter(good.model.parameters())).fill_(1e30)  # finite, but not what is computed with it
    save_checkpoint(tmp_path / "diverged", good)
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path)
    at = opened(open_page, STORY, "diverged")
    assert "not finite" in said(at)


def test_in_a_window_the_numbers_are_those_of_the_tokens_that_are_read(
    open_page: OpenPage, models: Models
) -> None:
    text = (STORY + " ") * 9
    at = opened(open_page, text, EARLY)
    n = len(scored(models["stories-clm"], text)[0].tokens)
    x = tiny.array(plotly(at, "compare_difference")["data"][0]["x"])
    assert n < len(models["stories-clm"].tokenizer.encode(text)) and x.tolist() == list(range(1, n))


def test_pieces_of_two_vocabularies_are_numbered_from_one(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, "of-bytes")
    assert tiny.array(plotly(at, "compare_difference")["data"][0]["x"])[0] == 1
    assert "piece " in at.subheader[0].value and "piece" in at.dataframe[1].value


def test_a_perplexity_is_written_with_three_digits_also_when_it_is_huge(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "perplexity", lambda loss: 1696558667.4314)
    totals = opened(open_page, STORY, EARLY).dataframe[0].value
    assert list(totals["perplexity"]) == ["1.70×10⁹"] * 2


def test_jensen_and_shannon_are_named(open_page: OpenPage) -> None:
    assert "Jensen–Shannon" in " ".join(c.value for c in opened(open_page, STORY, EARLY).caption)


def test_lily_is_told_to_an_early_moment(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, "of-bytes")
    at.button(key="try_0").click().run()
    assert not at.exception and at.session_state["text"] == lesson.RECALL
    assert at.selectbox(key="other").value == EARLY  # of 2 and 7 the nearer to the early share of 1


def test_the_shipped_model_is_better_at_the_name_than_its_early_moment(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    ref = next((r for r in model_refs.shipped_models() if r.id == "stories-clm"), None)
    if ref is None or len(model_refs.history(ref)) < 2:
        pytest.skip("the shipped model and its history are not there")
    at = opened(open_page, STORY, "none", model="stories-clm")
    at.button(key="try_0").click().run()
    assert not at.exception
    drawn = tiny.array(plotly(at, "compare_difference")["data"][0]["y"])
    assert drawn[-1] < -1 and drawn[-1] == drawn.min()  # nats; A is the late moment
    assert any(e.value.startswith("**A**") and "less surprised" in e.value for e in at.markdown)
    assert at.query_params["pos"] == str(len(drawn))  # and the page opens at the name


def test_choices_survive_a_page_change_and_try_this_works(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, EARLY)
    at.segmented_control(key="compare_unit").set_value("bits").run()
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/compare.py").run()
    assert at.segmented_control(key="compare_unit").value == "bits"
    assert at.selectbox(key="other").value == EARLY
    for i in range(2):
        at.button(key=f"try_{i}").click().run()
        assert not at.exception and plotly(at, "compare_difference")


def test_an_early_moment_is_promised_only_where_one_was_kept(open_page: OpenPage) -> None:
    kept = opened(open_page, STORY, "of-bytes")
    only_the_end = opened(open_page, STORY, "stories-clm", model="of-bytes")
    early = [
        any("does an early model remember" in text.value for text in at.markdown)
        for at in (kept, only_the_end)
    ]
    assert early == [True, False]
    assert any("which of the two remembers" in text.value for text in only_the_end.markdown)
