"""Looking into a vocabulary: its tokens by length and by use, in a table, and how one of them was built."""

from dataclasses import dataclass
from functools import partial

import streamlit as st

import viz
from engine.merges import N_BYTES, History
from ui import worked_merges
from ui.components import show
from wording import words

say = words("ui.merge_vocabulary")

_TOKEN, _TABLE, _FIND = "merges_token", "merges_table", "merges_find"
_LONGEST = 48  # characters of a cell
_HEX = 16  # bytes written as hexadecimal digits


@dataclass(frozen=True, eq=False)
class Rows:
    """The table, a list for each column, and the visible text of each token in full length."""

    texts: list[str]
    hexes: list[str]
    built: list[str]
    uses: list[int]


def draw(history: History) -> None:
    """Draw the figures, the table and the chosen token."""
    st.subheader(say("title"))
    st.fragment(_vocabulary)(history)


def _vocabulary(history: History) -> None:
    last = history.tokenizer.vocab_size - 1
    st.session_state[_TOKEN] = min(int(st.session_state.get(_TOKEN, last)), last)
    chosen, rows = int(st.session_state[_TOKEN]), _rows(history.tokenizer.hash, history.n_bytes, history)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(say("lengths"))
        show(viz.token_lengths(history.sizes), key="merges_lengths")
    with right:
        st.markdown(say("uses"))
        show(viz.token_uses(rows.texts, history.uses, chosen=chosen), key="merges_uses")
        never = int((history.uses == 0).sum())
        st.caption(say("never_used", n=never, of=last + 1))
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _table(rows)
    with right:
        _one(history, rows, last)


@st.cache_resource(max_entries=6, show_spinner=False)
def _rows(vocabulary: str, n_bytes: int, _history: History) -> Rows:
    data = _history.data
    texts = [viz.clip(viz.visible(one[:200]), _LONGEST) for one in data]
    made = [_history.parts(i) for i in range(len(data))]
    return Rows(
        texts,
        [one[:_HEX].hex(" ").upper() + (" …" if len(one) > _HEX else "") for one in data],
        [f"{texts[pair[0]]} + {texts[pair[1]]}" if pair else "" for pair in made],
        _history.uses.tolist(),
    )


def _table(rows: Rows) -> None:
    query = st.text_input(
        say("find"), key=_FIND, persist_state="session", placeholder=say("find_hint"), live=True
    )
    ids = found(rows.texts, query)
    if not ids:
        st.caption(say("found_none"))
        return
    st.dataframe(
        {
            "id": ids,
            "text": [rows.texts[i] for i in ids],
            "bytes": [rows.hexes[i] for i in ids],
            "built_from": [rows.built[i] or say("a_byte") for i in ids],
            "uses": [rows.uses[i] for i in ids],
        },
        hide_index=True,
        column_config=say.table("column"),
        height=330,
        key=_TABLE,
        on_select=partial(_pick, ids),
        selection_mode="single-row",
    )


def found(texts: list[str], query: str) -> list[int]:
    """Ids whose text holds the words looked for, or that have this number; the single bytes last."""
    order = [*range(N_BYTES, len(texts)), *range(N_BYTES)]
    if not query:
        return order
    wanted = viz.visible(query)
    exact = int(query) if query.isdecimal() and len(query) < 6 else -1
    return [i for i in order if wanted in texts[i] or query in texts[i] or i == exact]


def _pick(ids: list[int]) -> None:
    chosen = st.session_state[_TABLE].selection.rows
    if chosen and chosen[0] < len(ids):
        st.session_state[_TOKEN] = ids[chosen[0]]


def _one(history: History, rows: Rows, last: int) -> None:
    """The chosen token: how it was built, and how much of the text it is."""
    chosen = int(
        st.number_input(
            say("built"), 0, last, key=_TOKEN, persist_state="session",
            help=say("built_help"),
        )
    )  # fmt: skip
    st.code(viz.merge_tree(chosen, history.parts, rows.texts.__getitem__), language=None, height=220)
    st.latex(worked_merges.share_of(int(history.uses[chosen]), int(history.lengths[-1])))
