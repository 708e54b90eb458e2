"""The settings of the next fine-tuning, beside the picture: its start, its text or pairs, what learns."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from ui import tuning_models, tuning_parts, tuning_settings, tuning_spec
from ui.model_refs import ModelRef
from ui.tuning_pairs import PairChoice, Pairs
from ui.words import duration, literal
from wording import words

if TYPE_CHECKING:
    from engine.run_spec import RunSpec

say = words("ui.tuning_form")


def source(ref: ModelRef, draw: Callable[[], None], problem: str) -> None:
    """Where it starts, and what it learns from, which `draw` draws; what is wrong with that stands below."""
    st.markdown(say("next_one"))
    st.caption(say("starts_from", name=literal(ref.label)))
    draw()
    if problem:
        st.warning(literal(problem))


def read(choice: PairChoice) -> tuple[Pairs | None, str]:
    """The pairs that were chosen, or what is wrong with them."""
    try:
        return choice.read(), ""
    except ValueError as error:
        return None, str(error)


def spec(ref: ModelRef, choice: PairChoice) -> "RunSpec":
    """The run on the pairs that were chosen."""
    aim = choice.aim
    return tuning_spec.spec(aim, ref, choice.read().corpus(aim), tuning_spec.row_length(aim, ref))


def pairs(
    ref: ModelRef,
    choice: PairChoice,
    found: Pairs | None,
    problem: str,
    careful: Callable[[ModelRef], None] = lambda ref: None,
) -> None:
    """All settings of a run on pairs; `careful` warns of some of them."""
    aim, shape = choice.aim, tuning_models.config_of(ref)
    source(ref, choice.draw, problem)
    tuning_settings.draw(aim, ref, shape.n_layer)
    careful(ref)
    if found is not None:
        length = tuning_spec.usual_length(aim, ref, found.train)
        time = duration(tuning_spec.seconds(aim, ref, length))
        st.caption(say("what_is_learned", n=len(found.train), held_out=len(found.held_out),
                       rows=tuning_settings.ROWS, time=time))  # fmt: skip
        tuning_spec.tell_memory(aim, ref, length)
    last = tuning_settings.last_blocks(aim, ref, shape.n_layer)
    tuning_parts.draw(shape, last, key=f"tuning_stack_{aim}")
