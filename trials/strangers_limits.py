"""Numbers that no widget offers, many runs at once, and guesses at the teacher's secret."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from streamlit.proto.NumberInput_pb2 import NumberInput
from streamlit.proto.Slider_pb2 import Slider
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.app import App
from engine import new_runs
from engine.config import ModelConfig, TrainConfig
from engine.runs import MOST_ACTIVE, RunStore
from engine.teacher_secret import MOST_IN_WINDOW, WINDOW, Guard, TooSoonError, WrongSecretError, secret_of
from trials.outcomes import Check
from trials.strangers_people import Listener, Spy, pressed, spec

PATIENCE = 20.0  # s for a page with a number that is far too large, beside whatever else the machine does
GROWTH = 400.0  # MB
HUGE = (10**12, 10**9, -(10**12))
MODEL = ("vocab_size", "context_length", "n_layer", "n_head", "d_model", "d_ff", "n_kv_head", "head_width")
TRAINING = ("steps", "batch_size", "moments")
PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("generation", {}), ("generation", {"view": "branches"}), ("tokens", {"view": "merges"}), ("masking", {}),
    ("tuning", {}), ("embeddings", {}), ("compare", {}), ("inside", {}), ("attention", {}),
    ("training", {"watch": "one-step"}), ("experiments", {}), ("next_token", {}),
)  # fmt: skip
HOUR = 3600.0


def refused(make: Callable[[], object]) -> bool:
    """Whether settings are refused at once, in words."""
    began = time.process_time()
    try:
        make()
    except ValueError:
        return time.process_time() - began < 1.0
    return False


def settings() -> Check:
    """Sizes of models and runs far beyond what exists."""
    whole, train = ModelConfig(vocab_size=300).to_json(), TrainConfig().to_json()
    tried, passed = 0, []
    for huge in HUGE:
        shapes = {name: partial(ModelConfig.from_json, {**whole, name: huge}) for name in MODEL}
        recipes = {name: partial(TrainConfig.from_json, {**train, name: huge}) for name in TRAINING}
        tried += len(shapes) + len(recipes)
        passed += [name for name, make in (shapes | recipes).items() if not refused(make)]
    base = spec("Large", "a text of one's own, again and again. " * 400)
    for name, value in (("d_model", 900_000), ("n_layer", 1000)):
        large = ModelConfig.from_json({**base.model.to_json(), name: value, "d_ff": 999_999})
        tried += 1
        if not refused(replace(base, model=large).check):
            passed.append(f"a model with {name} {value}")
    tried += 1
    if not refused(
        replace(
            base, model=replace(base.model, context_length=512), train=replace(base.train, batch_size=60_000)
        ).check
    ):
        passed.append("30 million tokens in a step")
    what = "Sizes of models and runs that no machine holds are refused at once, before anything is made"
    return Check(what, f"{tried} tried, not refused: {', '.join(passed) or 'none'}", not passed)


def _huge(tab: Listener, key: str, value: int) -> WidgetState | None:
    """A number widget with a value that it doesn't offer."""
    shown = tab._widget(key)
    state = WidgetState(id=shown.content.id)
    if shown.kind == "slider" and shown.content.type == Slider.Type.SLIDER:
        state.double_array_value.data.extend([float(value)] * max(1, len(shown.content.default)))
    elif shown.kind == "number_input" and shown.content.data_type == NumberInput.DataType.INT:
        state.int_value = value
    elif shown.kind == "number_input":
        state.double_value = float(value)
    else:
        return None
    return state


async def forged(spy: Spy, app: App, toy: bool) -> Check:
    """Send each number of each page such a value."""
    before, tried, slow, worst = app.memory(), 0, list[str](), 0.0
    for page, query in PAGES[:1] if toy else PAGES:
        tab = await spy.listen(page, **query)
        for key in filter(None, list(tab.keys())):
            for value in (10**9,) if toy else HUGE[1:]:
                try:
                    state = _huge(tab, key, value)
                except KeyError:
                    continue  # the page has changed
                if state is None:
                    continue
                began = time.monotonic()
                await tab.forge(state)
                tried, took = tried + 1, time.monotonic() - began
                worst = max(worst, took)
                slow += [f"{page}: {key} ({took:.0f} s)"] if took > PATIENCE else []
        await tab.close()
    grown = app.memory() - before
    what = f"A number that no widget offers costs under {PATIENCE:g} s and {GROWTH:g} MB"
    seen = f"{tried} tried, the slowest answered after {worst:.1f} s, {grown:.0f} MB more"
    seen += f"; slow: {', '.join(slow[:3])}" if slow else ""
    return Check(what, seen, tried > 0 and not slow and grown < GROWTH)


