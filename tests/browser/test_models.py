"""A model comes from a hub while its page is left, reloaded and looked at again."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Browse, axe, no_exception, open_at, running_server, settle
from tests.fake_hub import fake_hub
from tests.hub_folders import write_llama

pytest.importorskip("huggingface_hub", reason="needs the package huggingface_hub")


def test_a_download_survives_a_reload_and_the_model_is_there(browse: Browse, tmp_path: Path) -> None:
    with fake_hub() as hub, running_server(tmp_path, HF_ENDPOINT=hub.url, NO_PROXY="127.0.0.1") as server:
        hub.models["someone/tiny"] = write_llama(tmp_path / "served")
        hub.slow = {"model.safetensors"}
        page, address = browse(), f"{server.url}/models?models=get"
        open_at(page, address)
        page.get_by_label("Model (owner/name)").fill("someone/tiny")
        page.locator(".st-key-models_ask_hub button").click()
        download = page.locator(".st-key-models_download button")
        expect(download).to_be_enabled()
        assert hub.files("someone/tiny")[-1] == "config.json"
        download.click()
        stop = page.get_by_role("button", name="Stop")
        expect(stop).to_be_visible()
        open_at(page, address)  # a new session, as after a reload
        expect(stop).to_be_visible()
        hub.release.set()
        expect(page.get_by_text("someone/tiny is here")).to_be_visible()
        settle(page)
        no_exception(page)
        page.get_by_role("button", name="Close").click()
        open_at(page, f"{server.url}/models?look_at=hub:tiny")
        expect(page.get_by_role("heading", name="tiny")).to_be_visible()
        page.locator(".st-key-models_use button").click()
        expect(page).to_have_url(re.compile("model=hub%3Atiny"))
        settle(page)
        no_exception(page)
        assert axe(page) == []
        page.close()  # before its server goes
