"""Two models on one text: where each is the more surprised."""

import streamlit as st

from engine import metrics
from ui import address, choice, lesson, nav, session
from ui.compare_models import early_moment, explain_masked, has_early_moment, second_model
from ui.compare_place import place
from ui.compare_text import Both, better, read_both, signed, totals, totals_columns, what_was_read
from ui.components import select, show, token_strip
from ui.model_refs import ModelRef
from viz import NEUTRAL
from viz.compare import difference_bars, difference_color
from wording import words

nav.require_app()
say = words("pages.compare")

DRAWN = 300  # pieces of the strip
LISTED = 12  # rows of the table
STRIP = "compare_strip"
WORLD = "The capital of France is Paris, the capital of Spain is Madrid, and the capital of Japan is Tokyo."
STRANGE = "Once upon a time, there was a spreadsheet who loved the rain."

st.title(nav.title("compare"))
st.write(say("intro"))

explain_masked()
ref, text = session.require_model("clm"), session.text()


def controls(can_choose: bool) -> tuple[str, bool]:
    """The unit, and for a long text how much of it."""
    with st.container(horizontal=True):
        unit = st.segmented_control(
            say("unit"), ["nats", "bits"], default="nats", required=True, key="compare_unit",
            persist_state="session", label_visibility="collapsed",
        )  # fmt: skip
        scope = "context"
        if can_choose:
            scope = address.choose(
                st.segmented_control, say("how_much"), say.table("scope"), key="compare_scope", required=True,
                label_visibility="collapsed",
            )  # fmt: skip
    return str(unit), scope == "whole"


def choose(both: Both, unit: str) -> int:
    """The text in pieces with the differences under them; gives the chosen piece."""
    gap = metrics.surprisal(-both.found.difference, unit)
    segments, n_before = both.chips(DRAWN)
    shown, most = gap[:DRAWN].tolist(), float(abs(gap).max())
    worst = n_before + int(abs(gap[:DRAWN]).argmax())
    choice.begin(
        STRIP,
        worst,
        about=(both.refs, text, both.traces is None),
        names=("pos",),
        first=both.first - n_before,
    )
    index = token_strip(
        segments,
        key=STRIP,
        selected=worst,
        values=[""] * n_before + [signed(x) for x in shown],
        colors=[NEUTRAL] * n_before + [difference_color(x, most) for x in shown],
        greyed=range(n_before),
        label=say("strip"),
    )
    piece = max((worst if index is None else index) - n_before, 0)
    choice.share({"pos": piece + both.first})
    told = [say("drawn", drawn=DRAWN, n=len(gap))] if len(gap) > DRAWN else []
    told.append(say("under", unit=unit))
    if not both.same_tokens:
        told.append(say("pieces"))
    st.caption(" ".join(told))
    return piece


def table(both: Both, unit: str) -> None:
    """Where they differ most, and two buttons that go there."""
    gap, names = metrics.surprisal(-both.found.difference, unit), both.names()
    n_before = both.chips(DRAWN)[1]
    with st.container(horizontal=True):
        for name, at in (("A", int(gap[:DRAWN].argmax())), ("B", int(gap[:DRAWN].argmin()))):
            st.button(
                say("go", name=name), key=f"compare_go_{name}", on_click=select,
                args=(STRIP, n_before + at),
            )  # fmt: skip
    order = abs(gap).argsort()[::-1][:LISTED].tolist()
    surprise = [metrics.surprisal(-both.found.nats[side][order], unit).tolist() for side in (0, 1)]
    columns = {
        f"A ({unit})": surprise[0],
        f"B ({unit})": surprise[1],
        say("column.difference", unit=unit): gap[order].tolist(),
    }
    st.dataframe(
        {
            say(f"column.{both.place}"): [i + both.first for i in order],
            say("column.token") if both.same_tokens else say("column.text"): [names[i] for i in order],
            **columns,
        },
        hide_index=True, height=260, key="compare_table",
        column_config={name: st.column_config.NumberColumn(format="%.6f") for name in columns},
    )  # fmt: skip


def tell_of_lily(ref: ModelRef) -> None:
    """For a button: a story whose last token is a name that an early moment does not yet remember."""
    session.set_text(lesson.RECALL)
    early_moment(ref)


other = second_model(ref)
measure, whole = controls(len(text) > min(ref.window_length, other.window_length))
body = st.container()
recalls = "recall" if has_early_moment(ref) else "both"
stories = ref.corpus == other.corpus == "stories"
lesson.try_this(
    lesson.Step(say(f"try.{recalls}"), say("try.recall_button"), tell_of_lily, (ref,)),
    lesson.Step(say("try.strange"), say("try.strange_button"), session.set_text, (STRANGE,))
    if stories
    else lesson.Step(say("try.world"), say("try.world_button"), session.set_text, (WORLD,)),
)
with body:
    pair = read_both((ref, other), text, whole)
    if not pair.found.spans:
        st.info(say("too_short"))
        nav.end_page()
    chosen = choose(pair, measure)
    bars = difference_bars(
        pair.names(), metrics.surprisal(-pair.found.difference, measure), unit=measure, selected=chosen,
        first=pair.first, place=pair.place,
    )  # fmt: skip
    show(bars, key="compare_difference")
    st.markdown(better(pair))
    st.dataframe(
        totals(pair, measure), hide_index=True, key="compare_totals", column_config=totals_columns(measure)
    )
    st.caption(what_was_read(pair, text))
    place(pair, chosen, measure)
    st.subheader(say("most"))
    table(pair, measure)
