"""A real server and a real browser, which reaches nothing but this machine; every error it sees counts."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as NotInTime

from ui import nav

ROOT = Path(__file__).parents[2]
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"]  # no network
READY = "[data-testid=stApp][data-test-script-state=notRunning][data-test-connection-state=CONNECTED]"
BAD_IN_LOG = re.compile(r"Traceback|ScriptRunContext|Error|WARNING|Warning|deprecated", re.IGNORECASE)
SERVED = re.compile(r'"GET \S+ HTTP/1\.1" [23]\d\d$')  # a file named ErrorElement is no error
PROBES = re.compile(
    r"/\w+/_stcore/(health|host-config)$"
)  # on a deep link Streamlit first asks below it: 404
PATIENCE = 60_000  # ms; the outcome usually comes at once, but a test machine may be busy
Browse = Callable[..., Page]


@dataclass
class Server:
    url: str
    home: Path
    log: Path
    process: subprocess.Popen[bytes]
    started: float  # time.monotonic() when its process was started


OFFLINE = """
import socket

def refuse(real):
    def call(*args, **kwargs):
        if isinstance(args[0], socket.socket) and args[0].type == socket.SOCK_DGRAM:
            return real(*args, **kwargs)  # sends nothing: asks the system which of its addresses goes out
        host = args[1][0] if isinstance(args[0], socket.socket) and isinstance(args[1], tuple) else args[0]
        if host in (None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0") or isinstance(host, socket.socket):
            return real(*args, **kwargs)
        print(f"Error: asked the network for {host}", flush=True)
        raise OSError("the network is switched off")
    return call

socket.socket.connect = refuse(socket.socket.connect)
socket.getaddrinfo = refuse(socket.getaddrinfo)
"""


@contextmanager
def running_server(folder: Path, **environment: str) -> Iterator[Server]:
    """`streamlit run app.py` without a network and with a data folder of its own; its log must stay clean."""
    (folder / "offline").mkdir()
    (folder / "offline" / "sitecustomize.py").write_text(OFFLINE, "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    command += ["--server.port", str(port), "--server.headless", "true"]
    environment = {"LOUPE_HOME": str(folder / "loupe"), "PYTHONPATH": str(folder / "offline"), **environment}
    started = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://localhost:{port}"
        wait_for_health(url, process, log)
        yield Server(url, folder / "loupe", log, process, started)
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0, "Ctrl+C must end the server"
    finally:
        process.kill()
        process.wait()
    lines = log.read_text("utf-8", "replace").splitlines()
    bad = [line for line in lines if BAD_IN_LOG.search(line) and not SERVED.search(line)]
    assert not bad, "\n".join(bad)


def wait_for_health(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text("utf-8", "replace")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"no answer from {url} within 30 s")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on this machine: install it to run the browser tests")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def spare(chromium: Browser) -> Iterator[list[BrowserContext]]:
    """Browsers of people who have left, emptied: all they keep is Streamlit's own files."""
    contexts: list[BrowserContext] = []
    yield contexts
    for context in contexts:
        context.close()


def emptied(context: BrowserContext, origins: set[str]) -> BrowserContext:
    """Close its pages and forget the person: what they kept, what they allowed."""
    for page in context.pages:
        page.close()
    context.clear_permissions()
    context.clear_cookies()
    page = context.new_page()
    session = context.new_cdp_session(page)
    for origin in origins:
        session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "local_storage"})
    page.close()
    return context


@pytest.fixture
def browse(chromium: Browser, spare: list[BrowserContext]) -> Iterator[Browse]:
    """browse(scheme="dark", width=390) -> Page: a person with a browser of their own, and no network.

    browse(same_as=page) is another tab of the same person.
    """
    lent: list[BrowserContext] = []
    origins: set[str] = set()
    problems: list[str] = []

    def notice(request: Request) -> None:  # a route of our own would switch the browser's cache off
        if not re.match(r"(https?|wss?)://(localhost|127\.0\.0\.1)[:/]|(data|blob|about):", request.url):
            problems.append(f"asked the network for {request.url}")
        elif request.is_navigation_request() and request.url.startswith("http"):
            origins.add("/".join(request.url.split("/")[:3]))

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" and not PROBES.search(message.location.get("url", "")):
            problems.append(f"console: {message.text} {message.location.get('url', '')}")

    def opener(
        *, scheme: str = "light", width: int = 1280, height: int = 800, same_as: Page | None = None
    ) -> Page:
        if same_as is None:
            lent.append(spare.pop() if spare else chromium.new_context())
            lent[-1].on("request", notice)
        page = (same_as.context if same_as else lent[-1]).new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.on("console", hear)
        page.set_default_timeout(PATIENCE)
        return page

    yield opener
    for context in lent:
        context.remove_listener("request", notice)
        spare.append(emptied(context, origins))
    assert not problems, "\n".join(problems)


def settle(page: Page) -> None:
    """Wait until the script has run and its elements are drawn. Assert the outcome first, then call this."""
    expect(page.locator(READY)).to_be_visible(timeout=PATIENCE)
    expect(page.locator("[data-stale=true]")).to_have_count(0, timeout=PATIENCE)


def open_at(page: Page, url: str) -> None:
    """Open an address and wait for the page's title."""
    page.goto(url)
    expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=PATIENCE)
    settle(page)


