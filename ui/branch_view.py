"""The branches of a text side by side: switch between them, compare them, delete them."""

import html
from typing import Any

import streamlit as st

from ui.branches import Branch, Draw, Writing
from ui.components import copy_text
from ui.writing import literal_html
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
            format_func=lambda name: f"Branch {name}", label_visibility="collapsed",
        )  # fmt: skip
        st.button(
            say("delete_branch", name=text.branch.name),
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
    st.subheader(say("branches_compared"))
    st.html(table(text))
    st.caption(say("log_p_natural_log"))


def table(text: Writing) -> str:
    """HTML of the table; every text in it is literal."""
    shared = text.n_shared()
    rows = "".join(_row(branch, branch is text.branch, shared) for branch in text.branches)
    heads = ("Branch", say("text_after_prompt"), "Tokens", "Forced", say("log_p_nats"), say("per_token"))
    cells = "".join(
        say("th_scope_col_style", cell=_CELL, word="left" if i < 2 else "right", head=head)
        for i, head in enumerate(heads)
    )
    return say("div_role_region_tabindex", cells=cells, rows=rows)


_CELL = "padding:4px 8px;border-bottom:1px solid rgba(128,136,145,0.4);vertical-align:top;"


def _row(branch: Branch, here: bool, shared: int) -> str:
    number = say("td_style_text_align", cell=_CELL)
    mark = " (open)" if here else ""
    came = say("br_span_style_font", came_from=html.escape(branch.came_from)) if branch.came_from else ""
    return say(
        "tr_data_branch_th",
        name=branch.name,
        cell=_CELL,
        mark=mark,
        came=came,
        text=_text(branch.draws, shared),
        number=number,
        n_draws=len(branch.draws),
        n_forced=branch.n_forced,
        log_prob=format_number(branch.log_prob),
        per_token=format_number(branch.per_token) if branch.draws else "",
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
        out.append(
            say("span_data_part_style", kind=kind, look=_LOOK[kind], literal_html=literal_html(clipped))
        )
        room -= len(text)
        if room <= 0:
            break
    return "".join(reversed(out)) or say("only_prompt")


_LOOK = {
    "own": "",
    "shared": "opacity:0.7",
    "forced": "border:1.5px solid #D9690F;border-radius:4px;padding:0 2px",
}


def keep(text: Writing, prompt: str, link: str, as_json: Any) -> None:
    """Copy, download, and share."""
    with st.expander(say("copy_download_share")):
        whole = prompt + text.text()
        with st.container(horizontal=True):
            copy_text(say("copy_text"), whole, key="generation_copy")
            st.download_button(say("download_txt"), whole, "loupe.txt", "text/plain", key="generation_save",
                               on_click="ignore")  # fmt: skip
            st.download_button(say("download_all_numbers_json"), as_json, "loupe.json", "application/json",
                               key="generation_save_json", on_click="ignore")  # fmt: skip
            copy_text(say("copy_link"), link, key="generation_link")
        st.code(whole, language=None, wrap_lines=True)
        st.caption(say("link_holds_model_prompt"))
