"""People with a real browser among the others: does their screen move, does it say anything went wrong?"""

import asyncio
import random
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from playwright.async_api import Error, Page, async_playwright

from benchmarks.app import FLAGS, chromium_path

PAGES = ("next_token", "tokens", "attention", "generation", "inside", "embeddings", "")
WAIT = 60_000  # ms
# Counts, in the page, how late a clock of 50 ms ticks, and what the connection says at each tick.
WATCH = """() => {
  if (window.watched) return
  window.watched = { gap: 0, lost: 0 }
  let last = performance.now()
  setInterval(() => {
    const now = performance.now(), app = document.querySelector("[data-testid=stApp]")
    window.watched.gap = Math.max(window.watched.gap, now - last - 50)
    last = now
    if (app && app.dataset.testConnectionState !== "CONNECTED") window.watched.lost += 1
  }, 50)
}"""
READY = """() => {
  const app = document.querySelector("[data-testid=stApp]")
  return app && app.dataset.testScriptState === "notRunning" && document.querySelector("h1")
}"""


@dataclass
class Screens:
    """What was seen on the screens.

    Attributes:
        pages: how many were looked at.
        problems: error boxes, lost connections, pages that never came.
        longest_freeze: ms in which a screen could not do anything.
    """

    pages: int = 0
    problems: list[str] = field(default_factory=list)
    longest_freeze: float = 0.0


async def look_around(page: Page, url: str, dice: random.Random, until: float, seen: Screens) -> None:
    """Open one page after the other, turn something there, and see that all is well."""
    while time.monotonic() < until:
        name = dice.choice(PAGES)
        try:
            await page.goto(f"{url}/{name}", timeout=WAIT)
            await page.wait_for_function(READY, timeout=WAIT)
            await page.evaluate(WATCH)
            await asyncio.sleep(1)
            box = page.get_by_role("textbox").first
            await box.fill(f"The cat number {dice.randrange(1000)} sat on the", timeout=WAIT)
            await box.press("Control+Enter", timeout=WAIT)
            await asyncio.sleep(dice.uniform(3, 9))
            boxes = await page.get_by_test_id("stException").count()
            watched = await page.evaluate("() => window.watched")
        except Error as error:
            seen.problems.append(f"/{name}: {str(error).splitlines()[0]}")
            continue
        seen.pages += 1
        seen.longest_freeze = max(seen.longest_freeze, float(watched["gap"]))
        seen.problems += [f"/{name}: an error box"] * bool(boxes)
        seen.problems += [f"/{name}: the connection was lost"] * bool(watched["lost"])


async def browse(url: str, n: int, seed: int, until: float, seen: Screens) -> None:
    """So many people with a Chromium until some moment; nobody where there is none."""
    path = chromium_path()
    if not n or path is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        await _browse(giving_way(path, Path(folder)), url, n, seed, until, seen)


def giving_way(program: str, folder: Path) -> str:
    """A program that leaves the processor to the server: a browser has a machine of its own in a class.

    It is a session of its own, which Linux weighs before processes; see `engine.processes.yield_to_others`.
    """
    nice = shutil.which("nice")
    if nice is None:
        return program
    script = folder / "browser"
    group = "[ -w /proc/self/autogroup ] && echo 10 > /proc/self/autogroup"
    script.write_text(f'#!/bin/sh\n{group}\nexec {nice} -n 10 "{program}" "$@"\n', "utf-8")
    script.chmod(0o700)
    return str(script)


async def _browse(path: str, url: str, n: int, seed: int, until: float, seen: Screens) -> None:
    async with async_playwright() as playwright:
        window = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        pages = [
            await (await window.new_context(viewport={"width": 1280, "height": 800})).new_page()
            for _ in range(n)
        ]
        dices = [random.Random(f"{seed} {place}") for place in range(n)]
        await asyncio.gather(
            *(look_around(one, url, dice, until, seen) for one, dice in zip(pages, dices, strict=True))
        )
        await window.close()
