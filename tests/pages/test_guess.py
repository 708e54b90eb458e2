"""The Guess page: a bet is kept, paid in bits, and set beside what all others paid."""

import math
import re
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import guess
from engine.checkpoints import Checkpoint, save_checkpoint
from engine.config import ModelConfig
from engine.grammar import default_grammar
from engine.model import Transformer
from engine.oracle import Oracle
from engine.tokenizers import byte_tokenizer
from tests.pages.conftest import OpenPage, Pair, component, plotly
from tests.pages.made_runs import MINE, STORY, make_run
from tests.pages.tiny import array
from ui import session

SEED = 7


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOUPE_HOME", str(tmp_path))
    monkeypatch.setattr(session, "owner", lambda: MINE)
    return tmp_path


def part_of(models: Pair) -> guess.Round:
    tokenizer = models[0].tokenizer
    return guess.story_round(tokenizer, SEED, oracle=Oracle(default_grammar(), tokenizer))


def opened(open_page: OpenPage, **state: object) -> AppTest:
    at = open_page("guess", query={"seed": str(SEED)}, **state)
    assert not at.exception
    return at


def bet(at: AppTest, place: int = 0, percent: int = 50) -> AppTest:
    at.radio[0].set_value(place)
    at.select_slider[0].set_value(percent)
    at = at.run()
    at = next(b for b in at.button if b.key == "guess_bet").click().run()
    assert not at.exception
    return at


def bits(at: AppTest) -> dict[str, float]:
    bars = plotly(at, "guess_totals")
    names = bars["layout"]["yaxis"]["ticktext"]
    return dict(zip(names, array(bars["data"][0]["x"]).tolist(), strict=True))


@pytest.mark.parametrize("language", ["en", "es"])
def test_before_the_first_bet_nothing_is_shown_of_what_comes(
    open_page: OpenPage, models: Pair, language: str
) -> None:
    at = opened(open_page, lang=language)
    part = part_of(models)
    chips = [chip for group in component(at, "guess_strip")["groups"] for chip in group["chips"]]
    assert len(chips) == min(10, part.start - part.first)
    assert not at.get("plotly_chart") and ("Apostar" if language == "es" else "Bet") in [
        b.label for b in at.button
    ]
    assert at.query_params.get("seed") in (["7"], "7")  # and nothing of the answers
    assert set(at.query_params) <= {"seed", "lang", "model"}


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_bet_costs_what_it_gave_the_token_that_came(
    open_page: OpenPage, models: Pair, language: str
) -> None:
    part, v = part_of(models), models[0].tokenizer.vocab_size
    at = opened(open_page, lang=language)
    at = bet(at, 6, 60)  # none of these
    from ui import guess_data, model_refs

    (ref,) = [ref for ref in model_refs.shipped_models() if ref.objective == "clm"]
    listed = guess.candidates(guess_data.counts(ref), part.before(0))
    mine = guess.bits(guess.pick(None, listed, 60, v), part.answer(0))
    field = guess_data.field(ref, SEED)
    found = bits(at)
    assert found["tú" if language == "es" else "you"] == pytest.approx(mine)
    assert found["la verdad" if language == "es" else "the truth"] == pytest.approx(field.bits["truth"][0])
    assert found["uniforme" if language == "es" else "uniform"] == pytest.approx(math.log2(v))
    lines = plotly(at, "guess_lines")["data"]
    assert len(lines) == 7 and all(len(array(line["y"])) == 1 for line in lines)


def test_a_whole_round_ends_with_all_totals_and_another_text(open_page: OpenPage, models: Pair) -> None:
    at = opened(open_page)
    for n in range(guess.TOKENS):
        assert f"Token {n + 1} of 10" in at.subheader[0].value
        at = bet(at, n % 7, 30)
    assert not at.radio and any("last token" in info.value for info in at.info)
    table = at.dataframe[0].value
    assert len(table) == 10 and list(table.columns)[:2] == ["Token", "you"]
    assert bits(at)["you"] == pytest.approx(table["you"].sum(), abs=1e-3)
    floor = next(c.value for c in at.caption if "entropy" in c.value)
    from ui import guess_data, model_refs

    (ref,) = [ref for ref in model_refs.shipped_models() if ref.objective == "clm"]
    exact = guess_data.field(ref, SEED).floor
    assert exact is not None
    assert float(re.findall(r"[\d.]+", floor)[0]) == pytest.approx(sum(exact), rel=1e-3)
    at = next(b for b in at.button if b.key == "guess_next").click().run()
    assert not at.exception and at.number_input[0].value == SEED + 1 and at.radio


def test_a_reload_keeps_the_round_and_no_bet_can_be_made_again(open_page: OpenPage, models: Pair) -> None:
    first = bet(opened(open_page), 1, 90)
    again = opened(open_page)
    assert bits(again) == bits(first) and "Token 2 of 10" in again.subheader[0].value
    assert "Token 1 of 10" in open_page("guess", query={"seed": "8"}).subheader[0].value


def test_chips_go_on_any_tokens_and_the_rest_is_told(open_page: OpenPage, models: Pair) -> None:
    at = opened(open_page, bet="chips")
    part, v = part_of(models), models[0].tokenizer.vocab_size
    other = next(i for i in at.multiselect[0].options if i)  # options are names
    at.multiselect[0].select(other).run()
    assert not at.exception
    assert at.multiselect[0].proto.select_all == 0  # Enter takes one token, not all that the search found
    assert at.number_input[1].value == 60
    assert f"{v - 1}" in next(c.value for c in at.caption if "chips are left" in c.value)
    at.number_input[1].set_value(99).run()
    at = next(b for b in at.button if b.key == "guess_bet").click().run()
    assert not at.exception
    token = int(re.findall(r"\(id (\d+)\)", str(other))[0])
    assert bits(at)["you"] == pytest.approx(guess.bits(guess.bet({token: 99}, v), part.answer(0)))


def test_more_than_99_chips_are_refused(open_page: OpenPage, models: Pair) -> None:
    at = opened(open_page, bet="chips")
    names = list(at.multiselect[0].options)[:2]
    at.multiselect[0].select(names[0]).select(names[1]).run()
    at.number_input[1].set_value(60).run()
    at.number_input[2].set_value(40).run()
    assert next(b for b in at.button if b.key == "guess_bet").disabled
    assert any("100 chips" in w.value for w in at.warning)


def test_a_run_on_another_text_is_played_on_its_validation_part_without_a_floor(
    open_page: OpenPage, models: Pair, home: Path
) -> None:
    run_id = make_run(home)
    tokenizer = byte_tokenizer()
    config = ModelConfig(256, 16, 1, 1, 8)
    made = Checkpoint(Transformer(config, torch.Generator().manual_seed(1)), tokenizer, step=10)
    save_checkpoint(home / "runs" / run_id / "checkpoints" / "0000010", made)
    at = bet(opened(open_page, model=f"run:{run_id}"), 0, 50)
    found = bits(at)
    assert len(found) == 6 and "the truth" not in found and found["uniform"] == pytest.approx(8)
    assert any("no floor" in c.value for c in at.caption)
    shown = "".join(text.value for text in at.text)
    chips = [chip for group in component(at, "guess_strip")["groups"] for chip in group["chips"]]
    assert len(chips) == 11 and shown.removesuffix(" …") in (STORY * 4)


def test_a_masked_model_is_asked_to_step_aside(open_page: OpenPage, models: Pair) -> None:
    at = open_page("guess", model="tiny-mlm")
    assert not at.exception and not at.radio and at.info
