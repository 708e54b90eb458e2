"""Links and widgets: addresses of any making on every page, and values that no widget offers."""

import asyncio
import json
import re
import time
import tomllib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.client import Person, Tab
from trials.inputs_changes import ODD
from trials.inputs_server import SECONDS, Served, faults_of, opened, said
from trials.inputs_texts import texts
from ui import link_settings, nav

PAGES = tuple(info.name for info in nav.PAGES)
KNOWN_KEYS = (
    "model",
    "text",
    "lang",
    "hidden",
    "set",
    "run",
    "class",
    "seed",
    "pos",
    "layer",
    "head",
    "query",
    "watch",
    "view",
    "hide",
    "lesson",
    "example",
    "word",
    "exercise",
    "projector",
    "embed",
    "embed_options",
    "x",
)
VALUES = (
    "",
    "0",
    "1",
    "-1",
    "1e9",
    "99999999999999999999",
    "nan",
    "inf",
    "-inf",
    "true",
    "True",
    "None",
    "null",
    "[]",
    "{}",
    "[1,2]",
    "a,b",
    "1.5",
    "0x10",
    "१२",
    "½",
    "\x00",
    "../../etc/passwd",
    "run:20260101-120000-abcdef",
    "hub:tiny-llama",
    "hub:../../outside",
    "run:../..",
    "stories-clm",
    "english-clm",
    "20260101-120000-abcdef",
    "<script>alert(1)</script>",
    "locked",
    "a" * 5000,
    "e" * 300 + "x",
    "es",
    "en",
    "de",
    "'; drop table runs",
    "%00",
    "&&",
    "$x^2$",
    "\u202eabc",
)


@cache
def _slugs() -> tuple[str, ...]:
    """Names of options in the addresses: keys of tables of words."""
    found = set()
    for path in Path(__file__).parent.parent.glob("wording/en/*.toml"):
        for table in tomllib.loads(path.read_text("utf-8")).values():
            for part in table.values():
                found |= {
                    key
                    for entry in part.values()
                    if isinstance(entry, dict)
                    for key in entry
                    if isinstance(part, dict)
                }
    return tuple(sorted(found))


class Link(NamedTuple):
    """A page and what stands in its address."""

    page: str
    query: tuple[tuple[str, str], ...]


class Forged(NamedTuple):
    """On a page, which widget has which field of its state set to what.

    Two of three numbers count only the widgets that have this field, the others all of the page.
    """

    page: str
    view: tuple[tuple[str, str], ...]
    states: tuple[tuple[int, str, Any], ...]


def _settings_of(page: str) -> some.SearchStrategy[str]:
    patterns = [key.replace("*", "x1") for key in link_settings.SETTINGS.get(page, {})] or ["x"]
    value = some.one_of(
        some.sampled_from([one for one in ODD if one == one]), some.integers(), some.text(max_size=9)
    )
    table = some.dictionaries(some.sampled_from((*patterns, "x", "tokens_unit")), value, max_size=5)
    return some.one_of(
        table.map(json.dumps), some.text(max_size=30), some.sampled_from(("[" * 5000, "{", "1e999", "[]"))
    )


@some.composite
def links(draw: Any) -> Link:
    """An address for a page."""
    page = draw(some.sampled_from(PAGES))
    keys = some.sampled_from((*KNOWN_KEYS, *keys_of(page)))
    value = some.one_of(
        some.sampled_from(VALUES), some.sampled_from(_slugs()), some.integers().map(str), texts
    )
    query = draw(some.lists(some.tuples(keys, value.map(_short)), max_size=4))
    if draw(some.booleans()):
        query.append(("set", draw(_settings_of(page))[:7000]))
    if draw(some.booleans()):
        query.append(("text", _short(draw(texts))))
    return Link(page, tuple(query))


def _short(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:2000]


@cache
def keys_of(page: str) -> tuple[str, ...]:
    """Keys of widgets that the files of a page name, as they may stand in its address."""
    root = Path(__file__).parent.parent
    files = [root / "pages" / f"{page}.py", *root.glob(f"ui/{page.rstrip('s')[:6]}*.py")]
    found = {
        key
        for file in files
        if file.exists()
        for key in re.findall(r'key="([A-Za-z_]+)"', file.read_text("utf-8"))
    }
    return tuple(sorted(found)) or ("x",)


