"""The Training page in a browser, with real training: start, watch, leave, come back, reload, stop, use."""

import json
import re
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine.corpus import own_text
from tests.browser.conftest import (
    Browse,
    Server,
    axe_in_both_themes,
    go_to,
    no_exception,
    open_at,
    running_server,
    settle,
)
from tests.pages.made_runs import make_run

SOURCE = "The tin fox sat on the red hill. The red hen ran to the tin fox. The sun set on the hill. "
LAST_STEP = """run => {
  const chart = document.querySelector(".st-key-training_curve_" + run)
  const look = root => {
    for (const e of root.querySelectorAll("*")) {
      if (e.dataset && e.dataset.lastStep !== undefined) return e.dataset.lastStep
      const inside = e.shadowRoot && look(e.shadowRoot)
      if (inside !== null && inside !== undefined) return inside
    }
    return null
  }
  return Number((chart && look(chart)) || -1)
}"""
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
SLOW = 180_000  # ms; training is niced, so a busy machine makes it wait


@pytest.fixture(scope="module")
def training_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of its own, so that the workers counted here are those of these tests."""
    with running_server(tmp_path_factory.mktemp("training")) as running:
        yield running
    for run in (running.home / "runs").glob("2*"):
        (run / "stop").touch()  # a failed test leaves its run behind: runs outlive the server
    deadline = time.monotonic() + 120  # idle ones see it only once they have imported all they need
    while (left := workers_of(running.home)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left, f"processes are left behind: {left}"


def workers_of(home: Path) -> list[int]:
    """Process numbers of the workers that were started for this data folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except OSError:  # it ended, or is not ours
            continue
        if b"engine.worker" in command and f"LOUPE_HOME={home}".encode() in environment:
            found.append(int(process.name))
    return found


def status(server: Server, run_id: str) -> dict:
    return json.loads((server.home / "runs" / run_id / "status.json").read_text("utf-8"))


def all_runs(server: Server) -> list[str]:
    return sorted(p.name for p in (server.home / "runs").glob("2*"))


def wait_until(check: Callable[[], bool], what: str, seconds: float = SLOW / 1000) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.05)


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).first.click()
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def number(page: Page, key: str, value: float) -> None:
    box = page.locator(f".st-key-{key}").get_by_role("spinbutton")
    box.fill(str(value))
    box.press("Enter")
    settle(page)


def paste(page: Page, text: str) -> None:
    choose(page, "Text", "Paste a text")
    box = page.get_by_label("Your text")
    box.fill(text)
    box.press("Control+Enter")
    settle(page)


def set_up(page: Page, server: Server, text: str, steps: int, *, seed: int = 0, size: str = "nano") -> None:
    open_at(page, f"{server.url}/training")
    paste(page, text)
    choose(page, "Model size", size)
    number(page, "training_steps", steps)
    number(page, "training_seed", seed)


def start(page: Page) -> str:
    page.locator(".st-key-training_start").get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"run=\d{8}-\d{6}-[0-9a-f]{6}"), timeout=SLOW)
    return re.search(r"run=([\w-]+)", page.url).group(1)  # type: ignore[union-attr]


def last_step(page: Page, run_id: str) -> int:
    """The newest step that the run's curve shows; -1 if it is not there."""
    return int(page.evaluate(LAST_STEP, run_id))


def stop(page: Page, server: Server, run_id: str) -> None:
    if status(server, run_id)["state"] in ("queued", "starting", "running", "paused"):
        page.locator(".st-key-training_stop").get_by_role("button").click()
        wait_until(lambda: status(server, run_id)["state"] == "stopped", "stop")


