"""The chosen model at any kept moment of its training, on the text of all pages."""

from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from ui import choice, lesson, passes, resources, session, time_data
from ui.components import current, select
from ui.components.moments import moments
from ui.model_refs import ModelRef
from ui.time_parts import Scene, parts_of
from wording import words

say = words("ui.time_machine")

MACHINE, PLACE, HEAD = "time_machine", "time_place", "time_head"
PIECE = 0.25  # seconds of writing in one script run, so that the page stays quick
POLL = 0.35


def draw() -> None:
    """The curve with a cursor, and what the model expects at that moment."""
    ref, text = session.require_trained(), session.text()
    lesson.look(ref, text)  # says why there is nothing to see, if so
    kept = time_data.moments_of(ref)
    waiting = time_data.samples(kept, text).missing > 0
    st.fragment(_machine, run_every=POLL if waiting else None)(ref, text, kept, waiting)
    _try(ref, kept)


def _machine(ref: ModelRef, text: str, kept: tuple[ModelRef, ...], waiting: bool) -> None:
    steps = [moment.step for moment in kept]
    if len(steps) < 2:
        st.info(say("only_one_moment"))
    now = current(MACHINE, steps[-1])
    written = time_data.samples(kept, text)
    try:
        scene = _scene(ref, text, kept)
        written.work(steps.index(now) if now in steps else len(steps) - 1, PIECE)
    except ValueError as error:
        lesson.explain(error)
    moments(
        steps, parts_of(scene, written), key=MACHINE, default=steps[-1],
        on_place=lambda index: select(PLACE, index), on_head=lambda layer, head: select(HEAD, (layer, head)),
    )  # fmt: skip
    if waiting and not written.missing:
        st.rerun()  # no more polls


def _scene(ref: ModelRef, text: str, kept: tuple[ModelRef, ...]) -> Scene:
    """What is looked at now."""
    strip, n = lesson.strip_of(ref, text), len(passes.window(ref, text).tokens)
    places = range(n) if ref.objective == "clm" else resources.tokenizer(ref).inner(n)  # the frame stays
    last = strip.n_greyed + places[-1]
    choice.begin(PLACE, last, about=(ref.id, text))
    position = min(max(int(current(PLACE, last)) - strip.n_greyed, places[0]), places[-1])
    past = time_data.past(kept, text, position)
    choice.begin(HEAD, (0, 0), about=ref.id)
    _, n_layer, n_head, _, _ = past.weights.shape
    layer, head = current(HEAD, (0, 0))
    layer, head = min(layer, n_layer - 1), min(head, n_head - 1)
    truth = time_data.truth(ref, text, position, past.probs.shape[1])
    return Scene(ref, text, past, position, layer, head, truth, _records(ref))


def _records(ref: ModelRef) -> list[dict[str, Any]]:
    """How the training went: losses by step."""
    from engine.records import read_records

    if ref.kind == "shipped":
        return read_records(Path(ref.folder) / "metrics.jsonl")[0]
    try:
        return list(resources.run_store().history(ref.id.removeprefix("run:")))
    except ValueError:  # deleted in another window
        return []


def _go(step: int) -> None:
    """Move the slider. For `on_click`."""
    select(MACHINE, step)


def _recall(ref: ModelRef, step: int) -> None:
    """A story that ends with the name that it began with, seen from where the name is guessed.

    The head is the one that, at the end of training, looks most at the name's first place, or right after it,
    where an earlier layer may have carried it. For `on_click`.
    """
    text = lesson.RECALL
    session.set_text(text)
    select(MACHINE, step)
    trace = passes.traced(ref, text)
    ids = [token.id for token in trace.tokens]
    place = len(ids) - 1 - (ref.objective == "clm")
    if trace.unused or ids[-1] not in ids[:place]:
        return  # a short context, or a vocabulary in which the name is several tokens
    choice.hold(PLACE, place, (ref.id, text))
    if ref.objective == "mlm":
        trace = passes.traced(ref, text, hidden=(place,))
    at = ids.index(ids[-1])
    weights = trace.attentions[:, :, place, at : at + 2].max(axis=-1)  # (L,H)
    layer, head = np.unravel_index(int(weights.argmax()), weights.shape)
    choice.hold(HEAD, (int(layer), int(head)), ref.id)


def _try(ref: ModelRef, kept: tuple[ModelRef, ...]) -> None:
    steps = [moment.step for moment in kept]
    if len(steps) < 4:
        return
    early, middle = steps[len(steps) // 5], steps[len(steps) // 2]
    said = say("try_middle", middle=middle)
    last = lesson.Step(said, say("go_to_step", step=middle), _go, (middle,))
    if ref.corpus == "stories":
        said = say("try_story")
        last = lesson.Step(said, say("tell_lily"), _recall, (ref, steps[0]))
    lesson.try_this(
        lesson.Step(
            say("try_start"),
            say("go_to_start"), _go, (steps[0],),
        ),
        lesson.Step(
            say("try_early", early=early),
            say("go_to_step", step=early), _go, (early,),
        ),
        last,
        key="time_try",
    )  # fmt: skip
