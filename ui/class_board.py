"""The standings of one text: a picture to press, a run to watch, and all numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine import reading
from engine.corpus import title
from ui import resources, run_choice, session
from ui.components import show
from ui.vocabularies import called
from ui.words import counted, literal, objective_name, state_name
from viz import format_number
from viz.standings import standing_dots
from wording import words

if TYPE_CHECKING:
    from engine.board import Board

say = words("ui.class_board")

Key = tuple[str, float, str]  # fingerprint of the text, share held out, objective
WATCHED = "_class_watched"
FIRST = 10  # runs in the picture


def key(board: "Board") -> Key:
    """What makes a board that board."""
    return board.sha256, board.val_share, board.objective


def boards() -> "list[Board]":
    """The boards of this server, computed once for all who look within a second or so."""
    return _boards(str(resources.home()))


@st.cache_resource(ttl=1.5, max_entries=4, show_spinner=False)
def _boards(home: str) -> "list[Board]":
    from engine.board import standings

    return standings(resources.run_store())


def choose(found: "Sequence[Board]") -> Key:
    """The board that is looked at: of the text with the most runs, unless another is chosen."""
    keys = {_address(board): board for board in found}
    if st.session_state.get("class_text") not in keys:
        st.session_state["class_text"] = next(iter(keys))
    chosen = st.selectbox(
        say("text"), list(keys), format_func=lambda k: _title(keys[k], found) if k in keys else k,
        key="class_text", persist_state="session",
    )  # fmt: skip
    return key(keys[str(chosen)])


def _address(board: "Board") -> str:
    return " ".join(map(str, key(board)))


def _title(board: "Board", found: "Sequence[Board]") -> str:
    twins = [b for b in found if (b.text, b.objective) == (board.text, board.objective)]
    apart = f" {board.sha256[:6]}" if len(twins) > 1 else ""
    text = title(board.text, board.kind) if board.text else say("a_text")
    runs, objective = counted(len(board.rows), "run"), objective_name(board.objective)
    return say("guess", text=f"{text}{apart}", objective=objective, runs=runs)


def draw(board: "Board", large: bool) -> None:
    """The standings, the best on top."""
    mine = {info.id for info in resources.run_store().list(session.owner())}
    rows = board.rows[:FIRST]
    st.markdown(f"{'##' if large else '###'} {_lead(board)}")
    show(
        standing_dots(
            [row.name for row in rows],
            [row.score for row in rows],
            unit=say(f"unit.{board.objective}"),
            floor=_floor(board),
            mine=[i for i, row in enumerate(rows) if row.run_id in mine],
            places=[row.place for row in rows],
            size=26 if large else 18,
        ),
        key="class_standings",
        on_press=lambda _, row: watch(rows[row].run_id),
    )
    said = [say("press_a_dot")]
    if any(row.run_id in mine for row in rows):
        said.append(say("diamond_is_mine"))
    if board.objective == "mlm":
        said.append(say("masked_stand_apart"))
    if n := sum(row.imported for row in rows):
        said.append(say("from_a_file", n=n))
    if len(board.rows) > FIRST:
        said.append(say("more_in_table", n=len(board.rows) - FIRST))
    said.append(say("names_are_chosen"))
    st.caption(" ".join(said))
    _pick(board)
    with st.expander(say("all_numbers")):
        _table(board, mine)


def _lead(board: "Board") -> str:
    """Who is first, or shares the first place, and with what."""
    first = [row for row in board.rows if row.place == 1]
    score = say(f"score.{board.objective}", score=format_number(first[0].score, 4))
    if len(first) > 1:
        return say("share_the_lead", n=len(first), score=score)
    return say("leads", name=literal(first[0].name), score=score)


def _pick(board: "Board") -> None:
    """The same by keyboard, and for the runs that have no dot."""
    names = {row.run_id: f"{row.place} {row.name}" for row in board.rows}
    box = f"class_run_{board.objective}_{board.sha256[:8]}"
    if st.session_state.get(box, "") not in names:
        st.session_state[box] = next(iter(names))  # at first, and when the chosen one was deleted
    what, does = st.columns([3, 1], vertical_alignment="bottom")
    chosen = what.selectbox(
        say("watch_a_run"), list(names), format_func=lambda run_id: names.get(run_id, ""), key=box
    )
    does.button(say("watch_it"), key="class_watch", on_click=watch, args=(str(chosen),), width="stretch")


def watch(run_id: str) -> None:
    """Open a run in the view Train; only its owner can do more than watch. For callbacks."""
    run_choice.show(run_id)
    go_train()


def go_train() -> None:
    """Open the view Train. For callbacks."""
    st.session_state["watch"] = "train"
    st.session_state[WATCHED] = True


def _floor(board: "Board") -> float | None:
    """What the source of the text itself reaches, from the first run that knows it."""
    store, unit = resources.run_store(), "bits_per_byte" if board.objective == "clm" else "nats"
    if board.kind != "stories":
        return None
    for row in board.rows[:FIRST]:
        floor = reading.floor_of(store.history(row.run_id), unit)
        if floor is not None:
            return floor
    return None


def _table(board: "Board", mine: set[str]) -> None:
    rows = board.rows
    titles = say.table("column")
    titles["score"] = say(f"unit.{board.objective}")
    columns: dict[str, list[Any]] = {
        "place": [row.place for row in rows],
        "run": [row.name for row in rows],
        "whose": [say("mine") if row.run_id in mine else "" for row in rows],
        "origin": [say("file") if row.imported else say("here") for row in rows],
        "score": [row.score for row in rows],
        "at_step": [row.at_step for row in rows],
        "steps": [say("steps_of", step=row.step, steps=row.steps) for row in rows],
        "state": [state_name(row.state) for row in rows],
        "parameters": [row.parameters for row in rows],
        "vocabulary": [called(row.vocabulary) for row in rows],
    }
    st.dataframe(
        {titles[name]: values for name, values in columns.items()},
        hide_index=True,
        height="content",
        key="class_table",
        column_config={
            titles["score"]: st.column_config.NumberColumn(format="%.4g"),
            titles["at_step"]: st.column_config.NumberColumn(format="localized"),
            titles["parameters"]: st.column_config.NumberColumn(format="localized"),
        },
        alt=say("table_alt", text=title(board.text, board.kind)),
    )
