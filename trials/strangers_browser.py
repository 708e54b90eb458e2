"""A real browser on pages full of texts that want to be more: none of them may run, load or link anywhere."""

from collections.abc import Sequence
from urllib.parse import urlencode

from playwright.sync_api import Dialog, Page, Request, sync_playwright

from benchmarks.app import new_page
from trials.outcomes import Check
from trials.strangers_words import HOST, MARK, addresses

PATIENCE = 300_000  # ms, beside whatever else the machine does
DONE = "[data-testid=stApp][data-test-script-state=notRunning]"
INSIDE = """() => {
  const inside = e => e.shadowRoot ? all(e.shadowRoot) : []
  const all = root => [...root.querySelectorAll('*')].flatMap(e => [e, ...inside(e)])
  return all(document).filter(e => ['A', 'IMG', 'SCRIPT', 'SVG', 'STYLE'].includes(e.tagName.toUpperCase()))
    .filter(e => ['href', 'src', 'onload'].map(name => e.getAttribute(name) || '')
        .some(to => to[0] !== '#' && to.includes(MARK))  // a heading's own anchor leads nowhere else
      || (e.tagName === 'SCRIPT' && e.textContent.includes(MARK))
      || (e.tagName === 'STYLE' && e.textContent.includes('--' + MARK))).map(e => e.outerHTML.slice(0, 120))
}"""


def _watch(page: Page, asked: list[str], errors: list[str]) -> None:
    def ask(request: Request) -> None:
        if HOST in request.url.split("?")[0] or request.url.split("?")[0].endswith(f"/{MARK}"):
            asked.append(request.url)

    page.on("request", ask)
    page.on("pageerror", lambda error: errors.append(str(error)))

    def close(dialog: Dialog) -> None:
        errors.append("a dialog")
        dialog.dismiss()

    page.on("dialog", close)


def look(url: str, word: str, ids: Sequence[str]) -> list[Check]:
    """Open the pages as the author of the texts."""
    asked, errors, ran, made, pages = list[str](), list[str](), 0, list[str](), 0
    with sync_playwright() as playwright:
        page = new_page(playwright)
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        page.evaluate("word => localStorage.setItem('loupe-owner', word)", word)
        _watch(page, asked, errors)
        for name, query in addresses(list(ids)[:3], toy=False):
            page.goto(f"{url}/{'' if name == 'home' else name}?{urlencode(query)}")
            page.locator("h1").first.wait_for()
            page.wait_for_selector(DONE, state="attached")
            page.wait_for_timeout(300)
            pages += 1
            ran += page.evaluate("() => window.__pwned !== undefined")
            made += page.evaluate(INSIDE.replace("MARK", repr(MARK)))
        page.close()
    seen = f"{pages} pages in Chromium: {ran} where one ran, {len(made)} elements made"
    seen += f", {len(asked)} requests elsewhere"
    seen += f", {len(errors)} errors of scripts" + (
        f": {(made + asked + errors)[:2]}" if made or asked or errors else ""
    )
    return [Check("In a real browser no such text runs, loads anything or becomes a link", seen,
                  not (ran or made or asked or errors))]  # fmt: skip