def test_from_pasted_text_to_a_model_that_writes(training_server: Server, browse: Browse) -> None:
    """The whole path: 200 steps on pasted text, seen, left, found again, ended, and used."""
    server, page = training_server, browse()
    set_up(page, server, SOURCE * 40, 200)
    began = time.monotonic()
    run_id = start(page)
    wait_until(lambda: last_step(page, run_id) >= 1, "the first step on the screen")
    print(f"first metric on the screen after {time.monotonic() - began:.2f} s")
    seen = last_step(page, run_id)
    wait_until(lambda: last_step(page, run_id) > seen, "the curve moves")

    go_to(page, "Tokens")
    expect(page.get_by_role("heading", level=1, name="Tokens")).to_be_visible()
    settle(page)
    go_to(page, "Training")
    expect(page.get_by_role("heading", level=1, name="Training")).to_be_visible()
    expect(page).to_have_url(re.compile(run_id))
    wait_until(lambda: last_step(page, run_id) > seen, "the run went on")
    expect(page.get_by_label("Your text")).to_have_value(SOURCE * 40)

    page.reload()
    expect(page.get_by_role("heading", level=1, name="Training")).to_be_visible()
    expect(page).to_have_url(re.compile(run_id))
    wait_until(lambda: last_step(page, run_id) >= seen, "the curve after a reload")
    assert all_runs(server) == [run_id], "still one run"

    wait_until(lambda: status(server, run_id)["state"] == "finished", "200 steps")
    use = page.locator(f".st-key-training_use_{run_id}").get_by_role("button")
    expect(page.get_by_text("finished").first).to_be_visible(timeout=SLOW)
    use.click(timeout=SLOW)
    settle(page)
    no_exception(page)

    go_to(page, "Generation")
    expect(page.get_by_role("heading", level=1, name="Generation")).to_be_visible()
    settle(page)
    picker = page.get_by_test_id("stSidebar").get_by_role("combobox", name="Model")
    expect(picker).to_have_value(re.compile(rf"\({run_id[-4:]}\)$"), timeout=SLOW)
    page.locator(".st-key-generation_write").get_by_role("button").click()
    expect(page.locator(".st-key-generation_undo").get_by_role("button")).to_be_enabled(timeout=SLOW)
    settle(page)
    no_exception(page)


def test_a_double_click_is_one_run_and_stop_takes_two_seconds(
    training_server: Server, browse: Browse
) -> None:
    server, page = training_server, browse()
    before = set(all_runs(server))
    set_up(page, server, SOURCE * 30, 50_000, seed=1)
    page.locator(".st-key-training_start").get_by_role("button").dblclick()
    expect(page).to_have_url(re.compile("run=2"), timeout=SLOW)
    (run_id,) = set(all_runs(server)) - before
    wait_until(lambda: last_step(page, run_id) >= 1, "the first step")
    wait_until(lambda: status(server, run_id)["state"] == "running", "running")

    began = time.monotonic()
    page.locator(".st-key-training_stop").get_by_role("button").click()
    wait_until(lambda: status(server, run_id)["state"] == "stopped", "stop")
    seconds = time.monotonic() - began
    print(f"stopped {seconds:.2f} s after the click")
    expect(page.get_by_text(re.compile("^stopped|stopped$")).first).to_be_visible(timeout=SLOW)
    at = status(server, run_id)["step"]

    page.locator(".st-key-training_resume").get_by_role("button").click()
    wait_until(lambda: status(server, run_id)["step"] > at, "resume goes on")
    wait_until(lambda: last_step(page, run_id) > at, "the curve goes on")
    stop(page, server, run_id)
    expect(page.locator(".st-key-training_resume")).to_be_visible(timeout=SLOW)
    no_exception(page)


def test_pause_one_step_and_play(training_server: Server, browse: Browse) -> None:
    server, page = training_server, browse()
    set_up(page, server, SOURCE * 30, 50_000, seed=4)
    run_id = start(page)
    wait_until(lambda: last_step(page, run_id) >= 1, "the first step")

    def press(key: str) -> None:
        page.locator(f".st-key-training_{key}").get_by_role("button").click(timeout=SLOW)

    press("pause")
    wait_until(lambda: status(server, run_id)["state"] == "paused", "pause")
    expect(page.get_by_text("Paused. Play goes on")).to_be_visible(timeout=SLOW)
    before = status(server, run_id)["step"]
    wait_until(lambda: last_step(page, run_id) == before, "the curve ends where it was paused")
    press("one_step")
    wait_until(lambda: last_step(page, run_id) == before + 1, "one step more")
    wait_until(lambda: status(server, run_id)["state"] in ("paused", "stopped"), "it waits again")
    assert status(server, run_id)["step"] == before + 1
    press("resume")
    wait_until(lambda: last_step(page, run_id) > before + 1, "it plays")
    press("stop")
    wait_until(lambda: status(server, run_id)["state"] == "stopped", "stop")
    no_exception(page)


def made_run(server: Server) -> str:
    """A run with a past of its own making: five lines that lie close together, and nothing was trained."""
    records: list[dict] = [
        {
            "kind": "baseline",
            "step": 0,
            "uniform": 5.545,
            "unigram": 1.53,
            "bigram": 1.52,
            "trigram": 1.5,
            "bits_per_byte": None,
        },
        {"kind": "floor", "step": 0, "value": 1.49},
    ]
    for step in range(0, 201, 20):
        loss = 1.5 + 4 * 2 ** (-step / 25)
        records.append({"kind": "eval", "step": step, "train_loss": loss, "val_loss": loss, "seconds": step})
    corpus = own_text(SOURCE * 20)
    return make_run(server.home, name="made", corpus=corpus, records=records, steps=200)


