"""One text in many vocabularies, side by side: what it costs in each, and where each one cuts."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from engine.token_costs import Cost
from ui import session, vocabularies, vocabulary_files, worked_tokens
from ui.components import select, show, token_strip
from ui.tokens_pieces import STRIP
from ui.words import counted, literal
from viz import vocabulary_bars
from wording import words

say = words("ui.tokens_compare")

UNITS: dict[str, Callable[[Cost], float | None]] = {
    "tokens": lambda cost: cost.n_tokens,
    "tokens-per-word": lambda cost: cost.tokens_per_word,
    "characters-per-token": lambda cost: cost.characters_per_token,
    "bytes-per-token": lambda cost: cost.bytes_per_token,
}
TABLE = "tokens_costs"


def draw(text: str) -> None:
    """The whole view, for a text that is not empty."""
    found = vocabularies.compare(session.model(), text)
    costs = list(found.costs)
    unit = str(
        st.segmented_control(
            say("units"), list(UNITS), default="tokens", required=True, key="tokens_unit", wrap=True,
            persist_state="session", label_visibility="collapsed", format_func=say.table("unit").__getitem__,
        )
    )  # fmt: skip
    picture, worked = st.columns([5, 4], gap="medium", vertical_alignment="center")
    row = _table(found)
    if found.left_out:
        st.caption(say("left_out", names=literal(", ".join(found.left_out))))
    with picture:
        values, names = [UNITS[unit](cost) for cost in costs], [cost.name for cost in costs]
        title, whole = say(f"unit.{unit}"), unit == "tokens"
        show(vocabulary_bars(names, values, unit=title, chosen=row, whole=whole), key="tokens_bars")
    with worked:
        _worked(costs[row])
    _strips(found)
    missing = vocabularies.absent()
    with st.expander(say("some_missing", n=len(missing)) if missing else say("more_vocabularies")):
        vocabulary_files.panel()


def _table(found: vocabularies.Compared) -> int:
    """All numbers; gives the chosen row, at first the model's own vocabulary."""
    costs, own = found.costs, vocabularies.OWN
    first = found.options.index(own) if own in found.options else 0
    columns: dict[str, Any] = {
        "vocabulary": [cost.name for cost in costs],
        "size": [cost.vocab_size for cost in costs],
        **{name: [value(cost) for cost in costs] for name, value in UNITS.items()},
    }
    number = st.column_config.NumberColumn
    chosen = st.dataframe(
        columns,
        hide_index=True,
        height="content",
        key=TABLE,
        on_select="rerun",
        selection_mode="single-row-required",
        selection_default={"selection": {"rows": [first]}},
        placeholder=say("none"),
        column_config={
            "vocabulary": say("vocabulary"),
            "size": number(say("size"), format="localized", help=say("size_help")),
            **{name: number(label, format="%.3g") for name, label in say.table("unit").items()},
            "tokens": number(say("unit.tokens"), format="localized"),
        },
        alt=say("table"),
    )
    rows = chosen.selection.rows
    return min(rows[0], len(costs) - 1) if rows else first


def _worked(cost: Cost) -> None:
    """The numbers of the chosen vocabulary, worked out."""
    st.markdown(say("worked_out", name=literal(cost.name)))
    size = cost.size
    st.latex(worked_tokens.cost(cost.n_tokens, size.characters, size.bytes, size.words))
    if size.words is None:
        st.caption(say("no_words"))
    else:
        st.caption(say("word"))


def _strips(found: vocabularies.Compared) -> None:
    """The first tokens of each, one under the other."""
    st.subheader(say("where"))
    st.caption(say("heads", n=vocabularies.HEAD))
    for option, cost, head in zip(found.options, found.costs, found.heads, strict=True):
        left, right = st.columns([1, 5], gap="small")
        left.markdown(f"**{literal(cost.name)}**  \n{counted(cost.n_tokens, 'token')}")
        with right:
            token_strip(
                head,
                key=f"tokens_head_{found.options.index(option)}",
                label=say("head", name=cost.name),
                on_press=partial(look_closely, option),
            )


def look_closely(option: str, index: int) -> None:
    """Open the pieces of a vocabulary at one of its tokens. For callbacks."""
    st.session_state["view"] = "pieces"
    st.session_state["tokens_vocabulary"] = option
    st.session_state["tokens_special"] = False
    st.session_state[f"_{STRIP}_about"] = (session.text(), option)  # else the new text would begin at token 0
    select(STRIP, index)
