"""The board of a class, for its maker: how far everybody is."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from engine.classes import Class
from ui import class_board, class_links, people, resources, session
from ui.cells import table_csv
from ui.lesson_list import ORDER
from ui.words import literal
from viz import format_number
from wording import words

if TYPE_CHECKING:
    from engine.class_rows import Row

POLL_SECONDS = 5.0
NONE = ""  # no text chosen
_LARGE, _ANONYMOUS, _TEXT = "teacher_large", "teacher_anonymous", "teacher_text"
say = words("ui.class_people")


def draw(room: Class) -> None:
    """The board, anew every few seconds, and what its maker can do."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = _text()
        st.toggle(say("anonymous"), key=_ANONYMOUS, persist_state="session", help=say("anonymous_help"))
        st.toggle(say("large"), key=_LARGE, persist_state="session", help=say("large_help"))
    st.fragment(_board, run_every=POLL_SECONDS)(room, text)


def _text() -> str:
    """The text on which runs are compared, by its board's key; the one with most runs at first."""
    names = {" ".join(map(str, class_board.key(board))): board.text for board in _boards()}
    if not names:
        return NONE
    return str(
        st.selectbox(
            say("text"), list(names), format_func=lambda key: names.get(key) or say("some_text"), key=_TEXT,
            persist_state="session", width=260,
        )
    )  # fmt: skip


def _boards() -> list[Any]:
    return [board for board in class_board.boards() if board.objective == "clm"]


def rows(code: str, text: str) -> "list[Row]":
    """The lines of the board; computed once for all who look within two seconds."""
    return _rows(str(resources.home()), code, text)


@st.cache_resource(ttl=2, max_entries=64, show_spinner=False)
def _rows(home: str, code: str, text: str) -> "list[Row]":
    from engine import class_rows
    from engine.exercise_list import IDS

    everyone = people.store().everyone(code)
    numbers = class_links.store().numbers(code, [each.person for each in everyone])
    board = next((b for b in _boards() if " ".join(map(str, class_board.key(b))) == text), None)
    runs = resources.run_store().list() if everyone else []
    return class_rows.rows(everyone, numbers, runs, board, exercises=IDS, lessons=ORDER)


def name_of(row: "Row", anonymous: bool = False) -> str:
    """What a person is called on the board; may hold any printable characters."""
    return row.name if row.name and not anonymous else say("student", n=row.number)


def table(found: "list[Row]", anonymous: bool) -> pd.DataFrame:
    """The board as a table, its columns named in the language spoken."""
    return pd.DataFrame(
        {
            say("column.who"): [name_of(row, anonymous) for row in found],
            say("column.lessons"): [row.lessons for row in found],
            say("column.exercises"): [row.right for row in found],
            say("column.best"): [row.best for row in found],
            say("column.run"): ["" if anonymous else row.run for row in found],
            say("column.active"): [
                None if row.active is None else datetime.fromtimestamp(int(row.active), UTC) for row in found
            ],
        }
    )


def _board(room: Class, text: str) -> None:
    found, anonymous = rows(room.code, text), bool(st.session_state.get(_ANONYMOUS))
    if not found:
        st.info(say("nobody"))
        return
    large = bool(st.session_state.get(_LARGE))
    shown = table(found, anonymous)
    if large:
        _large(shown, found)
    else:
        st.dataframe(
            shown,
            hide_index=True,
            key="teacher_board",
            column_config=_columns(),
            height="content",
            placeholder="–",
        )
    _sums(found)
    st.download_button(
        say("csv"), lambda: as_csv(shown), f"class-{room.code}.csv", "text/csv", key="teacher_csv",
        on_click="ignore", icon=":material/download:",
    )  # fmt: skip


def as_csv(shown: pd.DataFrame) -> bytes:
    """The board as a file, marked as UTF-8: without the mark, Excel reads "José" as "JosÃ©"."""
    return table_csv(shown).encode("utf-8-sig")


def _columns() -> dict[str, Any]:
    from engine.exercise_list import IDS

    config = st.column_config
    return {
        say("column.lessons"): config.ProgressColumn(
            min_value=0, max_value=len(ORDER), format=f"%d / {len(ORDER)}"
        ),
        say("column.exercises"): config.ProgressColumn(
            min_value=0, max_value=len(IDS), format=f"%d / {len(IDS)}"
        ),
        say("column.best"): config.NumberColumn(format="%.4g", help=say("best_help")),
        say("column.active"): config.DatetimeColumn(format="distance"),
    }


def _large(shown: pd.DataFrame, found: "list[Row]") -> None:
    """The same as a page's own table: its letters grow with the page. Ordered by lessons, then exercises."""
    from engine.exercise_list import IDS

    order = sorted(range(len(found)), key=lambda i: (-found[i].lessons, -found[i].right, found[i].number))
    columns = list(shown.columns)
    large = pd.DataFrame(
        {
            columns[0]: [literal(str(shown[columns[0]][i])) for i in order],
            columns[1]: [f"{found[i].lessons} / {len(ORDER)}" for i in order],
            columns[2]: [f"{found[i].right} / {len(IDS)}" for i in order],
            columns[3]: ["–" if (best := found[i].best) is None else format_number(best, 4) for i in order],
        }
    )
    with st.container(key="teacher_large_board"):
        st.table(large.set_index(columns[0]))


def _sums(found: "list[Row]") -> None:
    now = time.time()
    lately = sum(row.active is not None and now - row.active < 600 for row in found)
    st.caption(say("sums", n=len(found), lately=lately))


def remove(room: Class) -> None:
    """Delete one person's record, after it was asked for twice."""
    found = rows(room.code, NONE)
    if not found:
        return
    names = {row.person: f"{row.number}: {name_of(row)}" for row in found}
    with st.popover(say("remove"), key="teacher_remove", icon=":material/person_remove:"):
        st.markdown(say("remove_what"))
        person = st.selectbox(
            say("who"), list(names), format_func=lambda one: names.get(one, ""), key="teacher_remove_who"
        )
        sure = st.checkbox(say("sure"), key="teacher_remove_sure")
        st.button(
            say("remove_yes"), key="teacher_remove_yes", type="primary", disabled=not sure, on_click=_remove,
            args=(room, person),
        )  # fmt: skip


def _remove(room: Class, person: str) -> None:
    if room.owned_by(session.owner()):
        with people.keeping():
            people.store().let_go(person, room.code, forget=True)
            class_links.store().forget(room.code, person)
        _rows.clear()
    st.session_state["teacher_remove_sure"] = False


def delete(room: Class) -> None:
    """Delete the class, after it was asked for twice."""
    with st.popover(say("delete"), key="teacher_delete", icon=":material/delete:"):
        st.markdown(say("delete_what"))
        records = st.checkbox(say("records_too"), key="teacher_delete_records")
        sure = st.checkbox(say("sure"), key="teacher_delete_sure")
        st.button(
            say("delete_yes"), key="teacher_delete_yes", type="primary", disabled=not sure, on_click=_delete,
            args=(room, records),
        )  # fmt: skip


def _delete(room: Class, records: bool) -> None:
    owner = session.owner()
    if room.owned_by(owner):
        with people.keeping():
            for each in people.store().everyone(room.code):
                people.store().let_go(each.person, room.code, forget=records)
            class_links.store().delete(owner, room.code)
        _rows.clear()
    for key in ("teacher_delete_sure", "teacher_delete_records", "teacher_class"):
        st.session_state.pop(key, None)
