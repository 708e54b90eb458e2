"""Runs as files: take one away, bring one in, all numbers as CSV; and new names."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from engine import plain_log, reading
from ui import resources, run_choice, runs_choice, session
from ui.cells import table_csv
from ui.runs_choice import RunSet
from ui.words import literal, size
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.runs_files")

_ANSWER = "_runs_file"  # what became of a file, said beside its box: the top of the page is far away
LARGEST_MB = 200  # of a file that is brought in: a large model with its moments has about 140


def draw(sets: Sequence[RunSet]) -> None:
    """Export, import, CSV, rename, delete."""
    st.subheader(say("title"))
    run_choice.undo("runs")
    runs = {info.id: (each, info) for each in sets for info in each.infos}
    if runs:
        st.download_button(
            say("all_numbers"),
            lambda: table_csv(records_table(sets)),
            file_name="runs.csv",
            mime="text/csv",
            icon=":material/table:",
            key="runs_csv",
            on_click="ignore",
        )
    mine = {run_id: pair for run_id, pair in runs.items() if pair[1].owned_by(session.owner())}
    left, right = st.columns(2, gap="medium")
    with right:
        _bring_in()
    if not mine:
        return
    with left.container(border=True):
        run_id = str(
            st.selectbox(
                say("one_run"), list(mine), format_func=lambda i: _label(*mine[i]) if i in mine else "",
                key="runs_one",
            )
        )  # fmt: skip
        if run_id in mine:  # a browser that still shows a deleted one
            each, info = mine[run_id]
            _one(info, [other.id for other in each.infos if other.id != run_id][:1])


def _label(each: RunSet, info: "RunInfo") -> str:
    return each.tag if len(each.infos) == 1 else say("tag_and_seed", tag=each.tag, seed=info.train.seed)


def _one(info: "RunInfo", others: Sequence[str]) -> None:
    st.text_input(say("name"), info.name, key=f"runs_name_{info.id}", max_chars=80)
    with st.container(horizontal=True):
        st.button(say("rename"), key="runs_rename", on_click=_rename, args=(info.id,))
        st.download_button(
            say("take_away"),
            lambda: _zip(info.id),
            file_name=f"{file_name(info)}.zip",
            mime="application/zip",
            icon=":material/download:",
            key="runs_export",
            on_click="ignore",
            help=say("take_away_help"),
        )
        if info.active:
            st.caption(say("still_going_on"))
            return
        with st.popover(say("delete"), key="runs_delete"):
            st.markdown(say("removed", size=size(resources.run_store().size(info.id))))
            st.button(
                say("delete_it"),
                key="runs_delete_yes",
                type="primary",
                on_click=_delete,
                args=(info.id, others),
            )


def file_name(info: "RunInfo") -> str:
    """A name that every file system takes."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", info.name).strip("-").lower()[:40]
    return f"{plain or 'run'}-{info.id[-6:]}"


def _zip(run_id: str) -> bytes:
    from engine.bundles import export_run

    return export_run(resources.run_store(), run_id)


def _rename(run_id: str) -> None:
    if typed := st.session_state.get(f"runs_name_{run_id}"):
        run_choice.attempt("rename", run_id, name=str(typed))


def _delete(run_id: str, others: Sequence[str]) -> None:
    run_choice.delete(run_id)
    runs_choice.add(*others)  # a set is known by its first run, which may be this one


def _bring_in() -> None:
    with st.container(border=True):
        st.file_uploader(
            say("bring_in"), type="zip", key="runs_upload", max_upload_size=LARGEST_MB,
            on_change=_import,
            help=say("bring_in_help"),
        )  # fmt: skip
        good, said = st.session_state.pop(_ANSWER, (True, ""))
        if said:
            (st.success if good else st.error)(literal(said))


def _import() -> None:
    from engine.bundles import import_run

    file = st.session_state.get("runs_upload")
    if file is None:
        return
    store = resources.run_store()
    try:
        run_id = import_run(store, file.getvalue(), session.owner())
    except ValueError as error:
        plain_log.refusal("import refused", error, home=store.home, bytes=file.size)
        st.session_state[_ANSWER] = False, str(error)
    else:
        plain_log.info("run imported", home=store.home, run=run_id, bytes=file.size)
        runs_choice.add(run_id)
        st.session_state[_ANSWER] = True, say("is_here_now", name=store.info(run_id).name)


def records_table(sets: Sequence[RunSet]) -> pd.DataFrame:
    """Every measured number of these runs: a row for each run and step."""
    tables = []
    for each in sets:
        for info in each.infos:
            columns: dict[str, Any] = reading.table(resources.run_store().history(info.id))
            table = pd.DataFrame(columns)
            table.insert(0, "seed", info.train.seed)
            table.insert(0, "id", info.id)
            table.insert(0, "run", info.name)
            tables.append(table)
    tables = [table for table in tables if len(table)]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"run": []})
