"""P12: from a moved slider to the new picture: the temperature on the Generation page.

Measured are the two views with that slider, Write, which students use most, and the waterfall; in both, the
sliders and the picture run alone. The goals hold for the slower of the two.
The server's part is one round trip over the websocket as a client that speaks Streamlit's protocol sees it
(`benchmarks.client`). What a person sees is measured in Chromium: from the key
press on the slider to the frame with the new bars. The peer is the same app with Streamlit's settings as they
come, see `app.STOCK`; it takes turns with the app.
"""

import asyncio
import statistics
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from benchmarks.app import App, chromium_path, new_page, running
from benchmarks.client import Person
from benchmarks.rows import Goal, Measure, Options, Row, Spread

TURNS = 8  # of the slider in a round, for the server; so many key presses in the browser
BEGIN = {"temperature": "1", "top_p": "1"}  # all tokens can be drawn: every degree is another picture
VIEWS = {"write": "", "waterfall": ", waterfall"}  # name in the address, and in the figures
NOTES = "In the Write view, and in the waterfall where it says so; the goals hold for the slower of the two."
SERVER_MS, PAINTED_MS = 40.0, 150.0
# In the page: the milliseconds from each key press on the slider to the frame with other bars than before.
WATCH = """() => {
  const find = root => {
    for (const e of root.querySelectorAll("*")) {
      if (e.classList.contains("bars") && e.querySelector("table")) return e
      const inside = e.shadowRoot && find(e.shadowRoot)
      if (inside) return inside
    }
  }
  window.timed = []
  document.addEventListener("keydown", event => {
    if (event.key !== "ArrowRight") return
    const began = event.timeStamp, old = find(document).innerHTML
    const look = () => {
      const now = find(document)
      if (now && now.innerHTML !== old) requestAnimationFrame(end => window.timed.push(end - began))
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  }, true)
}"""
Times = dict[str, list[float]]  # of each program: the median of each round, ms


async def round_trips(apps: dict[str, App], view: str, rounds: int, turns: int) -> Times:
    """Move the slider without a browser."""
    found: Times = {name: [] for name in apps}
    tabs = {name: await Person(app.url).open("generation", lab=view, **BEGIN) for name, app in apps.items()}
    for i in range(-1, rounds):
        for name, tab in tabs.items():
            times = [
                1000 * (await tab.rerun(temperature=round(1 + 0.01 * (turn + turns * (i + 1)), 2))).seconds
                for turn in range(turns)
            ]
            if problems := tab.exceptions():
                raise RuntimeError(problems[0])
            if i >= 0:  # the round before the first is for caches
                found[name].append(statistics.median(times))
    for tab in tabs.values():
        await tab.close()
    return found


def painted(page: Page, turns: int) -> list[float]:
    """Press the arrow key on the slider so many times; ms to each new picture."""
    slider = page.locator(".st-key-temperature").get_by_role("slider")
    page.evaluate("window.timed.length = 0")
    for n in range(turns):
        slider.press("ArrowRight")
        page.wait_for_function("n => window.timed.length > n", arg=n, timeout=60_000)
        page.wait_for_timeout(250)  # a look at it
    return [float(ms) for ms in page.evaluate("window.timed")]


def in_a_browser(apps: dict[str, App], view: str, rounds: int, turns: int) -> Times:
    """Move the slider in Chromium."""
    found: Times = {name: [] for name in apps}
    with sync_playwright() as playwright:
        pages = {name: new_page(playwright) for name in apps}
        for name, page in pages.items():
            page.goto(f"{apps[name].url}/generation?{urlencode({**BEGIN, 'lab': view})}")
            page.locator(".bars table").wait_for(timeout=120_000)
            page.wait_for_timeout(1500)
            page.evaluate(WATCH)
            painted(page, 3)
        for _ in range(rounds):
            for name, page in pages.items():
                page.bring_to_front()
                found[name].append(statistics.median(painted(page, turns)))
        for page in pages.values():
            page.close()
    return found


def slower(figures: Times, what: str) -> Spread:
    """Of Loupe's two views the one whose median is the larger."""
    both = [Spread.of(figures[f"Loupe, {what}{shown}"]) for shown in VIEWS.values()]
    return max(both, key=lambda one: one.median)


def measure(options: Options) -> Row:
    """P12."""
    turns, rounds = (2, 1) if options.toy else (TURNS, options.rounds)
    seen = not options.toy and chromium_path() is not None
    with running() as tuned, running(stock=True) as stock:
        apps = {"Loupe": tuned, "Streamlit as it comes": stock}
        figures: dict[str, list[float]] = {}
        for view, shown in VIEWS.items():
            times = asyncio.run(round_trips(apps, view, rounds, turns))
            figures |= {f"{name}, server{shown}": found for name, found in times.items()}
        goals = [Goal("ms of the server", slower(figures, "server"), SERVER_MS, at_least=False)]
        for view, shown in VIEWS.items() if seen else ():
            times = in_a_browser(apps, view, rounds, turns)
            figures |= {f"{name}, painted{shown}": found for name, found in times.items()}
        if seen:
            painting = slower(figures, "painted")
            goals.append(Goal("ms until it is painted", painting, PAINTED_MS, at_least=False))
    return Row(
        id="P12",
        what="a slider's new picture (temperature, page Generation)",
        unit="ms",
        figures={name: Spread.of(times) for name, times in figures.items()},
        goals=goals,
        notes=NOTES if seen else f"{NOTES} No browser took part: only the server's time was measured.",
    )


MEASURES: dict[str, Measure] = {"P12": measure}
