"""A browser that is offline for a minute while a run is trained: it comes back with everything."""

import tempfile
import time

from benchmarks.app import FLAGS, chromium_path, running
from engine.runs import RunStore
from trials.faults_kit import PATIENCE, Tally, ended, spec
from trials.outcomes import Options

MINUTE = 60.0
NAME = "typed before the line broke"
# The line breaks: what is open closes, and nothing new opens while the browser is offline.
LINES = """
const Socket = window.WebSocket
window.lines = []
window.WebSocket = class extends Socket {
  constructor(...given) { super(...given); window.lines.push(this) }
}
"""


def trial(options: Options) -> Tally:
    """Chromium looks at a run; its line breaks for a minute."""
    tally = Tally("browser offline")
    if options.toy or chromium_path() is None:
        tally.left_out = "it takes a browser and a minute"
        return tally
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as home, running(home) as app, sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        context = window.new_context(viewport={"width": 1280, "height": 800})
        context.add_init_script(LINES)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        store = RunStore(home)
        run_id = store.create(spec(steps=1_000_000, d_model=48, batch_size=16), "f" * 32)
        page.goto(f"{app.url}/training?run={run_id}")
        name = page.get_by_label("Name of the run")
        page.get_by_text("More settings").first.click()
        name.fill(NAME)
        name.press("Enter")
        store.resume(run_id, "f" * 32)
        _steps(page)
        context.set_offline(True)
        page.evaluate("window.lines.forEach(line => line.close())")
        at = store.info(run_id).step
        time.sleep(MINUTE)
        went_on = store.info(run_id).step > at
        context.set_offline(False)
        came_back = _reaches(page, at + 1)
        kept = name.input_value() == NAME
        errors = page.locator('[data-testid="stException"]').count()
        whole = _points(page) > 0
        store.stop(run_id, "f" * 32)
        ended(store, run_id)
        store.close()
        window.close()
    told = {
        "the run did not go on alone": went_on,
        "the page did not come back": came_back,
        "what was typed is gone": kept,
        "there is an error on the page": not errors,
        "there is no curve": whole,
    }
    tally.count(", ".join(why for why, fine in told.items() if not fine))
    return tally.promise(
        "After a minute offline the page goes on: the curve is whole, and what was typed is there"
    )


def _steps(page: object) -> int:
    """The step that the page shows."""
    text = page.locator('[data-testid="stProgress"]').first.inner_text()  # type: ignore[attr-defined]
    return int(text.split("step ")[-1].split(" ")[0].replace(",", ""))


def _reaches(page: object, step: int) -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if _steps(page) >= step:
            return True
        time.sleep(0.5)
    return False


def _points(page: object) -> int:
    return int(page.locator("canvas").count())  # type: ignore[attr-defined]