_NUMBERS = (0, 1, -1, 7, 10**6, 2**31, 2**53, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 0.5, -1.0, 1e9, 1e308, -1e308, float("nan"), float("inf"), 5e-324)
_WORDS = (*VALUES, "\ud800".encode("utf-8", "replace").decode(), "1", "x")
FIELDS: dict[str, some.SearchStrategy[Any]] = {
    "bool_value": some.booleans(),
    "trigger_value": some.booleans(),
    "int_value": some.sampled_from(_NUMBERS),
    "double_value": some.sampled_from(_FLOATS),
    "string_value": some.one_of(some.sampled_from(_WORDS), texts.map(_short)),
    "string_array_value": some.lists(some.sampled_from(_WORDS), max_size=3).map(tuple),
    "double_array_value": some.lists(some.sampled_from(_FLOATS), max_size=3).map(tuple),
    "int_array_value": some.lists(some.sampled_from(_NUMBERS), max_size=3).map(tuple),
    "json_value": some.one_of(
        some.sampled_from([one for one in ODD if one == one]).map(json.dumps),
        some.sampled_from(("{", "", "[" * 3000)),
    ),
    "bytes_value": some.binary(max_size=20),
    "file_uploader_state_value": some.sampled_from(_WORDS),
}
VIEWS: dict[str, tuple[tuple[tuple[str, str], ...], ...]] = {
    "training": tuple((("watch", name),) for name in ("train", "step", "time", "runs", "class")),
    "masking": tuple((("hide", name),) for name in ("fill-blanks", "see-the-gap", "meaning", "batch")),
}


@some.composite
def forgeries(draw: Any) -> Forged:
    """Values for widgets of a page."""
    page = draw(some.sampled_from(PAGES))
    view = draw(some.sampled_from(VIEWS.get(page, ((),))))
    name = draw(some.lists(some.sampled_from(tuple(FIELDS)), min_size=1, max_size=3))
    return Forged(
        page, view, tuple((draw(some.integers(0, 60)), field, draw(FIELDS[field])) for field in name)
    )


@dataclass
class Tally:
    """What became of the cases of a kind.

    Attributes:
        taken, refused: cases that worked, and such of them of which the page said that something was ignored.
        faults: what went wrong, and the case.
        slowest: s of processor time of the server.
    """

    taken: int = 0
    refused: int = 0
    faults: list[tuple[str, str]] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def tried(self) -> int:
        """All cases."""
        return self.taken + self.refused + len(self.faults)


def made_up(strategy: some.SearchStrategy[Any], n: int, seed: int) -> list[Any]:
    """Cases, the same for the same seed."""
    found: list[Any] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=n,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def keep(case: Any) -> None:
        found.append(case)

    keep()
    return found


async def follow(served: Served, cases: list[Link]) -> Tally:
    """Open links, each in a tab of its own."""
    tally = Tally()
    async with Person(served.app.url) as person:
        for case in cases:
            await _one(served, tally, case, lambda case=case: _follow(served, person, case))  # type: ignore[misc]
    return tally


async def _follow(served: Served, person: Person, case: Link) -> bool | str:
    """Whether the page says that something of the link was ignored; or what is wrong."""
    before = len(served.failures())
    tab = await opened(person, case.page, list(case.query))
    try:
        if wrong := faults_of(tab, served.failures()[before:]):
            return wrong
        told = "ignored" in said(tab) or "pasado por alto" in said(tab) or "no es conocid" in said(tab)
        given = [value for name, value in case.query if name == link_settings.NAME]
        english = not any(name == "lang" for name, _ in case.query)
        hides = any(name == "hidden" for name, _ in case.query)
        if given and english and link_settings.read(given[-1], case.page)[1] and not told and not hides:
            return "the page does not say that it ignored a setting"
        return told
    finally:
        await tab.close()
        person._tabs.remove(tab)


