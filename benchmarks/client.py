"""A browser without a screen: opens pages of a Streamlit app over its websocket, as many as are wanted.

    async with Person(url) as person:
        tab = await person.open("generation", temperature="0.5")
        ran = await tab.rerun(temperature=0.7)      # as if the slider were moved; gives what it took
        tab.value("temperature"), tab.all("plotly_chart")

A person has cookies, the word that their browser keeps, and tabs. A tab sends what a browser sends: the
address, the value of every widget on the page, the hashes of the large messages that it still has, and, for
the parts of a page that are drawn anew each second, a request at each tick. The messages are Streamlit's own
(`streamlit.proto`), so that this speaks the protocol of the version that is installed.
"""

import asyncio
import json
import secrets
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NumberInput_pb2 import NumberInput
from streamlit.proto.Slider_pb2 import Slider
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 120.0  # s for a run of a page, on a busy machine
OWNER = "loupe_owner"  # the component that asks a browser for the word that it keeps
_COOKIE = "_streamlit_xsrf"
_WHOLE = (
    ForwardMsg.ScriptFinishedStatus.FINISHED_SUCCESSFULLY,
    ForwardMsg.ScriptFinishedStatus.FINISHED_WITH_COMPILE_ERROR,
)
_PART = ForwardMsg.ScriptFinishedStatus.FINISHED_FRAGMENT_RUN_SUCCESSFULLY
_BLOCKS = ("expandable", "tab_container", "popover", "dialog")  # blocks that may hold a value


class Ran(NamedTuple):
    """What one run of a page took.

    Attributes:
        seconds: from what was sent to the last message.
        messages, size: of what came, and their bytes.
        whole: whether the whole page ran, not only one part of it.
    """

    seconds: float
    messages: int
    size: int
    whole: bool


@dataclass
class _Shown:
    """What stands at one place of the page, and which run and part of the page has put it there."""

    kind: str
    content: Any
    run: int
    part: str
    frame: bool  # it stands on every page


