"""A browser that is offline for a minute while its run is trained: it comes back with everything."""

import json
import re
import tempfile
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.app import FLAGS, chromium_path, running
from engine.runs import RunStore
from trials.faults_kit import Tally, at_work, curve, ended, wait_until
from trials.outcomes import Options
from ui.link_address import link

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, WebSocketRoute

MINUTE = 60.0
STEPS, NAME = 100_000, "typed before the line broke"
# The newest step of the live curve, -1 if there is none; it lies inside a shadow root.
LAST_STEP = """() => {
  const look = root => {
    for (const e of root.querySelectorAll("*")) {
      if (e.dataset && e.dataset.lastStep !== undefined) return Number(e.dataset.lastStep)
      const inside = e.shadowRoot ? look(e.shadowRoot) : -1
      if (inside >= 0) return inside
    }
    return -1
  }
  return look(document)
}"""
CONNECTED = '[data-testid="stApp"][data-test-connection-state="CONNECTED"]'


class Line:
    """What a browser reaches the server by; it can be cut."""

    def __init__(self, context: "BrowserContext") -> None:
        self._context, self._whole, self._ends = context, True, list["WebSocketRoute"]()
        context.route_web_socket("**/*", self._open)

    def _open(self, socket: "WebSocketRoute") -> None:
        if self._whole:
            self._ends += [socket, socket.connect_to_server()]
        else:
            socket.close()

    def cut(self) -> None:
        """What is open closes, and nothing new opens."""
        self._whole = False
        self._context.set_offline(True)
        for end in self._ends:
            end.close()
        self._ends.clear()

    def mend(self) -> None:
        """The browser is online again."""
        self._whole = True
        self._context.set_offline(False)


def trial(options: Options) -> Tally:
    """Chromium trains a run; its line breaks for a minute."""
    tally = Tally("browser offline")
    if options.toy or chromium_path() is None:
        tally.left_out = "it takes a browser and a minute"
        return tally
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        at_work(home) as store,
        running(home) as app,
        sync_playwright() as playwright,
    ):
        window = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        context = window.new_context(viewport={"width": 1280, "height": 800})
        line = Line(context)
        page = context.new_page()
        page.set_default_timeout(MINUTE * 1000)
        page.goto(link(app.url, "training", {"set": json.dumps({"training_steps": STEPS})}))
        run_id = _started(page, store)
        page.get_by_text("More settings").click()
        name = page.get_by_label("Name of the run")
        name.fill(NAME)  # for the next run; it is not sent before Enter
        line.cut()
        page.locator(CONNECTED).wait_for(state="detached")
        seen, at = _last_step(page), store.info(run_id).step
        time.sleep(MINUTE)
        alone = store.info(run_id).step
        still = _last_step(page)
        line.mend()
        page.locator(CONNECTED).wait_for()
        came_back = wait_until(lambda: _last_step(page) >= alone)
        told = {
            "the run did not go on alone": alone > at,
            "the page showed something new without a line": still == seen,
            "the page did not come back": came_back,
            "what was typed is gone": name.input_value() == NAME,
            "there is an error on the page": page.locator('[data-testid="stException"]').count() == 0,
        }
        page.locator(".st-key-training_stop").get_by_role("button").click()
        info = ended(store, run_id)
        steps = [point["step"] for point in curve(info.folder) if point["kind"] == "step"]
        strides = [b - a for a, b in pairwise([0, *steps, info.step])]
        told["the curve has a gap"] = min(strides[:-1]) > 0 and max(strides) < (alone - at) / 2
        told["the run can't be stopped from the page"] = info.state == "stopped"
        window.close()
    tally.count(", ".join(why for why, fine in told.items() if not fine))
    return tally.promise(
        "After a minute offline the page goes on: the curve is whole, and what was typed is there",
        f"{alone - at:,} steps were trained meanwhile",
    )


def _started(page: "Page", store: RunStore) -> str:
    """Press Start; the run, once the curve has a step of it."""
    page.locator(".st-key-training_start").get_by_role("button").click()
    page.wait_for_url(re.compile(r"run=[\w-]+"))
    assert wait_until(lambda: _last_step(page) >= 1), "the run shows no step"
    (info,) = store.list()
    return info.id


def _last_step(page: "Page") -> int:
    return int(page.evaluate(LAST_STEP))
