"""A server of the app that notes what it touches elsewhere, and people who send it what they like."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.app import App, running
from benchmarks.client import Person, Tab
from engine import plain_log
from trials import inputs_made as made

ROOT = Path(__file__).parent.parent
SECONDS = 20.0  # of the server's processor time that a run of a page may take
MEGABYTES = 1200.0  # that the server may grow in all
# Read by every Python that the server starts: notes what is written elsewhere, and connections elsewhere.
SITE = """
import os, sys
places = os.environ["LOUPE_TRIAL_PLACES"].split(os.pathsep)
tmp = os.environ["LOUPE_TRIAL_TMP"]
out = os.open(os.environ["LOUPE_TRIAL_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def note(line):
    os.write(out, (line[:300].replace("\\n", " ") + "\\n").encode("utf-8", "replace"))
def looked(event, path):
    if isinstance(path, int) or path is None:
        return
    folder, last = os.path.split(os.path.abspath(os.fsdecode(path)))
    real = os.path.join(os.path.realpath(folder), last)
    # Python tries where it may put files for a moment
    probe = folder == tmp and len(last) == 8 and last.replace("_", "0").isalnum()
    if not probe and not any((real + os.sep).startswith(place.rstrip(os.sep) + os.sep) for place in places):
        note(event + " " + real)
def heard(event, said):
    if event == "open":
        flags = said[2] if isinstance(said[2], int) else 0
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC):
            looked(event, said[0])
    elif event in ("os.remove", "os.rmdir", "os.mkdir"):
        if not (isinstance(said[-1], int) and said[-1] >= 0):
            looked(event, said[0])
    elif event in ("os.rename", "os.link"):
        looked(event, said[0]); looked(event, said[1])
    elif event == "os.symlink":
        looked(event, said[1])
    elif event == "pickle.find_class" and "streamlit" not in str(said):
        note("pickle " + str(said))
    elif event == "socket.connect":
        to = said[1]
        host = to[0] if isinstance(to, tuple) else ""
        # 192.0.2.1 is nobody's: a look at which of the own addresses leads out, no packet is sent
        if host and host not in ("127.0.0.1", "::1", "localhost", "192.0.2.1"):
            note("connect " + str(to))
sys.addaudithook(heard)
"""


@dataclass(frozen=True)
class Served:
    """A server under watch.

    Attributes:
        app: as `benchmarks.app` gives it.
        notes: file with what it touched elsewhere, a line each.
    """

    app: App
    notes: Path

    def touched(self) -> list[str]:
        """What it touched elsewhere so far."""
        return self.notes.read_text("utf-8", "replace").splitlines() if self.notes.exists() else []

    def failures(self) -> list[str]:
        """Errors that pages ran into so far: the kind, and the innermost place; see `engine.plain_log`."""
        found: list[str] = []
        for line in plain_log.last_lines(5000, self.app.home):
            if not line.startswith("    "):
                found.append(line if "page failed" in line else "")
            elif found and found[-1] and "/" in line:  # of Python's own files only the name is there
                found[-1] = f"{found[-1].split(' in ')[0]} in {line.strip()}"
        return [one.partition("kind=")[2] for one in found if one]


@contextmanager
def served() -> Iterator[Served]:
    """The app on a data folder with a run and a published model; nothing is trained on it."""
    with tempfile.TemporaryDirectory() as folder:
        home, notes = Path(folder) / "home", Path(folder) / "notes"
        made.put(home / "runs" / "20260101-120000-abcdef", made.run_files())
        made.put(home / "models" / "tiny-llama", made.llama_files())
        (Path(folder) / "site").mkdir()
        (Path(folder) / "site" / "sitecustomize.py").write_text(SITE, "utf-8")
        places = [str(home), "/dev/null", "/proc/", os.path.join(tempfile.gettempdir(), "torch")]
        changes = {
            "PYTHONPATH": os.pathsep.join(
                [str(Path(folder) / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LOUPE_TRIAL_PLACES": os.pathsep.join(os.path.realpath(place) for place in places),
            "LOUPE_TRIAL_NOTES": str(notes),
            "LOUPE_TRIAL_TMP": tempfile.gettempdir(),
            "LOUPE_MAX_RUNS": "0",
            "RUST_BACKTRACE": "0",
        }
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            with running(str(home)) as app:
                yield Served(app, notes)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})


async def opened(person: Person, page: str, query: list[tuple[str, str]]) -> Tab:
    """Open a page with an address of any making; a name may stand in it twice."""
    if not person._cookie:
        await person.first_run("glossary")
    tab = Tab(person, page, urlencode(query, errors="surrogatepass"))
    person._tabs.append(tab)
    await tab.start()
    return tab


def faults_of(tab: Tab, failures: list[str]) -> str:
    """What is wrong with a page that was just drawn; "" if nothing.

    Args:
        tab: where.
        failures: of pages, as the server told them meanwhile.
    """
    if any(len(one.stack_trace) for one in tab.all("exception")):
        return "a traceback is on the screen"
    if failures:
        return f"a page failed: {failures[0][:200]}"
    if boxes := tab.exceptions():
        return f"a box with {boxes[0][:200]}"
    if not tab.heading():
        return "no heading: the page ended early"
    return ""


def said(tab: Tab) -> str:
    """All plain text on a page."""
    kinds = ("markdown", "alert", "text", "heading")
    return "\n".join(str(getattr(one, "body", "")) for kind in kinds for one in tab.all(kind))


if sys.platform == "win32":  # pragma: no cover
    raise ImportError("The trials need a system with audit hooks and processes as on Unix.")
