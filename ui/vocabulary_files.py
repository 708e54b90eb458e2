"""Bring a vocabulary to this machine: fetch a published one at the press of a button, or upload a file."""

from pathlib import Path

import streamlit as st

from engine import download, plain_log
from engine import vocabularies as files
from engine.tokenizers import custom_vocabulary
from engine.tokens import repair_text
from ui import vocabularies
from ui.words import literal
from wording import words

say = words("ui.vocabulary_files")

POLL = 0.5  # seconds between two looks at a download
LARGEST = 8  # MB of an upload
_SAID = "_tokens_upload_said"  # session: (kind of message, message) about the last upload


def panel() -> None:
    """What is missing, each with a button that fetches it, and a place for a file of one's own."""
    absent = vocabularies.absent()
    if absent:
        running = any(_state(name) == "running" for name in absent)
        st.fragment(_missing, run_every=POLL if running else None)(absent, running)
    else:
        st.caption(say("all_here"))
    st.file_uploader(
        say("upload"),
        key="tokens_upload",
        max_upload_size=LARGEST,
        on_change=_take,
        help=say("upload_help"),
    )
    kind, message = st.session_state.get(_SAID, ("", ""))
    if message:
        (st.error if kind == "error" else st.success)(literal(message))


def _state(name: str) -> str:
    latest = download.latest(files.source_of(name), files.folders()[0])
    return latest.state if latest else ""


def _missing(absent: list[str], polled: bool) -> None:
    """One row for each missing vocabulary. Looks again while one is on its way."""
    for name in absent:
        _row(name)
    states = [_state(name) for name in absent]
    if polled and "running" not in states or "done" in states and vocabularies.absent() != absent:
        st.rerun()  # it is here, or failed: the whole page has to know


def _row(name: str) -> None:
    source, folder = files.source_of(name), files.folders()[0]
    latest = download.latest(source, folder)
    size = _megabytes(source.size)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(say("missing", name=literal(name)), width="content")
        if latest and latest.state == "running":
            share = min(latest.n_bytes / source.size, 1.0)
            done = say("on_its_way", done=_megabytes(latest.n_bytes), size=size, host=source.host)
            st.progress(share, text=done, width=320)
        else:
            label = say("download", size=size, host=source.host)
            bounds = say("bounds", patience=f"{download.PATIENCE:g}", longest=f"{download.LONGEST:g}")
            if st.button(label, icon=":material/download:", key=f"tokens_fetch_{name}", help=bounds):
                download.start(source, folder)
                st.rerun()
    if latest and latest.state == "failed":
        st.error(literal(say("failed", message=latest.message)))
    st.markdown(say("by_hand", how=literal(files.how_to_add(name), links=True)))


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB"


def _take() -> None:
    """Read what was uploaded, and choose it."""
    file = st.session_state.get("tokens_upload")
    if file is None:
        st.session_state.pop(_SAID, None)
        return
    content, option = file.getvalue(), ""
    name = "".join(c for c in repair_text(Path(file.name).stem)[0] if c.isprintable())[:30] or say("unnamed")
    try:
        if files.recognise(content)[1]:
            names = files.keep(content)
            option = next((n for n in names if n in vocabularies.PUBLISHED), names[0])
            vocabularies.bring(option, None)
            said = say("recognised", names=f" {say('or')} ".join(names))
        else:
            tokenizer = custom_vocabulary(content, name)
            option = tokenizer.name
            vocabularies.bring(option, tokenizer)
            said = say("custom", name=option)
    except (ValueError, OSError) as error:
        plain_log.refusal("upload refused", error, of="vocabulary", bytes=len(content))
        st.session_state[_SAID] = ("error", str(error))
        return
    st.session_state[_SAID] = ("success", said)
    st.session_state["tokens_vocabulary"] = option
