"""The people of the class: those who tokenise, who look, who let a model write, and who train.

Each has thinking times as students have them, and a dice of their own, so that a seed gives the same class.
Some reload the page; some close their tab in the middle of an answer and come back.
"""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from websockets.exceptions import ConnectionClosed

from benchmarks.client import Person, Ran, Tab, address
from engine.run_queue import RunQueue
from trials.load_controls import CONTROLS, STRIPS, other_value
from trials.load_log import Log
from ui.lesson_list import LESSONS

TYPED = (
    "Once upon a time there was a little princess who lived near the old castle and loved apples . The "
    "unbelievable tokenization of 1999 numbers , 3.14159 , Zoë’s naïve café and a 👩‍🚀 in São Paulo"
)
WORDS = TYPED.split(" ")
PLACE = re.compile(r"number ([0-9,]+) in the queue", re.IGNORECASE)


class Student:
    """Somebody who sits in the class until the round is over.

    Attributes:
        person: the browser.
        log: where all that happens is noted.
        idle: whether this is one of those whose clicks have to be answered soon.
    """

    idle = True
    page = "tokens"

    def __init__(self, url: str, log: Log, dice: random.Random, until: float, thinking: float) -> None:
        """Not there yet.

        Args:
            url: of the app.
            log: of the whole class.
            dice: of this person alone.
            until: when the round is over, by time.monotonic().
            thinking: seconds on average between two acts.
        """
        self.person, self.log, self.dice, self.until = Person(url), log, dice, until
        self.thinking = thinking
        self.tab: Tab | None = None
        self.doing = ""  # what no answer has come to yet

    async def stay(self) -> None:
        """Come in at some moment, work until the round is over, and stay connected."""
        await self._sleep(self.dice.uniform(0, min(20.0, 0.2 * self.left)))
        while self.left > 0:
            try:
                await self.work()
            except (ConnectionClosed, TimeoutError, OSError, KeyError) as error:
                self.log.errors.append(f"{self}: {type(error).__name__} {error}")
                await self._sleep(1.0)

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()} at {self.doing or 'rest'}"

    async def work(self) -> None:
        """What this person does; begun anew if it ends before the round does."""
        raise NotImplementedError

    @property
    def left(self) -> float:
        """Seconds until the round is over."""
        return self.until - time.monotonic()

    async def think(self) -> None:
        """Look at what came: mostly a few seconds, sometimes long."""
        seconds = self.thinking
        await self._sleep(min(4 * seconds, 0.3 * seconds + self.dice.expovariate(1 / (0.7 * seconds))))

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, min(seconds, self.left)))

    async def open(self, page: str, **query: str) -> Tab:
        """A new tab, as when a page is opened or reloaded."""
        if self.tab is not None:
            await self.tab.close()
        self.page, self.doing = page, f"open /{page}"
        self.tab, ran = await self.person.first_run(page, **query)
        self.log.sessions += 1
        self._note("open or reload a page", ran)
        return self.tab

    async def go(self, page: str, **query: str) -> Tab:
        """Choose another page in the menu."""
        assert self.tab is not None
        self.page, self.doing = page, f"go to /{page}"
        self._note("choose another page", await self.tab.go(page, **query))
        return self.tab

    async def act(self, kind: str, doing: Awaitable[Ran], what: str = "") -> Ran:
        """Do something on the page and note what it took."""
        self.doing = f"/{self.page} {what or kind}"
        ran = await doing
        self._note(kind, ran)
        return ran

    def _note(self, kind: str, ran: Ran) -> None:
        self.log.add(kind, ran, self.doing, idle=self.idle)
        assert self.tab is not None
        self.log.errors += [f"{self}: {error}" for error in self.tab.exceptions()]
        self.doing = ""

    async def leave_amid(self, doing: Coroutine[Any, Any, Ran]) -> None:
        """Close the tab before the answer is there."""
        assert self.tab is not None
        await self.tab.leave_amid(doing, self.dice.uniform(0.0, 0.15))
        self.log.left += 1

    def sentence(self) -> str:
        """A text to type."""
        return " ".join(self.dice.choices(WORDS, k=self.dice.randint(3, 20)))

    async def type_text(self) -> None:
        """Write another text into the box beside the page."""
        assert self.tab is not None
        await self.act("type a text", self.tab.rerun(text=self.sentence()))

    async def turn(self) -> None:
        """Turn a control of the page, or click on a token; if there is none, type."""
        tab, dice = self.tab, self.dice
        assert tab is not None
        there = set(tab.keys())
        strip = STRIPS.get(self.page)
        if strip in there and dice.random() < 0.4:
            await self.act("click on a token", tab.rerun(**{str(strip): {"selected": dice.randint(0, 6)}}))
            return
        keys = [key for key in CONTROLS.get(self.page, ()) if key in there]
        key = dice.choice(keys) if keys else ""
        value = other_value(tab, key, dice) if key else None
        if value is None:
            await self.type_text()
            return
        what = f"{key}={value}" if isinstance(value, str) else key
        await self.act("turn a control", tab.rerun(**{key: value}), what)