async def start(spy: Spy, home: str) -> Check:
    """Press Start with each setting of the Training page far too large."""
    tab = await spy.listen("training", watch="train")
    names = (
        "steps",
        "batch_size",
        "d_model",
        "n_layer",
        "context_length",
        "vocab_size",
        "n_head",
        "warmup_steps",
    )
    before, tried = _runs(home), 0
    for name in names:
        key = f"training_{name}"
        if not tab.has(key):
            continue
        state = _huge(tab, key, 10**9)
        if state is not None:
            await tab.forge(state, pressed(tab._widget("training_start").content.id))
            tried += 1
    made = {run: config for run, config in _runs(home).items() if run not in before}
    bad = [f"{name} {value}" for one in made.values() for name, value in one.items() if value > 10**7]
    return Check("Start refuses settings that are far too large, whoever sends them",
                 f"{tried} presses, {len(made)} runs made, with such a setting: {', '.join(bad) or 'none'}",
                 tried > 2 and not bad)  # fmt: skip


def _runs(home: str) -> dict[str, dict[str, int]]:
    """The numbers of all runs."""
    store = RunStore(home)
    found: dict[str, dict[str, int]] = {}
    for info in store.list():
        all_of = {**info.model.to_json(), **info.train.to_json()}
        found[info.id] = {name: value for name, value in all_of.items() if isinstance(value, int)}
    store.close()
    return found


def queue(home: str) -> Check:
    """One person starts run after run while none begins."""
    store = RunStore(home)
    new_runs.let_begin(store.home, False)
    text, said, n = "one more run, and one more again. " * 20, "", 0
    base = spec("Again", text)
    for seed in range(MOST_ACTIVE + 5):
        try:
            store.start(replace(base, train=replace(base.train, seed=100 + seed)), "a greedy person")
            n += 1
        except ValueError as error:
            said = str(error)
    for info in store.list("a greedy person"):
        store.stop(info.id, "a greedy person")
        store.delete(info.id, "a greedy person")
    store.close()
    return Check(f"One person has at most {MOST_ACTIVE} runs that run or wait", f"{n} taken, then: {said}",
                 n == MOST_ACTIVE and bool(said))  # fmt: skip


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.now


def guesses(home: Path) -> list[Check]:
    """An hour of guesses, ten new sessions a second at one address; a teacher comes now and then."""
    clock = Clock()
    guard = Guard(home, clock)
    right = secret_of(home)
    guard.check(right, "the teacher at first", address="10.0.0.9", browser="the teacher's")
    looked, kept_out, came, tries = 0, 0, 0, 0
    for second in range(int(HOUR)):
        for n in range(10):
            clock.now = second + n / 10
            tries += 1
            looked += _try(
                guard, f"guess {second}", f"session {second} {n}", "10.0.0.9", f"browser {second} {n}"
            )
        if second % 60 == 59 and (
            came := came + 2
        ):  # at another address; at the same one, with a browser that was right before
            kept_out += not _gets_in(guard, right, f"a {second}", "10.0.0.2", "another")
            kept_out += not _gets_in(guard, right, f"b {second}", "10.0.0.9", "the teacher's")
    most = MOST_IN_WINDOW * (HOUR / WINDOW + 1)
    return [
        Check(f"Of guesses at the teacher's secret {MOST_IN_WINDOW} a minute are looked at, in all sessions",
              f"{tries:,} guesses in an hour from one address, {looked:,} looked at", looked <= most),
        Check("Who guesses on and on never keeps the teacher out",
              f"the teacher came {came} times meanwhile and was kept out {kept_out} times", not kept_out),
    ]  # fmt: skip


def _try(guard: Guard, typed: str, session: str, address: str, browser: str) -> bool:
    try:
        guard.check(typed, session, address=address, browser=browser)
    except TooSoonError:
        return False
    except WrongSecretError:
        return True
    return True


def _gets_in(guard: Guard, right: str, session: str, address: str, browser: str) -> bool:
    try:
        guard.check(right, session, address=address, browser=browser)
    except ValueError:
        return False
    return True
