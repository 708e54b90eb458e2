"""The frame: every page opens, on any text, through app.py's sidebar; the guard of deep links."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import ROOT, OpenPage
from ui import address, model_refs, nav, session

PAGES = [info.name for info in nav.PAGES]
TEXTS = {
    "default": session.DEFAULT_TEXT,
    "empty": "",
    "one token": "a",
    "emoji": "👍🏽 the 👩‍👩‍👧 and 中文",
    "markup": "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>",
    "long": "Once upon a time " * 400,
}


def check(at: AppTest) -> None:
    assert not at.exception, at.exception[0].value
    assert at.title, "every page has a title"
    assert at.sidebar.text_area(key="text") is not None


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("name", PAGES)
def test_page_opens(open_page: OpenPage, name: str, text: str) -> None:
    at = open_page(name, text=text)
    check(at)
    assert at.sidebar.text_area(key="text").value == text


@pytest.mark.parametrize("name", PAGES)
def test_page_opens_with_the_masked_model(open_page: OpenPage, name: str) -> None:
    if "stories-mlm" not in {ref.id for ref in model_refs.shipped_models()}:
        pytest.skip("pretrained/stories-mlm is not there")
    at = open_page(name, model="stories-mlm")
    check(at)
    assert at.sidebar.selectbox(key="model").value == "stories-mlm"


@pytest.mark.parametrize("name", PAGES)
def test_page_opens_without_any_model(
    open_page: OpenPage, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path / "empty")
    check(open_page(name))


@pytest.mark.parametrize("name", PAGES)
def test_damaged_weights_are_a_sentence(
    open_page: OpenPage, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    if not model_refs.shipped_models():
        pytest.skip("pretrained/ is empty")
    shutil.copytree(model_refs.PRETRAINED / "stories-clm", tmp_path / "stories-clm")
    weights = tmp_path / "stories-clm" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path)
    check(open_page(name))


def test_a_page_run_alone_goes_through_app() -> None:
    """Without a first run of app.py, `switch_page` starts the page alone: the guard must bring the frame."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at.switch_page(f"pages/{PAGES[-1]}.py").run()
    check(at)


def test_text_with_half_an_emoji_is_repaired_and_said(open_page: OpenPage) -> None:
    at = open_page("home", text="robot \ud83e")
    check(at)
    assert at.sidebar.text_area(key="text").value == "robot \ufffd"
    assert any("broken" in caption.value for caption in at.sidebar.caption)
    at.sidebar.text_area(key="text").set_value("robot").run()
    assert not any("broken" in caption.value for caption in at.sidebar.caption)


def test_text_comes_from_the_address_and_stays_over_pages(open_page: OpenPage) -> None:
    at = open_page("home", query={"text": "a robot"})
    assert at.session_state["text"] == "a robot"
    for name in PAGES:
        at.switch_page(f"pages/{name}.py").run()
        assert at.sidebar.text_area(key="text").value == "a robot", name


def test_an_address_that_comes_late_does_not_bring_the_old_text_back(open_page: OpenPage) -> None:
    at = open_page("home", query={"text": "old"})
    at.sidebar.text_area(key="text").set_value("new").run()
    assert at.query_params["text"] == "new"
    at.query_params["text"] = "old"  # sent before the browser knew of the change
    at.run()
    assert at.session_state["text"] == "new"
    assert at.query_params["text"] == "new"


def test_a_choice_in_the_address_survives_another_page(open_page: OpenPage) -> None:
    at = open_page("next_token", query={"unit": "bits"})
    assert at.session_state["unit"] == "bits"
    del at.query_params["unit"]  # a menu's link comes without it
    at.switch_page("pages/tokens.py").run()
    at.query_params.clear()
    at.switch_page("pages/next_token.py").run()
    assert at.session_state["unit"] == "bits" and at.query_params["unit"] == "bits"


