"""What all worked examples share: the switch to real numbers, the picture beside the sum, its table."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ui import example_inputs, model_refs, nav, passes, resources, session
from ui.example_sum import Number
from ui.model_refs import ModelRef
from ui.words import literal
from ui.worked import aligned
from viz import format_count, visible
from wording import words

if TYPE_CHECKING:
    from engine.trace import Trace

say = words("ui.example_frame")
SHOWN = 5  # tokens of a real distribution; all others are one entry more
_REAL = "real"


def real(objective: str | None = "clm", *, needs_text: int = 1) -> ModelRef | None:
    """The switch "use the current model": the model if it is on and fits, else None, with the reason said.

    Args:
        objective: "clm" or "mlm" if only such a model fits.
        needs_text: how many tokens the text in the sidebar must have at least.
    """
    if not st.toggle(say("use_model"), key=_REAL, bind="query-params", help=say("use_model_help")):
        return None
    ref = session.model()
    if ref is None:
        st.info(say("no_model"))
        nav.link("training", say("train"))
        return None
    if objective and ref.objective != objective:
        _offer(objective)
        return None
    if len(passes.window(ref, session.text()).tokens) < needs_text if session.text() else needs_text > 0:
        st.info(say("short_text", n=needs_text))
        st.button(
            say("use_text"), key="example_use_text", on_click=session.set_text, args=(session.DEFAULT_TEXT,)
        )
        return None
    try:
        resources.load(ref)
    except ValueError as error:
        st.error(literal(str(error)))
        return None
    return ref


def _offer(objective: str) -> None:
    """Another kind of model is needed: say so, and offer up to two."""
    st.info(say(f"needs.{objective}"))
    fitting = [ref for ref in model_refs.available_models(session.owner()) if ref.objective == objective]
    with st.container(horizontal=True):
        for ref in fitting[:2]:
            st.button(
                say("use_other", name=literal(ref.label)), key=f"example_use_{ref.id}",
                on_click=session.choose_model, args=(ref.id,),
            )  # fmt: skip
        if not fitting:
            nav.link("training", say("train"))


def looked(ref: ModelRef, hidden: tuple[int, ...] = ()) -> "Trace":
    """The pass over the sidebar's text.

    Raises:
        ValueError: if the model's output is not finite.
    """
    trace = passes.traced(ref, session.text(), hidden=hidden)
    if not np.isfinite(trace.logits).all():
        raise ValueError(say("diverged"))
    return trace


def which_head(n_layer: int, n_head: int) -> tuple[int, int]:
    """Inputs for a layer and a head of a model, counted from 1; gives back both counted from 0."""
    layer = example_inputs.count("tiny_layer", say("layer", last=n_layer), 1, 1, n_layer)
    return layer - 1, example_inputs.count("tiny_head", say("head", last=n_head), 1, 1, n_head) - 1


def name_of(ref: ModelRef, token_id: int) -> str:
    """A token of the vocabulary with visible marks."""
    return visible(resources.tokenizer(ref).token_bytes(int(token_id)))


def likeliest(
    ref: ModelRef, logits: NDArray[Any], *, also: int | None = None
) -> tuple[list[str], list[int], int]:
    """Names and ids of the likeliest tokens, and how many others there are.

    Args:
        ref: the model.
        logits: (V,).
        also: a token that must be among them.
    """
    from engine.metrics import most_likely, softmax

    top = most_likely(softmax(logits), SHOWN, also=also)
    ids = [int(i) for i in top.ids]
    return [name_of(ref, i) for i in ids], ids, top.n_tail


def rest_name(n: int) -> str:
    """How the entry of all other tokens is called."""
    return say("rest", n=format_count(n))


def beside(picture: Callable[[], None], lines: Callable[[], None], *, share: float = 0.5) -> None:
    """The picture, and beside it the sum; on a telephone below it. `share` of the width is the picture's."""
    left, right = st.columns([share, 1 - share], gap="medium")
    with left:
        picture()
    with right:
        lines()


def inputs() -> Any:
    """A row for inputs; on a telephone they stand below each other."""
    return st.container(horizontal=True, vertical_alignment="bottom")


def formula(*lines: str, small: bool = False) -> None:
    """Several lines, `&` under `&`; `small` for many long ones."""
    st.latex((r"\small " if small else "") + aligned(*lines))


def grid(columns: Mapping[str, Sequence[str | Number | int]], *, key: str = "") -> None:
    """A table of texts and numbers; formulas as headings. Texts must be escaped for Markdown."""
    st.table(
        {
            name: [cell.cell if isinstance(cell, Number) else str(cell) for cell in cells]
            for name, cells in columns.items()
        },
        hide_index=True,
    )


def escaped(names: Sequence[str]) -> list[str]:
    """Names that Markdown shows as they are."""
    return [literal(name) for name in names]


def added(numbers: Sequence[Number], *, most: int = 4) -> str:
    """Numbers with plus signs between them, the middle left out if there are many."""
    parts = [str(number) for number in numbers]
    if len(parts) > most + 1:
        parts = [*parts[: most - 1], r"\dots", parts[-1]]
    return " + ".join(parts).replace("+ -", "- ")


def times(numbers: Sequence[Number], *, most: int = 4) -> str:
    """Numbers with multiplication signs between them, the middle left out if there are many."""
    parts = [number.signed if i else str(number) for i, number in enumerate(numbers)]
    if len(parts) > most + 1:
        parts = [*parts[: most - 1], r"\dots", parts[-1]]
    return r" \cdot ".join(parts)