def test_pressing_the_curve_moves_its_cursor_and_no_words_overlap(
    training_server: Server, browse: Browse
) -> None:
    run_id, page = made_run(training_server), browse()
    open_at(page, f"{training_server.url}/training?run={run_id}")
    curve = page.locator(f".st-key-training_curve_{run_id} .curve")
    plot = curve.get_by_role("slider")
    expect(curve).to_have_attribute("data-last-step", "200")
    boxes = [tuple(map(int, box.split())) for box in str(curve.get_attribute("data-labels")).split(",")]
    assert len(boxes) == 5
    for (x, y, w, h), (u, v, width, height) in combinations(boxes, 2):
        assert x + w <= u or u + width <= x or y + h <= v or v + height <= y, boxes

    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    left, right = box["x"] + 48, box["x"] + box["width"] - 52  # the axes
    at = lambda step: left + step / 200 * (right - left)  # noqa: E731
    page.mouse.move(at(50), box["y"] + 60)
    page.mouse.down()
    page.mouse.move(at(190), box["y"] + 60, steps=4)
    page.mouse.up()
    expect(curve.get_by_role("button", name="Show all steps")).to_be_visible()
    zoomed = str(curve.get_attribute("data-view"))
    middle = sum(map(float, zoomed.split(":"))) / 2
    assert middle == pytest.approx(120, abs=4)
    page.mouse.click((left + right) / 2, box["y"] + 60)
    expect(curve).to_have_attribute("data-chosen", "120")
    expect(page.get_by_text("At step 120, as pressed on the curve.")).to_be_visible()
    assert curve.get_attribute("data-view") == zoomed, "an update keeps the zoom"

    plot.focus()
    plot.press("PageDown")
    expect(page.get_by_text("At step 100, as pressed on the curve.")).to_be_visible()
    expect(curve).to_have_attribute("data-chosen", "100")
    page.get_by_role("button", name="Back to the newest").click()
    expect(curve).to_have_attribute("data-chosen", "")

    page.locator(".st-key-training_quantity").get_by_text("Gradient norm", exact=True).click()
    expect(curve.locator(".ytitle")).to_have_text("gradient norm, before clipping")
    expect(page.get_by_text("The numbers, worked out")).to_be_visible()
    no_exception(page)


def test_somebody_else_can_only_watch(training_server: Server, browse: Browse) -> None:
    server, mine = training_server, browse()
    set_up(mine, server, SOURCE * 30, 50_000, seed=2)
    run_id = start(mine)
    wait_until(lambda: last_step(mine, run_id) >= 1, "the first step")

    other = browse(scheme="dark", width=390, height=844)
    open_at(other, f"{server.url}/training?run={run_id}")
    expect(other.get_by_text("watch only")).to_be_visible()
    wait_until(lambda: last_step(other, run_id) >= 1, "the other sees the curve")
    expect(other.locator(".st-key-training_stop")).to_have_count(0)
    width = other.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert width <= 0, "no sideways scrolling on a phone"
    other.close()

    open_at(mine, f"{server.url}/training")  # the address without the run: the newest is found
    expect(mine).to_have_url(re.compile(run_id))
    stop(mine, server, run_id)


def test_markup_is_never_markup(training_server: Server, browse: Browse) -> None:
    server, page = training_server, browse()
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    set_up(page, server, f"{MARKUP} " * 40, 10, seed=3)
    run_id = start(page)
    wait_until(lambda: status(server, run_id)["state"] == "finished", "the run")
    expect(page.get_by_text("finished").first).to_be_visible(timeout=SLOW)
    settle(page)
    assert page.locator("img[src=x]").count() == 0
    main = page.get_by_test_id("stMain")
    assert main.locator(".katex").filter(has_text=re.compile("^x$")).count() == 0
    page.get_by_role("button", name="Look at the text").click()
    expect(page.get_by_text(MARKUP).first).to_be_visible()


def test_nothing_serious_for_axe(training_server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{training_server.url}/training")
    expect(page.get_by_text("to learn from")).to_be_visible(timeout=SLOW)
    settle(page)
    assert axe_in_both_themes(page) == []