class Tokeniser(Student):
    """Types texts and looks at their tokens."""

    async def work(self) -> None:
        """Type, turn, leave in the middle, reload."""
        await self.open("tokens")
        while self.left > 0:
            await self.think()
            chance = self.dice.random()
            if chance < 0.7:
                await self.type_text()
            elif chance < 0.92:
                await self.turn()
            elif chance < 0.96:
                assert self.tab is not None
                await self.leave_amid(self.tab.rerun(text=self.sentence()))
                return
            else:
                return  # reload


class Looker(Student):
    """Goes from page to page and turns what can be turned there."""

    PAGES = (*CONTROLS, "lessons", "")

    async def work(self) -> None:
        """From page to page."""
        await self.open(self.dice.choice(self.PAGES))
        while self.left > 0:
            await self.think()
            chance = self.dice.random()
            if chance < 0.3:
                await self.next_page()
            elif chance < 0.85:
                await self.turn()
            elif chance < 0.93:
                await self.type_text()
            elif chance < 0.97:
                assert self.tab is not None
                await self.leave_amid(self.tab.go(self.dice.choice(self.PAGES)))
                return
            else:
                return

    async def next_page(self) -> None:
        """Another page, a lesson, or an exercise."""
        page = self.dice.choice(self.PAGES)
        if page == "lessons":
            await self.go(page, lesson=self.dice.choice(list(LESSONS)))
        else:
            await self.go(page)
        if page == "exercises":
            assert self.tab is not None
            await self.think()
            there = self.tab.keys()
            doors = [key for key in there if key.startswith("exercises_open_")]
            if doors:
                await self.act("open an exercise", self.tab.press(self.dice.choice(doors)))


class Writer(Student):
    """Lets a model write, again and again without a pause."""

    idle = False

    async def work(self) -> None:
        """Write, begin anew, and so on."""
        tab = await self.open("generation", seed=str(self.dice.randrange(10_000)))
        for _ in range(self.dice.randint(10, 30)):
            if self.left <= 0:
                return
            await self.act("let a model write", tab.press("generation_write"))
            await self.act("begin the writing anew", tab.press("generation_restart"))
            if self.dice.random() < 0.2:
                await self.act("another seed", tab.press("generation_new_seed"))


class Trainer(Student):
    """Starts runs, waits in the queue, watches the curve, leaves and comes back.

    Args:
        at_once: how many runs are started one after the other without waiting for the first.
        steps: of each run.
        size: of each model.
        queue: of the home folder, to compare places with; nothing is started through it.
    """

    idle = False
    page = "training"

    def __init__(
        self, *about: Any, at_once: int = 1, steps: int = 500, size: str = "small", queue: RunQueue
    ) -> None:
        """See the class."""
        super().__init__(*about)
        self.at_once, self.steps, self.size, self.queue = at_once, steps, size, queue

    async def work(self) -> None:
        """One run, or several at once, to the end."""
        tab = await self.open("training")
        await self.think()
        settings = {"training_size": self.size, "training_steps": self.steps}
        await self.act("set up a run", tab.rerun(**settings))
        run_id = ""
        for _ in range(self.at_once):
            await self.act("set up a run", tab.rerun(training_seed=self.dice.randrange(900_000)))
            await self.act("start a run", tab.press("training_start"))
            run_id = address(tab.query).get("run", "")
            if run_id in ("", *self.log.started):
                self.log.errors.append(f"Start gave no new run: {tab.query!r}, {tab.words()[:3]}")
            self.log.started[run_id] = self.person.word
        while self.left > 0 and tab.ticks:
            if self.dice.random() < 0.03:
                await self.leave_amid(tab.rerun())
                await self.think()
                tab = await self.open("training", run=run_id)
            await self.watch(tab, run_id)
        await self.think()

    async def watch(self, tab: Tab, run_id: str) -> None:
        """One second before the curve, or in the queue."""
        part, every = next(iter(tab.ticks.items()))
        before = self.place_of(run_id)
        ran = await self.act("see the curve grow", tab.tick(part))
        self.compare_place(tab, {before, self.place_of(run_id)})
        await self._sleep(every - ran.seconds)

    def place_of(self, run_id: str) -> int | None:
        """Its place in the queue now; None if it does not wait."""
        return self.queue.places().get(run_id)

    def compare_place(self, tab: Tab, places: set[int | None]) -> None:
        """See that the page says the place that the run had before or after it was drawn."""
        found = [match for text in tab.words() if (match := PLACE.search(text))]
        shown = int(found[0][1].replace(",", "")) if found else None
        if shown is not None:
            self.log.places[shown] += 1
        told = not places - {None} or shown is not None or None in places
        if not told or (shown is not None and shown not in places):
            self.log.wrong_places.append(f"shown {shown}, was {sorted(map(str, places))}")


Maker = Callable[[str, Log, random.Random, float, float], Student]