def open_page(page: Page, server: Server, name: str, text: str, **query: str) -> None:
    """Open a page with a text and wait until all of it stands, down to its last part."""
    open_at(page, f"{server.url}/{name}?{urlencode({'text': text, **query}, quote_via=quote)}")
    expect(page.get_by_role("heading", name="Try this")).to_be_visible()
    settle(page)
    no_exception(page)


def go_to(page: Page, title: str, *, keyboard: bool = False) -> None:
    """To another page by the menu: on top of a wide screen, in the folded sidebar of a narrow one."""
    info = next(info for info in nav.PAGES if info.title == title)
    if (page.viewport_size or {"width": 1280})["width"] < 768:
        _by_sidebar(page, title)
    else:
        _by_menu(page, nav.say(f"section.{info.section}"), title, keyboard)
    expect(page).to_have_title(re.compile(re.escape(title)))
    settle(page)


def _by_menu(page: Page, section: str, title: str, keyboard: bool) -> None:
    opener = page.get_by_test_id("stTopNavSection").filter(has_text=section)
    entry = page.get_by_role("menuitem", name=title, exact=True)
    expect(opener).to_be_visible()
    if keyboard:
        opener.press("Enter")
        expect(entry).to_be_visible()
        for _ in nav.PAGES:
            if entry.evaluate("entry => entry === document.activeElement"):
                break
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    else:
        opener.click()
        entry.click()


def _by_sidebar(page: Page, title: str) -> None:
    opener = page.get_by_test_id("stExpandSidebarButton")
    if opener.is_visible():
        opener.click()
    menu = page.get_by_test_id("stSidebarNav")
    expect(menu).to_be_visible()
    more = menu.get_by_test_id("stSidebarNavViewButton")
    link = menu.get_by_role("link", name=title, exact=True)
    if more.is_visible() and not link.is_visible():
        more.click()
    link.click()


def every_view(page: Page, key: str, names: Iterable[str]) -> Iterator[str]:
    """Choose the views of an open page one after the other, as they stand in its menu of views.

    Args:
        page: open at the first of them, in English.
        key: the menu's key, which is its name in the address.
        names: all views, by their names in the address.
    """
    options = page.locator(f".st-key-{key} [role=radio]")
    names = list(names)
    expect(options).to_have_count(len(names))
    for i, name in enumerate(names):
        if i:
            options.nth(i).click()
            expect(page).to_have_url(re.compile(f"{key}={name}(&|$)"))
        settle(page)
        no_exception(page)
        yield name


def fits_a_phone(page: Page) -> None:
    """Make the window as narrow as a phone and wide again: nothing may stick out of the page."""
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(
        """() => { const main = document.querySelector("[data-testid=stMain]")
          return main.clientWidth <= 390 && main.scrollWidth <= main.clientWidth }"""
    )  # charts and lists find their new size a moment later
    page.set_viewport_size(size)


def no_exception(page: Page) -> None:
    expect(page.get_by_test_id("stException")).to_have_count(0)


# ui/components/landmarks.js mends what Streamlit lacks once it is loaded: maybe after the script has run.
MENDED = """() => [...document.querySelectorAll("[data-testid=stSidebarNavItems]")].every(list =>
    list.getAttribute("role") === "presentation" || [...list.children].every(e => e.tagName === "LI"))
  && [...document.querySelectorAll(".katex-display")].every(formula =>
    formula.scrollWidth <= formula.clientWidth || formula.tabIndex === 0)"""


# Asked is what may be serious or critical. In another theme only the colours of the same page are others.
SEVERE = """colours => {
  const only = { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } }
  const mild = axe._audit.rules.filter(r => !["serious", "critical"].includes(r.impact))
  const rules = Object.fromEntries(mild.map(r => [r.id, { enabled: false }]))
  return axe.run({ resultTypes: ["violations"], ...(colours ? only : { rules }) })
}"""


def axe(page: Page, *, colours: bool = False) -> list[str]:
    """Serious and critical violations that axe-core finds, with where they are.

    Args:
        page: looked at as it is drawn now.
        colours: whether only its colours are looked at.
    """
    page.evaluate("document.fonts.ready.then(() => true)")  # formulas change their size with their fonts
    page.wait_for_function(MENDED)
    page.evaluate(Axe().axe_script)
    found = page.evaluate(SEVERE, colours)["violations"]
    return [
        f"{v['id']} ({v['impact']}): {node['target']} {node['html'][:120]}"
        for v in found
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"]
    ]


def axe_in_both_themes(page: Page) -> list[str]:
    """What `axe` finds in light; then what the colours of the dark theme add. The page stays dark."""
    wear(page, "light")
    found = axe(page)
    wear(page, "dark")
    return found + [f"dark: {line}" for line in axe(page, colours=True)]


WORN = """scheme => getComputedStyle(document.querySelector("[data-testid=stApp]")).colorScheme === scheme
          && !document.getAnimations().some(
            one => one instanceof CSSTransition && one.playState === "running")"""


def wear(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Change the theme of an open page as the system's setting does.

    A page that is being drawn may miss the change: then the setting changes once more.
    """
    other: Literal["light", "dark"] = "dark" if scheme == "light" else "light"
    for _ in range(3):
        page.emulate_media(color_scheme=scheme)
        try:
            page.wait_for_function(WORN, arg=scheme, timeout=PATIENCE / 3)
            return
        except NotInTime:
            page.emulate_media(color_scheme=other)
    raise AssertionError(f"{page.url} does not take the {scheme} theme")