async def forge(served: Served, cases: list[Forged]) -> Tally:
    """Send forged values, then open the page again: others, and this person's next tab, must not notice."""
    tally = Tally()
    async with Person(served.app.url) as person:
        for case in cases:
            await _one(served, tally, case, lambda case=case: _forge(served, person, case))  # type: ignore[misc]
    return tally


async def _forge(served: Served, person: Person, case: Forged) -> bool | str:
    before = len(served.failures())
    tab = await opened(person, case.page, list(case.view))
    try:
        for at, name, value in case.states:
            widgets = [shown for shown in tab._places.values() if getattr(shown.content, "id", "")]
            fitting = [shown for shown in widgets if own_field(shown.kind, shown.content) == name]
            among = fitting if at % 3 and fitting else widgets
            chosen = among[at % len(among)]
            await tab._ask(pressed=forged_state(chosen.content.id, name, value))
            if wrong := faults_of(tab, served.failures()[before:]):
                return f"{wrong} ({chosen.kind})"
    finally:
        await tab.close()
        person._tabs.remove(tab)
    before = len(served.failures())
    tab = await opened(person, case.page, list(case.view))
    wrong = faults_of(tab, served.failures()[before:])
    await tab.close()
    person._tabs.remove(tab)
    return f"afterwards: {wrong}" if wrong else False


def own_field(kind: str, widget: Any) -> str:
    """The field of its state that a widget of this kind sends."""
    if kind == "slider":
        chooses = widget.type == widget.Type.SELECT_SLIDER
        return "string_array_value" if chooses else "double_array_value"
    if kind == "number_input":
        return "int_value" if widget.data_type == widget.DataType.INT else "double_value"
    return _OWN.get(kind, "")


_OWN = {
    "selectbox": "string_value",
    "radio": "string_value",
    "text_input": "string_value",
    "text_area": "string_value",
    "button_group": "string_array_value",
    "multiselect": "string_array_value",
    "checkbox": "bool_value",
    "button": "trigger_value",
    "bidi_component": "json_value",
    "file_uploader": "file_uploader_state_value",
}


def forged_state(widget: str, name: str, value: Any) -> WidgetState:
    """The state of a widget with one field set to anything that the protocol holds."""
    state = WidgetState(id=widget)
    if name.endswith("array_value"):
        getattr(state, name).data.extend(value)
        getattr(state, name).SetInParent()
    elif name == "file_uploader_state_value":
        one = state.file_uploader_state_value.uploaded_file_info.add()
        one.file_id, one.name, one.size = value, "../x.txt", 2**40
    else:
        setattr(state, name, value)
    return state


async def _one(served: Served, tally: Tally, case: Any, act: Callable[[], Awaitable[bool | str]]) -> None:
    """Try one case, and note what became of it."""
    before, touched = served.app.cpu(), len(served.touched())
    try:
        found = await act()
    except (TimeoutError, OSError) as error:
        found = f"no answer: {type(error).__name__}"
    except Exception as error:  # noqa: BLE001 such as a closed connection: the server gave up
        found = f"the connection broke: {type(error).__name__}: {str(error)[:200]}"
    seconds = served.app.cpu() - before
    tally.slowest = max(tally.slowest, seconds)
    if more := served.touched()[touched:]:
        found = f"touched: {more[0]}"
    if isinstance(found, bool) and seconds > SECONDS:
        found = f"{seconds:.0f} s of processor time"
    if isinstance(found, str):
        tally.faults.append((found, repr(case)))
    elif found:
        tally.refused += 1
    else:
        tally.taken += 1


def run_both(served: Served, n: int, seed: int) -> dict[str, Tally]:
    """Links and widgets, `n` each."""
    began = time.monotonic()

    async def all_of_it() -> dict[str, Tally]:
        return {
            "links": await follow(served, made_up(links(), n, seed)),
            "widgets": await forge(served, made_up(forgeries(), n, seed)),
        }

    found = asyncio.run(all_of_it())
    assert time.monotonic() > began
    return found


__all__ = ["Forged", "Link", "Tab", "Tally", "follow", "forge", "run_both"]
