"""The Next token page: every number on it is the engine's, over the whole vocabulary."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.runtime.scriptrunner import StopException
from streamlit.testing.v1 import AppTest

from engine import metrics, windows
from engine.checkpoints import Checkpoint, save_checkpoint
from engine.grammar import default_grammar
from engine.oracle import Oracle
from engine.tokenizers import char_tokenizer
from engine.trace import Trace, trace
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly
from ui import lesson, long_job, model_refs, worked
from viz import format_number, visible

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
STORY = "Once upon a time, there was a"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("models")
    tiny.save_tiny(folder, "stories-mlm", objective="mlm")
    tiny.save_tiny(folder, "one-letter", tokenizer=char_tokenizer("a"))
    tiny.save_tiny(folder, "three-letters", tokenizer=char_tokenizer("abc"))
    wild = tiny.save_tiny(folder, "wild")
    with torch.no_grad():
        next(iter(wild.model.parameters())).fill_(1e30)  # finite, but not what is computed with it
    save_checkpoint(folder / "wild", wild)
    sure = tiny.save_tiny(folder, "sure")
    with torch.no_grad():
        next(iter(sure.model.parameters())).mul_(4)  # logits far apart
    save_checkpoint(folder / "sure", sure)
    found = tiny.save_tiny(folder, "stories-clm")
    found.info["folder"] = str(folder)
    return found


@pytest.fixture(autouse=True)
def models(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_refs, "PRETRAINED", Path(checkpoint.info["folder"]))


def opened(open_page: OpenPage, text: str, model: str = "stories-clm", **state: object) -> AppTest:
    at = open_page("next_token", text=text, model=model, **state)
    assert not at.exception, at.exception[0].value
    return at


def looked(checkpoint: Checkpoint, text: str) -> Trace:
    return trace(checkpoint.model, checkpoint.tokenizer, text)


def chips(at: AppTest) -> list[dict[str, object]]:
    return [chip for group in component(at, "next_token_strip")["groups"] for chip in group["chips"]]


def said(at: AppTest) -> str:
    return " ".join(element.value for element in [*at.info, *at.warning])


def bars(at: AppTest) -> list[dict[str, object]]:
    return plotly(at, "next_token_bars")["data"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("k", [5, 20])
def test_bars_are_the_engine_s_and_add_up_to_one(open_page: OpenPage, checkpoint: Checkpoint, k: int) -> None:
    at = opened(open_page, STORY, bars=str(k))
    probs = metrics.softmax(looked(checkpoint, STORY).logits[-1])
    drawn = tiny.array(bars(at)[0]["x"])
    assert len(drawn) == k + 1
    np.testing.assert_allclose(drawn[:-1], np.sort(probs)[::-1][:k], atol=1e-6)
    assert abs(drawn.sum() - 1) < 1e-6
    ticks = plotly(at, "next_token_bars")["layout"]["yaxis"]["ticktext"]
    assert ticks[0] == visible(checkpoint.tokenizer.token_bytes(int(probs.argmax())))
    assert ticks[-1] == f"all other<br>{len(probs) - k} tokens"


def test_a_position_from_the_address_marks_what_came(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, STORY, query={"pos": "2"})
    traced = looked(checkpoint, STORY)
    probs, came = metrics.softmax(traced.logits[2]), int(traced.ids[3])
    marked = [text for text in bars(at)[0]["text"] if "came" in text]  # type: ignore[attr-defined]
    assert len(marked) == 1 and f"rank {metrics.rank(probs, came)}" in marked[0]
    assert format_number(probs[came]) in marked[0]
    assert "After token 2" in " ".join(element.value for element in at.subheader)
    assert at.query_params["pos"] == "2"
    formulas = " ".join(element.value for element in at.latex)
    assert rf"{-math.log(probs[came]):.4g}\ \text{{nats}}" in formulas


def test_the_true_distribution_stands_beside_it(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, STORY)
    oracle = Oracle(default_grammar(), checkpoint.tokenizer)
    true = oracle.distributions(checkpoint.tokenizer.encode(STORY))[-1]
    probs = metrics.softmax(looked(checkpoint, STORY).logits[-1])
    order = np.argsort(-probs, kind="stable")[:8]
    drawn = tiny.array(bars(at)[1]["x"])
    np.testing.assert_allclose(drawn, [*true[order], 1 - true[order].sum()], atol=1e-6)
    kl = float(metrics.kl_divergence(true, probs))
    assert any(
        rf"= {kl:.4g}\ \text{{nats}}" in element.value for element in at.latex if "KL" in element.value
    )


def test_where_no_story_goes_on_nothing_true_is_shown(open_page: OpenPage) -> None:
    at = opened(open_page, "The price of oil fell")
    assert len(bars(at)) == 1
    assert not [element for element in at.latex if "KL" in element.value]
    assert any("No story goes like this" in caption.value for caption in at.caption)


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_strip_and_table_show_each_token_s_surprise(
    open_page: OpenPage, checkpoint: Checkpoint, unit: str
) -> None:
    at = opened(open_page, STORY, unit=unit, query={"look": "surprise"})
    traced = looked(checkpoint, STORY)
    scores = metrics.next_token_scores(traced.logits, traced.ids.tolist())
    surprise = -scores.log_probs / (1 if unit == "nats" else math.log(2))
    assert [chip["value"] for chip in chips(at)] == ["given", *(lesson.brief(x) for x in surprise)]
    table = at.dataframe[0].value
    np.testing.assert_allclose(table[f"surprise ({unit})"], surprise, rtol=1e-12)
    np.testing.assert_allclose(table["probability"], np.exp(scores.log_probs), rtol=1e-12)
    np.testing.assert_allclose(
        table["running perplexity"], np.exp(np.cumsum(-scores.log_probs) / (table["position"]))
    )
    assert list(table["rank"]) == [
        metrics.rank(metrics.softmax(traced.logits[t]), int(traced.ids[t + 1])) for t in range(len(surprise))
    ]


def value(shown: str) -> float:
    """The number that a table writes as m×10ⁿ."""
    written = shown.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")).replace("×10", "e")
    return float(written)


def test_the_chain_rule_s_product_is_the_probability_of_the_text(
    open_page: OpenPage, checkpoint: Checkpoint
) -> None:
    at = opened(open_page, STORY, query={"look": "chain-rule"})
    table = at.dataframe[0].value
    traced = looked(checkpoint, STORY)
    probs = [metrics.softmax(traced.logits[t])[traced.ids[t + 1]] for t in range(len(traced.ids) - 1)]
    np.testing.assert_allclose(table["p(token | all before)"], probs, rtol=1e-9)
    np.testing.assert_allclose(table["ln p"], np.log(probs), rtol=1e-9)
    np.testing.assert_allclose(table["sum of ln p"], np.cumsum(np.log(probs)), rtol=1e-9)
    assert [value(x) for x in table["product of p"]] == pytest.approx(np.cumprod(probs), rel=6e-4)
    loss = -math.log(math.prod(probs)) / len(probs)
    formula = next(element.value for element in at.latex if "perplexity" in element.value)
    assert f"= {worked.tex(math.exp(loss))}" in formula
    first = len(checkpoint.tokenizer.tokens(STORY)[0].data)
    bits = loss * len(probs) / math.log(2) / (len(STORY) - first)
    assert f"= {bits:.4g}" in formula


@pytest.mark.parametrize("look", ["chain-rule", "surprise", "any-length"])
def test_no_small_probability_is_written_as_nought(open_page: OpenPage, look: str) -> None:
    table = opened(open_page, "Once zq#", model="sure", query={"look": look}).dataframe[0]
    name = next(name for name in table.value if str(name).startswith("p") and name != "position")
    written = json.loads(table.proto.columns)[name]["type_config"]["format"]
    assert table.value[name].min() < 5e-7 and written == "%.6g", "as %.6f it would read 0.000000"


def test_the_chain_rule_in_bits(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, STORY, unit="bits", query={"look": "chain-rule"})
    table, traced = at.dataframe[0].value, looked(checkpoint, STORY)
    logs = metrics.next_token_scores(traced.logits, traced.ids.tolist()).log_probs / math.log(2)
    np.testing.assert_allclose(table["log₂ p"], logs, rtol=1e-9)
    np.testing.assert_allclose(table["sum of log₂ p"], np.cumsum(logs), rtol=1e-9)
    assert [value(x) for x in table["product of p"]] == pytest.approx(2 ** np.cumsum(logs), rel=6e-4)
    formula = next(element.value for element in at.latex if "perplexity" in element.value)
    assert r"\log_2 P" in formula and f"= {worked.tex(2 ** -logs.mean())}" in formula
    assert r"\text{bits}" in formula and "nats" not in formula


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("one-position", "Choose one"),
        ("best-guesses", "is marked"),
        ("surprise", "has a frame"),
        ("chain-rule", "or worse."),
    ],
)
def test_what_choosing_a_token_does_is_said(open_page: OpenPage, view: str, words: str) -> None:
    at = opened(open_page, STORY, query={"look": view, "pos": "3"})
    caption = next(c.value for c in at.caption if "blind guess" in c.value)
    assert words in caption and ("Choose one" in caption) == (view == "one-position")
    assert "a blind guess among 400, or worse" in caption
    if view == "best-guesses":
        assert plotly(at, "next_token_guesses")["layout"]["yaxis"]["ticktext"][3].startswith("<b>3 ")
    if view == "surprise":
        assert plotly(at, "next_token_surprise")["data"][0]["marker"]["line"]["width"][3] == 2


def test_what_can_come_is_said_of_the_whole_text(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, query={"pos": "2"})
    assert any("After the whole text could come" in c.value for c in at.caption)


def test_characters_are_counted_from_0(open_page: OpenPage) -> None:
    at = opened(open_page, "Once upon a time, ther\u00e9 was")
    assert any("(character 22, counted from 0)" in c.value for c in at.caption)


def test_unit_and_measure_are_in_the_address(open_page: OpenPage) -> None:
    query = {"unit": "bits", "measure": "log-p", "bars": "12", "pos": "2"}
    at = opened(open_page, STORY, query=query)
    assert at.segmented_control(key="unit").value == "bits"
    assert at.segmented_control(key="measure").value == "log-p"
    assert at.segmented_control(key="bars").value == "12"
    assert "(bits)" in plotly(at, "next_token_bars")["layout"]["xaxis"]["title"]["text"]


def test_one_window_is_no_windows(open_page: OpenPage) -> None:
    words = " ".join(c.value for c in long_view(open_page, "ab").caption)
    assert "1 window " in words and "1 windows" not in words and "1 tokens" not in words, words


def test_every_view_shows_the_engine_s_numbers(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    traced = looked(checkpoint, STORY)
    at = opened(open_page, STORY, query={"look": "surprise"})
    drawn = tiny.array(plotly(at, "next_token_surprise")["data"][0]["y"])
    scores = metrics.next_token_scores(traced.logits, traced.ids.tolist())
    assert np.isnan(drawn[0])
    np.testing.assert_allclose(drawn[1:], -scores.log_probs, rtol=1e-6)
    true = Oracle(default_grammar(), checkpoint.tokenizer).distributions(checkpoint.tokenizer.encode(STORY))
    kl = tiny.array(plotly(at, "next_token_kl")["data"][0]["y"])
    np.testing.assert_allclose(kl, metrics.kl_divergence(true, traced.probs()), rtol=1e-5)
    at = opened(open_page, STORY, query={"look": "best-guesses"})
    drawn = tiny.array(plotly(at, "next_token_guesses")["data"][0]["z"])
    np.testing.assert_allclose(drawn, -np.sort(-traced.probs())[:, :6], atol=1e-6)


def test_where_nothing_is_true_there_is_no_kl(open_page: OpenPage) -> None:
    at = opened(open_page, "zz top of the charts", query={"look": "surprise"})
    assert not [e for e in at.get("plotly_chart") if "next_token_kl" in e.proto.id and "nan" in e.proto.spec]
    opened(open_page, "abab", model="three-letters", query={"look": "surprise"})


@pytest.mark.parametrize("quantity", ["logit", "log-p"])
@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_logits_and_log_probabilities_can_be_redone_by_hand(
    open_page: OpenPage, checkpoint: Checkpoint, quantity: str, unit: str
) -> None:
    at = opened(open_page, STORY, query={"pos": "2"}, measure=quantity, unit=unit)
    logits = looked(checkpoint, STORY).logits[2].astype(np.float64)
    drawn = tiny.array(bars(at)[0]["x"])
    log_sum = np.log(np.exp(logits).sum())
    best = np.sort(logits)[::-1][:8]
    size = 1 if unit == "nats" else math.log(2)
    expected = best if quantity == "logit" else (best - log_sum) / size
    np.testing.assert_allclose(drawn[:8], expected, rtol=1e-5)
    axis = plotly(at, "next_token_bars")["layout"]["xaxis"]["title"]["text"]
    assert f"({len(logits) - len(drawn)} more tokens are not drawn)" in axis
    assert (f"({unit})" in axis) == (quantity == "log-p")
    formula = next(element.value for element in at.latex if "LSE" in element.value)
    written = float(formula.split("e^{z_j} = ")[1].split("\\")[0])
    assert written == pytest.approx(log_sum, rel=1e-3)


def test_rank_entropy_and_surprise_stand_together(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, STORY, query={"pos": "2"}, unit="bits")
    traced = looked(checkpoint, STORY)
    probs, came = metrics.softmax(traced.logits[2]), int(traced.ids[3])
    line = next(element.value for element in at.markdown if "entropy" in element.value)
    assert f"rank **{metrics.rank(probs, came)}** of {len(probs)}" in line
    assert f"surprise **{format_number(-math.log2(probs[came]), 4)} bits**" in line
    entropy = -sum(p * math.log2(p) for p in probs if p > 0)
    assert f"entropy **{format_number(entropy, 4)} bits**" in line


LONG = (STORY + " fox called Lily. ") * 12


def long_view(open_page: OpenPage, text: str, **state: object) -> AppTest:
    return opened(open_page, text, query={"look": "any-length"}, **state)


@pytest.mark.parametrize("share", [1, 2, 8])
def test_a_long_text_is_scored_once_per_token_with_the_context_stated(
    open_page: OpenPage, checkpoint: Checkpoint, share: int
) -> None:
    at = long_view(open_page, LONG, next_token_stride=share)
    ids = checkpoint.tokenizer.encode(LONG)
    scores = metrics.score(checkpoint.model, ids, stride=32 // share)
    table = at.dataframe[0].value
    shown = len(table)
    assert list(table["position"]) == list(range(1, shown + 1))
    np.testing.assert_allclose(np.log(table["probability"]), scores.log_probs[:shown], atol=1e-5)
    assert list(table["context (tokens)"]) == scores.contexts[:shown].tolist()
    formula = next(element.value for element in at.latex if "perplexity" in element.value)
    assert f"= {worked.tex(math.exp(scores.loss))}" in formula
    n_bytes = len(LONG.encode()) - len(checkpoint.tokenizer.token_bytes(ids[0]))
    assert f"= {worked.tex(scores.loss * len(scores.log_probs) / math.log(2) / n_bytes)}" in formula
    words = " ".join(caption.value for caption in at.caption)
    assert f"the median is {np.median(scores.contexts):g}." in words
    assert f"One average over all {len(ids) - 1}" in words and "not a mean of the windows" in words
    drawn = plotly(at, "next_token_long")["data"][0]
    assert float(np.mean(scores.log_probs)) == pytest.approx(
        -np.average(tiny.array(drawn["y"]), weights=tiny.array(drawn["width"])), rel=1e-4
    )


def test_two_moves_of_the_window_stand_side_by_side(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = long_view(open_page, LONG)
    at.segmented_control(key="next_token_stride").set_value(8).run()
    assert not at.exception
    table = at.dataframe[1].value
    assert list(table["window moves by"]) == [16, 4]
    ids = checkpoint.tokenizer.encode(LONG)
    losses = [metrics.score(checkpoint.model, ids, stride=stride).loss for stride in (16, 4)]
    assert list(table["perplexity"]) == pytest.approx(np.exp(losses), rel=1e-5)
    assert table["tokens through the model"].is_monotonic_increasing


def test_much_work_waits_for_a_button_and_goes_on_where_it_stopped(
    open_page: OpenPage, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_job, "AT_ONCE", 0)
    monkeypatch.setattr(windows, "LOGITS_AT_ONCE", 1)
    at = long_view(open_page, LONG)
    assert "Score the whole text" in at.button(key="score_all").label
    assert not at.get("plotly_chart")

    real, calls = long_job.Job.add, []

    def stops(job: long_job.Job, part: np.ndarray, seconds: float) -> None:
        real(job, part, seconds)
        calls.append(len(part))
        if len(calls) == 3:
            raise StopException

    monkeypatch.setattr(long_job.Job, "add", stops)
    at.button(key="score_all").click().run()
    assert len(calls) == 3 and not at.exception
    at.run()
    assert "Go on" in at.button(key="score_all").label
    assert f"One average over all {sum(calls)} scored tokens" in " ".join(c.value for c in at.caption)
    at.button(key="score_all").click().run()
    assert not at.exception
    ids = checkpoint.tokenizer.encode(LONG)
    assert sum(calls) == len(ids) - 1  # nothing was scored twice
    formula = next(element.value for element in at.latex if "perplexity" in element.value)
    loss = metrics.score(checkpoint.model, ids, stride=16).loss
    assert f"= {worked.tex(math.exp(loss))}" in formula


@pytest.mark.parametrize("text", ["", "a", MARKUP, "a😀b 👩‍👩‍👧"])
def test_any_length_takes_any_text(open_page: OpenPage, text: str) -> None:
    at = long_view(open_page, text)
    if len(text) < 2:
        assert "nothing to show" in said(at) or "at least 2 tokens" in said(at)
    else:
        assert at.dataframe and at.latex


def test_any_length_names_unknown_characters(open_page: OpenPage) -> None:
    assert "'d'" in said(long_view(open_page, "abd?", model="three-letters")).replace("\\", "")


@pytest.mark.parametrize("view", ["one-position", "any-length"])
def test_s11_a_diverged_model_is_a_sentence(open_page: OpenPage, view: str) -> None:
    at = opened(open_page, STORY, model="wild", query={"look": view})
    assert "not finite" in said(at) and not at.get("plotly_chart")


def test_two_people_keep_their_own_numbers(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    one, other = long_view(open_page, LONG), long_view(open_page, "a" + LONG)
    other.segmented_control(key="unit").set_value("bits").run()
    one.run()
    for at, text, unit in ((one, LONG, "nats"), (other, "a" + LONG, "bits")):
        ids = checkpoint.tokenizer.encode(text)
        log_probs = metrics.score(checkpoint.model, ids, stride=16).log_probs
        table = at.dataframe[0].value
        np.testing.assert_allclose(
            table[f"surprise ({unit})"],
            metrics.surprisal(log_probs[: len(table)], unit),
            rtol=1e-4, atol=1e-6,
        )  # fmt: skip


def test_one_token_has_a_next_but_no_surprise(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, "a")
    assert "at least 2 tokens" in said(at)
    np.testing.assert_allclose(
        tiny.array(bars(at)[0]["x"])[0], metrics.softmax(looked(checkpoint, "a").logits[0]).max(), atol=1e-6
    )
    assert [chip["value"] for chip in chips(at)] == ["given"]


def test_empty_text_has_nothing_to_show(open_page: OpenPage) -> None:
    assert "nothing to show" in said(opened(open_page, ""))


@pytest.mark.parametrize("n_chars", [500, 100_000])
def test_a_long_text_says_what_is_read_and_greys_the_rest(
    open_page: OpenPage, checkpoint: Checkpoint, n_chars: int
) -> None:
    text = (STORY + " ") * (n_chars // len(STORY))
    n = len(checkpoint.tokenizer.encode(text))
    at = opened(open_page, text)
    assert f"Using the last 32 of {n:,} tokens" in said(at)
    grey = [bool(chip.get("greyed")) for chip in chips(at)]
    assert grey == [True] * 24 + [False] * 32
    assert [chip["id"] for chip in chips(at)] == checkpoint.tokenizer.encode(text)[-56:]
    probs = metrics.softmax(looked(checkpoint, text).logits[-1])
    np.testing.assert_allclose(tiny.array(bars(at)[0]["x"])[0], probs.max(), atol=1e-6)
    assert at.query_params["pos"] == "31"


@pytest.mark.parametrize("text", [MARKUP, "a😀b 👩‍👩‍👧", "שלום", "a\x00b\r\n\t"])
def test_any_text_is_shown_literally(open_page: OpenPage, text: str) -> None:
    at = opened(open_page, text)
    ids = [chip["id"] for chip in chips(at)]
    assert ids == tiny.story_tokenizer().encode(text)[-len(ids) :]
    written = [element.value for element in [*at.markdown, *at.subheader, *at.caption]]
    assert not [value for value in written if "onerror" in value or "<b>" in value.replace("\\<", "")]


def test_a_space_at_the_end_is_pointed_at(open_page: OpenPage) -> None:
    assert "ends in a space" in said(opened(open_page, STORY + " "))


def test_a_vocabulary_of_one_token(open_page: OpenPage) -> None:
    at = opened(open_page, "aaaa", model="one-letter")
    np.testing.assert_allclose(tiny.array(bars(at)[0]["x"]), [1.0])
    assert [chip["value"] for chip in chips(at)] == ["given", "0", "0", "0"]


def test_fewer_tokens_than_bars(open_page: OpenPage) -> None:
    at = opened(open_page, "abc", model="three-letters", bars="20")
    drawn = tiny.array(bars(at)[0]["x"])
    assert len(drawn) == 3 and abs(drawn.sum() - 1) < 1e-6


def test_unknown_characters_are_named(open_page: OpenPage) -> None:
    at = opened(open_page, "abd?", model="three-letters")
    assert "'d'" in said(at).replace("\\", "") and "'?'" in said(at).replace("\\", "")


def test_a_masked_model_offers_the_other_kind(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, model="stories-mlm")
    assert "causal model" in said(at)
    at.button(key="use_stories-clm").click().run()
    assert not at.exception and bars(at)


def test_no_model_says_what_to_do(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path_factory.mktemp("none"))
    at = open_page("next_token", text=STORY)
    assert not at.exception and "no model" in said(at).lower()


def test_a_new_text_is_looked_at_from_its_end(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, query={"pos": "2"})
    at.session_state["text"] = STORY + " fox"
    at.run()
    last = len(tiny.story_tokenizer().encode(STORY + " fox")) - 1
    assert at.query_params["pos"] == str(last)


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, query={"pos": "2"})
    at.segmented_control(key="bars").set_value("12").run()
    at.segmented_control(key="unit").set_value("bits").run()
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/next_token.py").run()
    assert at.segmented_control(key="bars").value == "12"
    assert at.segmented_control(key="unit").value == "bits"
    assert "After token 2" in " ".join(element.value for element in at.subheader)


def test_try_this_does_it(open_page: OpenPage) -> None:
    at = opened(open_page, "a")
    for i in range(3):
        at.button(key=f"try_{i}").click().run()
        assert not at.exception and len(chips(at)) > 3


def test_small_numbers_under_a_token_stay_short() -> None:
    assert [lesson.brief(x) for x in (0.0, 1e-9, 0.00123, 2.55, 10.8123)] == [
        "0",
        "<0.001",
        "0.00123",
        "2.55",
        "10.8",
    ]


def test_what_stands_around_a_page_is_drawn_where_the_page_ends_early() -> None:
    def script() -> None:
        import streamlit as st

        from ui import nav

        try:
            nav.end_page()
        finally:
            st.write("around")

    at = AppTest.from_function(script).run()
    assert not at.exception and [text.value for text in at.markdown] == ["around"]