@dataclass
class Tab:
    """One page that is open. `Person.open` makes it.

    Attributes:
        ticks: parts of the page that ask to be drawn anew, and each how many seconds.
        query: what stands in the address.
    """

    person: "Person"
    page: str
    query: str
    ticks: dict[str, float] = field(default_factory=dict)
    _socket: ClientConnection | None = None
    _script: str = ""
    _run: int = 0
    _part: str = ""
    _places: dict[tuple[int, ...], _Shown] = field(default_factory=dict)
    _values: dict[str, WidgetState] = field(default_factory=dict)
    _kept: dict[str, tuple[ForwardMsg, int]] = field(default_factory=dict)  # and when it was last of use
    _keep: int = 2  # whole runs
    _main: str = ""  # the script of the frame
    _scripts: dict[str, str] = field(default_factory=dict)  # of each page in the menu

    # ---- what a person does

    async def rerun(self, **values: Any) -> Ran:
        """Give widgets other values, by their keys, and run the page once for all of them.

        If all of them stand in one part of the page that runs by itself, only that part runs.
        """
        parts = {self._widget(key).part for key in values}
        for key, value in values.items():
            shown = self._widget(key)
            widget = shown.content
            self._values[widget.id] = _state(shown.kind, widget, value)
            if name := getattr(widget, "query_param_key", ""):  # it stands in the address by itself
                first = value == _first(shown.kind, widget) or [value] == _first(shown.kind, widget)
                self._write(name, None if first else value)
        return await self._ask(parts.pop() if len(parts) == 1 else "")

    def _write(self, name: str, value: Any) -> None:
        """Put a widget's value into the address, or take it out."""
        said = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
        self.query = urlencode({**address(self.query), name: said} if value is not None else
                               {k: v for k, v in address(self.query).items() if k != name})  # fmt: skip

    async def press(self, key: str) -> Ran:
        """Press a button, by its key."""
        shown = self._widget(key)
        pressed = WidgetState(id=shown.content.id, trigger_value=True)
        return await self._ask(shown.part, pressed=pressed)

    async def go(self, page: str, **query: str) -> Ran:
        """Choose another page in the menu: the session goes on, with the widgets of the frame."""
        self.page, self.query, self._script = page, urlencode(query), self._scripts[page]
        frame = {s.content.id for s in self._places.values() if s.frame and _has_id(s)}
        self._values = {widget: state for widget, state in self._values.items() if widget in frame}
        return await self._answered(await self._ask())

    async def leave_amid(self, act: Coroutine[Any, Any, Ran], seconds: float = 0.1) -> None:
        """Close the tab while what was just asked for is still being done."""
        asked = asyncio.create_task(act)
        await asyncio.wait([asked], timeout=seconds)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await self.close()

    async def tick(self, part: str) -> Ran:
        """Let a part of the page be drawn anew, as at its next second; see `ticks`."""
        return await self._ask(part, by_itself=True)

    async def close(self) -> None:
        """Leave, as when a tab is closed."""
        if self._socket is not None:
            await self._socket.close()

    # ---- what is on the page

    def all(self, kind: str) -> list[Any]:
        """What is shown of a kind ("metric", "plotly_chart", "bidi_component" …), in the page's order."""
        return [self._places[place].content for place in sorted(self._places) if self._is(place, kind)]

    def _is(self, place: tuple[int, ...], kind: str) -> bool:
        return self._places[place].kind == kind

    def words(self) -> list[str]:
        """All text in Markdown on the page, in its order."""
        return [one.body for one in self.all("markdown")]

    def widget(self, key: str) -> tuple[str, Any]:
        """Kind and description of a widget, by its key."""
        shown = self._widget(key)
        return shown.kind, shown.content

    def value(self, key: str) -> Any:
        """The value of a widget, by its key, as it would be sent."""
        state = self._values[self._widget(key).content.id]
        said = getattr(state, str(state.WhichOneof("value")))
        return list(said.data) if hasattr(said, "data") else said

    def exceptions(self) -> list[str]:
        """What went wrong on the page."""
        return [f"{one.type}: {one.message}" for one in self.all("exception")]

    def heading(self) -> str:
        """The title of the page; "" if it has none yet."""
        return next((one.body for one in self.all("heading") if one.tag == "h1"), "")

    def keys(self) -> list[str]:
        """The keys of all widgets on the page."""
        return [_key(shown.content.id) for shown in self._places.values() if _has_id(shown)]

    def _widget(self, key: str) -> _Shown:
        for shown in self._places.values():
            if _has_id(shown) and _key(shown.content.id) == key:
                return shown
        raise KeyError(f"/{self.page} has no widget {key!r}, only {sorted(self.keys())}.")

    # ---- the protocol

    async def start(self) -> Ran:
        """Connect and run the page for the first time."""
        self._socket = await self.person.socket()
        return await self._answered(await self._ask())

    async def _answered(self, ran: Ran) -> Ran:
        """What a run took together with those that components asked for when they were shown."""
        while self._answer():
            again = await self._ask()
            seconds, messages = ran.seconds + again.seconds, ran.messages + again.messages
            ran = Ran(seconds, messages, ran.size + again.size, again.whole)
        return ran

    def _answer(self) -> bool:
        """Let components answer that ask the browser for something; whether one has a new answer."""
        for one in self.all("bidi_component"):
            answer = self.person.answers.get(one.component_name.split(".")[-1])
            said = answer and answer(json.loads(one.json or "{}"))
            if said:
                self._values[one.id] = WidgetState(id=one.id, json_value=json.dumps(said))
                return True
        return False

    async def _ask(
        self, part: str = "", *, pressed: WidgetState | None = None, by_itself: bool = False
    ) -> Ran:
        assert self._socket is not None
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string, asked.fragment_id, asked.is_auto_rerun = self.query, part, by_itself
        asked.page_script_hash, asked.page_name = self._script, "" if self._script else self.page
        asked.widget_states.widgets.extend(self._values.values())
        if pressed is not None:
            asked.widget_states.widgets.append(pressed)
        asked.cached_message_hashes.extend(self._kept)
        about = asked.context_info
        about.timezone, about.locale, about.color_scheme = "UTC", self.person.locale, "light"
        about.url = f"{self.person.url}/{self.page}"
        began = time.perf_counter()
        await self._socket.send(message.SerializeToString())
        n, size, end = 0, 0, None
        async with asyncio.timeout(PATIENCE):
            while end is None:
                data = await self._socket.recv(decode=False)
                n, size = n + 1, size + len(data)
                end = self._take(ForwardMsg.FromString(data))
        return Ran(time.perf_counter() - began, n, size, end)

    def _take(self, message: ForwardMsg) -> bool | None:
        """Take one message in; gives, at the end of a run, whether all of the page ran."""
        kind = message.WhichOneof("type")
        if kind == "ref_hash":
            known, _ = self._kept[message.ref_hash]
            known.metadata.CopyFrom(message.metadata)
            self._kept[message.ref_hash] = (known, self._run)
            self._put(known)
        elif kind == "delta":
            if message.metadata.cacheable:
                self._kept[message.hash] = (message, self._run)
            self._put(message)
        elif kind == "new_session":
            self._run += 1
            self._script = message.new_session.page_script_hash
            self._main = message.new_session.main_script_hash
            self._keep = message.new_session.config.max_cached_message_age
            self._part = next(iter(message.metadata.run.fragment_ids), "")
            if not self._part:
                self.ticks.clear()
        elif kind == "navigation":
            self._script = message.navigation.page_script_hash
            pages = message.navigation.app_pages
            self._scripts = {
                "" if one.is_default else one.url_pathname: one.page_script_hash for one in pages
            }
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            self.ticks[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "stop_auto_rerun":
            for part in message.stop_auto_rerun.fragment_ids:
                self.ticks.pop(part, None)
        elif kind == "script_finished" and message.script_finished in (*_WHOLE, _PART):
            whole = message.script_finished in _WHOLE
            self._tidy(whole)
            return whole
        return None

    def _put(self, message: ForwardMsg) -> None:
        """Put what a message brings in its place."""
        delta = message.delta
        holder = delta.new_element if delta.WhichOneof("type") == "new_element" else delta.add_block
        kind = str(holder.WhichOneof("type"))
        content = getattr(holder, kind) if kind != "None" else None
        place = tuple(message.metadata.delta_path)
        self._places[place] = shown = _Shown(
            kind, content, self._run, delta.fragment_id, message.metadata.active_script_hash == self._main
        )
        if _has_id(shown):
            self._begin(shown)

    def _begin(self, shown: _Shown) -> None:
        """A widget that is new on the page has its first value; the page may also have set another."""
        widget = shown.content
        news = widget.id not in self._values or getattr(widget, "set_value", False)
        if news and shown.kind in _FIRST:
            self._values[widget.id] = _state(shown.kind, widget, _first(shown.kind, widget))

    def _tidy(self, whole: bool) -> None:
        """Drop what this run has not drawn any more, and the values of widgets that have gone."""
        gone = [
            place
            for place, shown in self._places.items()
            if shown.run != self._run and (whole or (self._part and shown.part == self._part))
        ]
        for place in gone:
            del self._places[place]
        if whole:
            self._kept = {name: one for name, one in self._kept.items() if self._run - one[1] < self._keep}
        there = {shown.content.id for shown in self._places.values() if _has_id(shown)}
        self._values = {widget: state for widget, state in self._values.items() if widget in there}


class Person:
    """Somebody with a browser of their own: its cookies, its language and the word that it keeps."""

    def __init__(self, url: str, *, locale: str = "en-US") -> None:
        """Nothing is open yet.

        Args:
            url: of the app, such as "http://localhost:8501".
            locale: of the browser.
        """
        self.url, self.locale = url.rstrip("/"), locale
        self.word = secrets.token_hex(16)
        self.answers: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {OWNER: self._own}
        self._tabs: list[Tab] = []
        self._cookie = ""

    def _own(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        return {"token": self.word} if asked.get("current") != self.word else None

    async def __aenter__(self) -> "Person":
        return self

    async def __aexit__(self, *_: object) -> None:
        for tab in self._tabs:
            await tab.close()

    async def open(self, page: str = "", **query: str) -> Tab:
        """Open a page and wait until it has run; `first_run` also says what that took."""
        return (await self.first_run(page, **query))[0]

    async def first_run(self, page: str = "", **query: str) -> tuple[Tab, Ran]:
        """A new tab, and what its first run took, with what its components had to ask the browser."""
        if not self._cookie:
            self._cookie = await asyncio.to_thread(self._knock)
        tab = Tab(self, page, urlencode(query))
        self._tabs.append(tab)
        return tab, await tab.start()

    def _knock(self) -> str:
        """What a browser asks before it connects; the answer gives the cookie."""
        with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=PATIENCE) as answer:
            cookies = answer.headers.get_all("Set-Cookie") or []
        return next((one.split(";")[0] for one in cookies if one.startswith(_COOKIE)), "")

    async def socket(self) -> ClientConnection:
        """A connection with the headers that a browser sends."""
        place = urlsplit(self.url)
        token = self._cookie.partition("=")[2] or "PLACEHOLDER_AUTH_TOKEN"
        return await connect(
            f"ws://{place.netloc}/_stcore/stream",
            origin=f"{place.scheme}://{place.netloc}",  # type: ignore[arg-type]
            subprotocols=["streamlit", token],  # type: ignore[list-item]
            additional_headers={"Cookie": self._cookie} if self._cookie else None,
            compression=None,
            max_size=None,
            open_timeout=PATIENCE,
            ping_interval=None,
        )


def address(query: str) -> dict[str, str]:
    """What stands in an address.

    >>> address("watch=runs&run=a")
    {'watch': 'runs', 'run': 'a'}
    """
    return {name: values[-1] for name, values in parse_qs(query).items()}


def _has_id(shown: _Shown) -> bool:
    return bool(getattr(shown.content, "id", ""))


def _key(widget: str) -> str:
    """The key in an id such as "$$ID-9aa7-temperature"; "" if it has none."""
    key = widget.split("-", 2)[-1]
    return "" if key == "None" else key


def _first(kind: str, widget: Any) -> Any:
    """The value that a widget begins with, or that the page has set; None if it sends none."""
    return next(_FIRST[kind](widget), None)


def _chosen(widget: Any) -> Iterator[Any]:
    """Of one choice."""
    if widget.HasField("raw_value") and widget.set_value:
        yield widget.raw_value
    elif widget.HasField("default") and widget.options:
        yield widget.options[widget.default]


def _several(widget: Any) -> Iterator[Any]:
    """Of many choices."""
    names = [getattr(option, "content", option) for option in widget.options]
    yield list(widget.raw_values) if widget.set_value else [names[i] for i in widget.default]


def _typed(widget: Any) -> Iterator[Any]:
    """Of text and numbers; an empty box of numbers has none."""
    if widget.set_value:
        yield widget.value
    elif widget.HasField("default"):
        yield widget.default


def _ticked(widget: Any) -> Iterator[Any]:
    yield widget.value if widget.set_value else widget.default


def _slid(widget: Any) -> Iterator[Any]:
    if widget.type == Slider.Type.SELECT_SLIDER:
        yield list(widget.raw_value) if widget.set_value else [widget.options[int(i)] for i in widget.default]
    else:
        yield list(widget.value if widget.set_value else widget.default)


_FIRST: dict[str, Callable[[Any], Iterator[Any]]] = {
    "selectbox": _chosen,
    "radio": _chosen,
    "button_group": _several,
    "multiselect": _several,
    "text_input": _typed,
    "text_area": _typed,
    "number_input": _typed,
    "checkbox": _ticked,
    "slider": _slid,
    "file_uploader": lambda widget: iter([[]]),
}


def _state(kind: str, widget: Any, value: Any) -> WidgetState:
    """A widget's value as it is sent; without one if there is none to send."""
    state = WidgetState(id=widget.id)
    if value is None:
        return state
    if kind in ("button_group", "multiselect") or (
        kind == "slider" and widget.type == Slider.Type.SELECT_SLIDER
    ):
        state.string_array_value.data.extend([value] if isinstance(value, str) else value)
        state.string_array_value.SetInParent()
    elif kind == "slider":
        state.double_array_value.data.extend(value if isinstance(value, list) else [value])
    elif kind == "number_input" and widget.data_type == NumberInput.DataType.INT:
        state.int_value = int(value)
    elif kind == "number_input":
        state.double_value = value
    elif kind in ("checkbox", *_BLOCKS):
        state.bool_value = value
    elif kind == "file_uploader":
        state.file_uploader_state_value.SetInParent()
    elif kind == "bidi_component":
        state.json_value = json.dumps(value)
    else:
        state.string_value = value
    return state
