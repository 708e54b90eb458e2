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

UNITS: dict[str, Callable[[Cost], float | None]] = {
    "tokens": lambda cost: cost.n_tokens,
    "tokens per word": lambda cost: cost.tokens_per_word,
    "characters per token": lambda cost: cost.characters_per_token,
    "bytes per token": lambda cost: cost.bytes_per_token,
}
TABLE = "tokens_costs"


def draw(text: str) -> None:
    """The whole view, for a text that is not empty."""
    found = vocabularies.compare(session.model(), text)
    costs = list(found.costs)
    unit = str(
        st.segmented_control(
            "Unit of the bars", list(UNITS), default="tokens", required=True, key="tokens_unit", wrap=True,
            persist_state="session", label_visibility="collapsed",
        )
    )  # fmt: skip
    picture, worked = st.columns([5, 4], gap="medium", vertical_alignment="center")
    row = _table(found)
    with picture:
        values, names = [UNITS[unit](cost) for cost in costs], [cost.name for cost in costs]
        show(vocabulary_bars(names, values, unit=unit, chosen=row, whole=unit == "tokens"), key="tokens_bars")
    with worked:
        _worked(costs[row])
    _strips(found)
    missing = vocabularies.absent()
    with st.expander("More vocabularies" + (f": {len(missing)} are missing" if missing else "")):
        vocabulary_files.panel()


def _table(found: vocabularies.Compared) -> int:
    """All numbers; gives the chosen row, at first the model's own vocabulary."""
    costs, own = found.costs, vocabularies.OWN
    first = found.options.index(own) if own in found.options else 0
    columns: dict[str, Any] = {
        "vocabulary": [cost.name for cost in costs],
        "its size": [cost.vocab_size for cost in costs],
        **{name: [value(cost) for cost in costs] for name, value in UNITS.items()},
    }
    chosen = st.dataframe(
        columns,
        hide_index=True,
        height="content",
        key=TABLE,
        on_select="rerun",
        selection_mode="single-row-required",
        selection_default={"selection": {"rows": [first]}},
        placeholder="none",
        column_config={
            "its size": st.column_config.NumberColumn(format="localized", help="How many ids it has"),
            "tokens": st.column_config.NumberColumn(format="localized"),
            **{name: st.column_config.NumberColumn(format="%.3g") for name in UNITS if name != "tokens"},
        },
        alt="What the text costs in each vocabulary",
    )
    rows = chosen.selection.rows
    return min(rows[0], len(costs) - 1) if rows else first


def _worked(cost: Cost) -> None:
    """The numbers of the chosen vocabulary, worked out."""
    st.markdown(f"**{literal(cost.name)}**, worked out")
    size = cost.size
    st.latex(worked_tokens.cost(cost.n_tokens, size.characters, size.bytes, size.words))
    if size.words is None:
        st.caption(
            "Words are not counted: this text is in a script that puts no spaces between words, such as "
            "Chinese, Japanese or Thai."
        )
    else:
        st.caption("A word is a run of letters and digits; an apostrophe inside belongs to it.")


def _strips(found: vocabularies.Compared) -> None:
    """The first tokens of each, one under the other."""
    st.subheader("Where each one cuts")
    st.caption(
        f"The first {vocabularies.HEAD} tokens. Choose a piece to look at it closely. A dashed frame is one "
        "character of several tokens. The characters vocabulary knows this text’s characters and no others."
    )
    for option, cost, head in zip(found.options, found.costs, found.heads, strict=True):
        left, right = st.columns([1, 5], gap="small")
        left.markdown(f"**{literal(cost.name)}**  \n{counted(cost.n_tokens, 'token')}")
        with right:
            token_strip(
                head,
                key=f"tokens_head_{found.options.index(option)}",
                label=f"{cost.name}: the first tokens",
                on_press=partial(look_closely, option),
            )


def look_closely(option: str, index: int) -> None:
    """Open the pieces of a vocabulary at one of its tokens. For callbacks."""
    st.session_state["view"] = "Pieces"
    st.session_state["tokens_vocabulary"] = option
    st.session_state["tokens_special"] = False
    st.session_state[f"_{STRIP}_about"] = (session.text(), option)  # else the new text would begin at token 0
    select(STRIP, index)