def test_back_takes_the_text_of_the_address(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "_LATE", 0.0)
    at = open_page("home", query={"text": "old"})
    at.sidebar.text_area(key="text").set_value("new").run()
    at.query_params["text"] = "old"
    at.run()
    assert at.session_state["text"] == "old"
    del at.query_params["text"]
    at.run()
    assert at.session_state["text"] == session.DEFAULT_TEXT


def test_a_long_text_stays_out_of_the_address(open_page: OpenPage) -> None:
    at = open_page("home", text="中" * 1000)  # 9,000 characters once percent-encoded
    assert "text" not in at.query_params
    at = open_page("home", text="中" * 100)
    assert at.query_params["text"] == "中" * 100


def test_an_unknown_model_in_the_address_is_ignored(open_page: OpenPage) -> None:
    at = open_page("home", query={"model": "somebody's"})
    check(at)


@pytest.mark.parametrize("asked", ["hub:gone", "$x$ <b>b</b> :red[q]", "run:20200101-000000-abcdef"])
def test_a_link_to_a_model_that_is_not_here_says_which_one_is_shown(open_page: OpenPage, asked: str) -> None:
    """A teacher's link may name a model that a student's machine lacks: its numbers are another model's."""
    told = "What you see is stories"
    at = open_page("home", query={"model": asked})
    if asked.startswith("run:"):  # it may be one's own, until the browser has said who it is
        assert not any(told in one.value for one in at.warning)
        at.run()
    (notice,) = (one.value for one in at.warning if told in one.value)
    assert re.sub(r"\\(.)", r"\1", notice).startswith(f"The model “{asked}” is not here")
    at.session_state["model"] = "stories-mlm"
    at.run()
    assert not any(told in one.value for one in at.warning), "somebody chose a model"


def test_a_model_that_is_deleted_while_it_is_looked_at_is_missed(
    open_page: OpenPage, published: Path
) -> None:
    at = open_page("home", model="hub:llama")
    assert at.session_state["model"] == "hub:llama" and not at.warning
    shutil.rmtree(published / "llama")
    at.run()
    assert any("hub" in one.value and "What you see is" in one.value for one in at.warning)


def test_the_owner_is_the_word_that_the_browser_keeps(open_page: OpenPage) -> None:
    at = open_page("home")
    first = at.session_state["_owner_proposal"]
    assert len(first) == 32
    at.session_state["_owner"] = {"token": "0123456789abcdef" * 2}
    at.run()
    check(at)
    from ui.components.owner import _FORM

    assert _FORM.fullmatch(at.session_state["_owner"]["token"])


def test_a_link_to_an_own_run_waits_until_the_browser_says_whose_it_is(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = model_refs.shipped_models()
    own = replace(shipped[0], id="run:20261130-abcd", name="mine", kind="run")
    known = [*shipped]
    monkeypatch.setattr(model_refs, "available_models", lambda owner: known)
    at = open_page("tokens", query={"model": own.id})
    assert at.session_state["model"] == shipped[0].id  # nobody knows yet whose runs may be shown
    known.append(own)
    assert at.run().session_state["model"] == own.id
    at.selectbox(key="model").set_value(shipped[0].id).run()
    assert at.run().session_state["model"] == shipped[0].id  # and it asks no more


def test_the_pickers_say_what_every_shipped_model_has_learned(open_page: OpenPage) -> None:
    shipped = model_refs.shipped_models()
    at = open_page("models")
    for picker in (at.sidebar.selectbox(key="model"), at.selectbox(key="look_at")):
        for ref in shipped:
            (option,) = [option for option in picker.options if option.startswith(ref.label)]
            assert re.fullmatch(rf"{ref.label} · [\w -]{{5,20}}", option)
    assert all(ref.label in at.sidebar.selectbox(key="model").help for ref in shipped)
    own = replace(shipped[0], id="run:20261130-abcd", name="mine", kind="run")
    assert own.choice == own.label
