"""Playing the merges: one at a time, with what each does to a text and to the length of the whole."""

import time
from dataclasses import dataclass

import streamlit as st

import viz
from engine.merges import History, truncated
from engine.tokenizers import Token, Tokenizer, whole_graphemes
from ui import worked, worked_merges
from ui.components import merge_chips, show, token_strip

MOST = 200  # tokens drawn; the counts are of the whole text
PACE = 1.0  # seconds between two merges when they play by themselves
_AWAY = 8.0  # seconds without a step after which playing has ended: somebody left the page
_POSITION, _PLAYING, _STEPPED = "merges_n", "_merges_playing", "_merges_stepped"


@dataclass(frozen=True, eq=False)
class Piece:
    """A text, cut with the first merges only.

    Attributes:
        segments: the first tokens, in whole graphemes.
        n_tokens: of the whole text.
        n_new: how often the newest token is in the whole text.
    """

    segments: list[list[Token]]
    n_tokens: int
    n_new: int


def go(position: int) -> None:
    """Stand after so many merges. For callbacks."""
    st.session_state[_POSITION] = position


def play() -> None:
    """Start to play. For callbacks."""
    st.session_state[_PLAYING] = True
    st.session_state[_STEPPED] = time.monotonic()


def draw(history: History, text: str) -> None:
    """Draw the slider, the merge at which it stands, and its effects; there must be a merge."""
    playing = bool(st.session_state.get(_PLAYING))
    st.fragment(_player, run_every=PACE if playing else None)(history, text, playing)


def _player(history: History, text: str, playing: bool) -> None:
    if playing:
        _step(history.n_merges)
    if bool(st.session_state.get(_PLAYING)) != playing:
        st.rerun()  # the clock is started and stopped by a run of the whole page
    n = _controls(history.n_merges, playing)
    left, right = st.columns([5, 4], gap="medium")
    with left:
        _merge(history, n)
        _text(history, text, n)
    with right:
        # Without a cursor the figure stays the same while it plays: Plotly would draw it anew each time.
        show(viz.corpus_length(history.lengths, None if playing else n), key="merges_curve")
        _numbers(history, n)


def _step(last: int) -> None:
    """One merge on, if the time has come; the end of the merges ends the play."""
    state, now = st.session_state, time.monotonic()
    waited = now - state.get(_STEPPED, now)
    if waited >= 0.6 * PACE:
        state[_POSITION] = min(int(state.get(_POSITION, 0)) + 1, last)
        state[_STEPPED] = now
    if waited > _AWAY or state.get(_POSITION, 0) >= last:
        state[_PLAYING] = False


def _controls(last: int, playing: bool) -> int:
    """The slider and its buttons; gives how many merges are made."""
    st.session_state[_POSITION] = min(int(st.session_state.get(_POSITION, 1)), last)
    n = int(st.session_state[_POSITION])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Back", icon=":material/chevron_left:", key="merges_back", on_click=go, args=(n - 1,),
            disabled=n == 0, help="One merge back",
        )  # fmt: skip
        st.button(
            "Forward", icon=":material/chevron_right:", key="merges_forward", on_click=go, args=(n + 1,),
            disabled=n == last, help="One merge forward",
        )  # fmt: skip
        st.button(
            "Pause" if playing else "Play",
            icon=":material/pause:" if playing else ":material/play_arrow:",
            key="merges_play",
            width=110,
            on_click=_toggle,
            args=(n, last),
        )
        st.slider("Merges made", 0, last, key=_POSITION, persist_state="session")
    return n


def _toggle(n: int, last: int) -> None:
    if st.session_state.get(_PLAYING):
        st.session_state[_PLAYING] = False
        return
    if n >= last:
        go(0)
    play()


def _merge(history: History, n: int) -> None:
    """The merge itself, large."""
    if n == 0:
        st.markdown("**Raw bytes**")
        st.write("No merge yet. Each byte is a token, and its id is its value, 0 to 255.")
        return
    left, right = history.pairs[n - 1].tolist()
    new = 255 + n
    st.markdown(f"**Merge {n:,}** joined this pair {_times(int(history.counts[n - 1]))}")
    merge_chips([(i, history.data[i]) for i in (left, right, new)], key="merges_chips")


def _text(history: History, text: str, n: int) -> None:
    """The sidebar's text as it is cut at this point, the newest token marked."""
    piece = cut(history.tokenizer, n, text)
    new = 255 + n if n else -1
    tokens = [token for segment in piece.segments for token in segment]
    st.markdown("**Your text** after this merge" if n else "**Your text** in bytes")
    words = f"{piece.n_tokens:,} tokens for {len(text.encode()):,} bytes."
    if n:
        found = f"in it {_times(piece.n_new)}" if piece.n_new else "not in it"
        words += f" The new token is {found}."
    if piece.n_tokens > MOST:
        words += f" The first {MOST} tokens are drawn."
    st.caption(words)
    token_strip(
        piece.segments,
        key="merges_strip",
        values=["new" if token.id == new else "" for token in tokens] if piece.n_new else None,
        colors=[viz.MODEL if token.id == new else viz.token_color(token.id) for token in tokens],
        label="Your text, cut with the merges made so far",
    )


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _numbers(history: History, n: int) -> None:
    """The length and bytes per token, worked out."""
    if n:
        before, count = int(history.lengths[n - 1]), int(history.counts[n - 1])
        st.latex(worked_merges.merge(before, count, history.n_bytes))
    else:
        st.latex(worked.bytes_per_token(history.n_bytes, history.n_bytes))


def cut(tokenizer: Tokenizer, n: int, text: str) -> Piece:
    """A text, cut with the first `n` merges."""
    return _cut(tokenizer.hash, n, text, tokenizer)


@st.cache_resource(max_entries=64, show_spinner=False)
def _cut(vocabulary: str, n: int, text: str, _tokenizer: Tokenizer) -> Piece:
    smaller = truncated(_tokenizer, n)
    ids = smaller.encode(text)
    head = smaller.locate(ids[:MOST], text)
    return Piece(whole_graphemes(head, text), len(ids), ids.count(255 + n) if n else 0)
