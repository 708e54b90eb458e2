"""Strangers: what somebody can do with a link, a guess, a forged message, or a text that wants to be more.

A real server on a data folder of its own; people are clients that speak Streamlit's protocol, and one of them
sends what no browser would. At its real size, all pages are tried, and a Chromium looks whether any of the
texts has run. What a link shows to others, and what it doesn't, is a table in docs/serving.md.
"""

import asyncio
import secrets
import tempfile
import tomllib
from pathlib import Path

from benchmarks.app import App, chromium_path, running
from trials import strangers_browser, strangers_guess, strangers_limits, strangers_wire, strangers_words
from trials.load_server import end_all
from trials.outcomes import Check, Options, Part
from trials.strangers_people import Spy, settle

ROOT = Path(__file__).parent.parent


def upload_limit() -> int:
    """MB that the server takes at most, as its settings say."""
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    return int(settings["server"]["maxUploadSize"])


async def at_the_door(app: App, toy: bool) -> list[Check]:
    """Requests from outside, forged numbers, runs without end."""
    async with Spy(app.url) as one, Spy(app.url) as other:
        tab = await one.listen("tokens")
        await other.listen("tokens")
        return [
            await strangers_wire.origins(other),
            *await strangers_wire.sessions(other, tab, upload_limit()),
            strangers_wire.paths(other, app.home),
            strangers_wire.headers(other),
            await strangers_wire.commands(other),
            await strangers_limits.start(other, app.home),
            await strangers_limits.forged(other, app, toy),
        ]


async def two_people(app: App, word: str, toy: bool) -> list[Check]:
    """One has things, the other tries to get at them."""
    things = settle(app.home, word)
    async with Spy(app.url, word) as owner, Spy(app.url) as stranger:
        widgets, offered = await strangers_guess.owners_widgets(owner, things)
        checks = [await strangers_guess.read(stranger, owner, things, toy)]
        checks += await strangers_guess.act(stranger, app.home, things, widgets)
        checks.append(await strangers_guess.files(stranger, owner, offered, things))
        checks.append(await strangers_guess.other_words(stranger, app.home, things))
        return checks


async def texts(app: App, word: str, toy: bool) -> list[Check]:
    """Texts that want to be more than text."""
    ids = strangers_words.settle(app.home, word)
    async with Spy(app.url, word) as author:
        checks = [await strangers_words.sent(author, ids, toy), strangers_words.scripts()]
    if not toy and chromium_path():
        checks += await asyncio.to_thread(strangers_browser.look, app.url, word, ids)
    return checks


async def _all(app: App, toy: bool) -> list[Check]:
    checks = await at_the_door(app, toy)
    checks += await two_people(app, secrets.token_hex(16), toy)
    return checks + await texts(app, secrets.token_hex(16), toy)


def trial(options: Options) -> Part:
    """All of it."""
    checks = [strangers_limits.settings()]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a worker may just be leaving
        checks += strangers_limits.guesses(Path(folder) / "guesses")
        checks.append(strangers_limits.queue(f"{folder}/queue"))
        try:
            with running(f"{folder}/home") as app:
                checks += asyncio.run(_all(app, options.toy))
        finally:
            end_all(f"{folder}/home")  # a run that Start began would go on
    notes = ["What a link shows to others is a table in docs/serving.md."]
    if options.toy or not chromium_path():
        notes.append("Without Chromium: whether a text runs was judged by what was sent alone.")
    return Part("strangers", checks, notes=notes)
