"""The branches of a text side by side: switch between them, compare them, delete them."""

import html
from typing import Any

import streamlit as st

from ui.branches import Branch, Draw, Writing
from ui.components import copy_text
from ui.written_text import literal_html
from viz import format_number
from wording import words

say = words("ui.branch_view")

BRANCH = "generation_branch"
_SHOWN = 400  # characters of a branch in the table


def switcher(text: Writing) -> None:
    """The branches as segments; nothing while there is only one."""
    names = [branch.name for branch in text.branches]
    if len(names) < 2:
        return
    st.session_state[BRANCH] = text.branch.name
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            say("branch"), names, required=True, key=BRANCH, on_change=_switch, args=(text,),
            format_func=lambda name: say("named", name=name), label_visibility="collapsed",
        )  # fmt: skip
        st.button(
            say("delete", name=text.branch.name),
            key="generation_delete",
            on_click=text.delete,
            args=(text.branch.name,),
        )


def _switch(text: Writing) -> None:
    text.switch(str(st.session_state[BRANCH]))


def compare(text: Writing) -> None:
    """All branches in a table: text, log-probability, which tokens were forced."""
    if len(text.branches) < 2:
        return
    st.subheader(say("compared"))
    st.html(table(text))
    st.caption(say("legend"))


def table(text: Writing) -> str:
    """HTML of the table; every text in it is literal."""
    shared = text.n_shared()
    rows = "".join(_row(branch, branch is text.branch, shared) for branch in text.branches)
    heads = list(say.table("column").values())
    cells = "".join(
        f'<th scope="col" style="{_CELL}text-align:{"left" if i < 2 else "right"}">{html.escape(head)}</th>'
        for i, head in enumerate(heads)
    )
    return (
        f'<div role="region" tabindex="0" aria-label="{html.escape(say("region"))}" class="loupe-branches" '
        'style="overflow-x:auto"><table style="width:100%;min-width:34rem;border-collapse:collapse;'
        f'font-size:0.9rem"><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


_CELL = "padding:4px 8px;border-bottom:1px solid rgba(128,136,145,0.4);vertical-align:top;"


def _row(branch: Branch, here: bool, shared: int) -> str:
    number = f'<td style="{_CELL}text-align:right;font-variant-numeric:tabular-nums">'
    mark = " " + say("open") if here else ""
    came = (
        f'<br><span style="font-weight:400">{html.escape(branch.came_from)}</span>'
        if branch.came_from
        else ""
    )
    return (
        f'<tr data-branch="{branch.name}"><th scope="row" style="{_CELL}text-align:left;font-weight:600;'
        f'white-space:nowrap">{branch.name}{mark}{came}</th>'
        f'<td style="{_CELL}white-space:pre-wrap;overflow-wrap:anywhere;min-width:14rem" dir="auto">'
        f"{_text(branch.draws, shared)}</td>"
        f"{number}{len(branch.draws)}</td>{number}{branch.n_forced}</td>"
        f"{number}{format_number(branch.log_prob)}</td>"
        f"{number}{format_number(branch.per_token) if branch.draws else ''}</td></tr>"
    )


def _text(draws: list[Draw], shared: int) -> str:
    """A branch's text: the shared beginning pale, forced tokens framed, a long one from its end."""
    pieces: list[tuple[str, list[Draw]]] = []
    for i, draw in enumerate(draws):
        kind = "forced" if draw.forced else "shared" if i < shared else "own"
        if not pieces or pieces[-1][0] != kind:
            pieces.append((kind, []))
        pieces[-1][1].append(draw)
    out, room = [], _SHOWN
    for kind, group in reversed(pieces):
        text = Branch("", 0, draws=group).text()
        clipped = ("…" + text[-room:]) if len(text) > room else text
        out.append(f'<span data-part="{kind}" style="{_LOOK[kind]}">{literal_html(clipped)}</span>')
        room -= len(text)
        if room <= 0:
            break
    return "".join(reversed(out)) or html.escape(say("only_prompt"))


_LOOK = {
    "own": "",
    "shared": "opacity:0.7",
    "forced": "border:1.5px solid #D9690F;border-radius:4px;padding:0 2px",
}


def keep(text: Writing, prompt: str, link: str, as_json: Any) -> None:
    """Copy, download, and share; drawn when it is opened."""
    folder = st.expander(say("keep"), key="generation_keep", on_change="rerun")
    if not folder.open:
        return
    with folder:
        whole = prompt + text.text()
        with st.container(horizontal=True):
            copy_text(say("copy"), whole, key="generation_copy")
            st.download_button(say("text"), whole, "loupe.txt", "text/plain", key="generation_save",
                               on_click="ignore")  # fmt: skip
            st.download_button(say("numbers"), as_json, "loupe.json", "application/json",
                               key="generation_save_json", on_click="ignore")  # fmt: skip
            copy_text(say("link"), link, key="generation_link")
        st.code(whole, language=None, wrap_lines=True)
        st.caption(say("link_holds"))
