"""The time machine in a browser: the slider moves every part at once, and Play walks through the moments."""

from typing import Any

from playwright.sync_api import Page, expect

from benchmarks.time_machine import FIND_ROOT
from tests.browser.conftest import Browse, Server, axe, go_to, no_exception, open_at

STEPS = (
    "() => {"
    + FIND_ROOT
    + """  const row = root && root.querySelector(".bars tbody tr")
  if (!row) return { steps: ["none"] } // another page, or not drawn yet
  const parts = ["strip", "plot", "track", "bars", "board", "sample"]
  return { steps: parts.map(name => root.querySelector("." + name).dataset.step),
           ready: Number(root.dataset.ready), playing: root.dataset.playing,
           first: row.innerText,
           sample: root.querySelector(".sample").innerText,
           under: [...root.querySelectorAll(".strip .value")].map(e => e.textContent).join(" ") }
}"""
)


def machine(page: Page) -> Any:
    return page.evaluate(STEPS)


def wait_for(page: Page, condition: str, arg: Any = None) -> None:
    page.wait_for_function(f"arg => {{ const now = ({STEPS})(); return {condition} }}", arg=arg)


def open_machine(page: Page, server: Server) -> Any:
    open_at(page, f"{server.url}/training?watch=time-machine")
    slider = page.get_by_role("slider", name="Moment of the training")
    expect(slider).to_be_visible()
    wait_for(page, "now.ready === 24")  # every moment has written its sample
    return slider


def test_a_key_on_the_slider_moves_every_part(server: Server, browse: Browse) -> None:
    page = browse()
    slider = open_machine(page, server)
    last = machine(page)
    assert set(last["steps"]) == {"6000"}
    slider.press("ArrowLeft")
    wait_for(page, "now.steps.every(step => step === '5369')")
    slider.press("Home")
    wait_for(page, "now.steps.every(step => step === '0')")
    first = machine(page)
    assert all(first[name] != last[name] for name in ("first", "sample", "under"))
    assert str(slider.get_attribute("aria-valuetext")).startswith("step 0,")
    page.locator(".strip .chip").nth(4).click()  # another token: the moment stays
    expect(page.locator(".barshead")).to_contain_text("After token 4")
    assert set(machine(page)["steps"]) == {"0"}
    go_to(page, "Tokens")
    expect(page.get_by_role("heading", level=1)).to_have_text("Tokens")
    go_to(page, "Training")
    wait_for(page, "now.steps.every(step => step === '0')")  # after another page too
    assert not axe(page)
    no_exception(page)


def test_play_walks_from_the_start_to_the_end_and_pauses(server: Server, browse: Browse) -> None:
    page = browse()
    slider = open_machine(page, server)
    page.get_by_role("button", name="Play").click()
    wait_for(page, "now.playing === 'true' && Number(now.steps[0]) > 2 && Number(now.steps[0]) < 6000")
    page.get_by_role("button", name="Pause").click()
    wait_for(page, "now.playing === 'false'")
    stopped = machine(page)["steps"]
    assert len(set(stopped)) == 1
    slider.press("End")
    slider.press("ArrowLeft")
    page.get_by_role("button", name="Play").click()
    wait_for(page, "now.playing === 'false' && now.steps.every(step => step === '6000')")
    no_exception(page)
