"""Bring a vocabulary to this machine: fetch a published one at the press of a button, or upload a file."""

from pathlib import Path

import streamlit as st

from engine import download
from engine import vocabularies as files
from engine.tokenizers import custom_vocabulary, repair_text
from ui import vocabularies
from ui.words import literal

POLL = 0.5  # seconds between two looks at a download
LARGEST = 8  # MB of an upload
_BOUNDS = (
    f"Nothing is fetched unless you press. It ends by itself after {download.PATIENCE:g} seconds without an "
    f"answer, or {download.LONGEST:g} seconds in all; the sha256 is checked before the file is kept."
)
_SAID = "_tokens_upload_said"  # session: (kind of message, message) about the last upload


def panel() -> None:
    """What is missing, each with a button that fetches it, and a place for a file of one's own."""
    absent = vocabularies.absent()
    if absent:
        running = any(_state(name) == "running" for name in absent)
        st.fragment(_missing, run_every=POLL if running else None)(absent, running)
    else:
        st.caption("The published vocabularies gpt2, cl100k_base and o200k_base are all on this machine.")
    st.file_uploader(
        "A .tiktoken file of your own",
        key="tokens_upload",
        max_upload_size=LARGEST,
        on_change=_take,
        help="A published file is recognised by its sha256 and kept in the data folder. Any other is "
        "read for this visit only.",
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
        st.markdown(f"**{literal(name)}** is not on this machine.", width="content")
        if latest and latest.state == "running":
            share = min(latest.n_bytes / source.size, 1.0)
            st.progress(share, text=f"{_megabytes(latest.n_bytes)} of {size} from {source.host}", width=320)
        else:
            words = f"Download {size} from {source.host}"
            if st.button(words, icon=":material/download:", key=f"tokens_fetch_{name}", help=_BOUNDS):
                download.start(source, folder)
                st.rerun()
    if latest and latest.state == "failed":
        st.error(literal(f"{latest.message} Try again later, or bring the file yourself."))
    st.markdown(f"Without the network: {literal(files.how_to_add(name))}")


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB"


def _take() -> None:
    """Read what was uploaded, and choose it."""
    file = st.session_state.get("tokens_upload")
    if file is None:
        st.session_state.pop(_SAID, None)
        return
    content, option = file.getvalue(), ""
    name = "".join(c for c in repair_text(Path(file.name).stem)[0] if c.isprintable())[:30] or "no name"
    try:
        if files.recognise(content)[1]:
            names = files.keep(content)
            option = next((n for n in names if n in vocabularies.PUBLISHED), names[0])
            vocabularies.bring(option, None)
            said = f"This is {' or '.join(names)}: the sha256 is right. It is kept, and here from now on."
        else:
            tokenizer = custom_vocabulary(content, name)
            option = tokenizer.name
            vocabularies.bring(option, tokenizer)
            said = (
                f"This file is none of the published ones. It is called “{option}” and is here until you "
                "close the page. The file doesn’t say how to split a text; the split of cl100k_base is used."
            )
    except (ValueError, OSError) as error:
        st.session_state[_SAID] = ("error", str(error))
        return
    st.session_state[_SAID] = ("success", said)
    st.session_state["tokens_vocabulary"] = option
