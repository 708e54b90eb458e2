"""Playing the merges: one at a time, with what each does to a text and to the length of the whole."""

from dataclasses import dataclass

import streamlit as st

import viz
from engine.merges import History, truncated
from engine.tokenizers import Token, Tokenizer
from engine.tokens import whole_graphemes
from ui import worked, worked_merges
from ui.components import merge_chips, show, token_strip
from ui.player import Player
from ui.words import counted
from wording import words

say = words("ui.merge_player")

MOST = 200  # tokens drawn; the counts are of the whole text
PLAYER = Player("merges", "merges_n", "merge")


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


def draw(history: History, text: str) -> None:
    """Draw the slider, the merge at which it stands, and its effects; there must be a merge."""
    PLAYER.draw(history.n_merges, lambda n, playing: _picture(history, text, n, playing), 1)


def _picture(history: History, text: str, n: int, playing: bool) -> None:
    left, right = st.columns([5, 4], gap="medium")
    with left:
        _merge(history, n)
        _text(history, text, n)
    with right:
        # Without a cursor the figure stays the same while it plays: Plotly would draw it anew each time.
        show(viz.corpus_length(history.lengths, None if playing else n), key="merges_curve")
        _numbers(history, n)


def _merge(history: History, n: int) -> None:
    """The merge itself, large."""
    if n == 0:
        st.markdown(say("raw_bytes"))
        st.write(say("no_merge"))
        return
    left, right = history.pairs[n - 1].tolist()
    new = 255 + n
    st.markdown(say("joined", merge=n, n=int(history.counts[n - 1])))
    merge_chips([(i, history.data[i]) for i in (left, right, new)], key="merges_chips")


def _text(history: History, text: str, n: int) -> None:
    """The sidebar's text as it is cut at this point, the newest token marked."""
    piece = cut(history.tokenizer, n, text)
    new = 255 + n if n else -1
    tokens = [token for segment in piece.segments for token in segment]
    st.markdown(say("text_after") if n else say("text_bytes"))
    said = [say("size", tokens=counted(piece.n_tokens, "token"), bytes=counted(len(text.encode()), "byte"))]
    if n:
        said.append(say("new_token", n=piece.n_new) if piece.n_new else say("no_new_token"))
    if piece.n_tokens > MOST:
        said.append(say("cut_short", most=MOST))
    st.caption(" ".join(said))
    token_strip(
        piece.segments,
        key="merges_strip",
        values=[say("new") if token.id == new else "" for token in tokens] if piece.n_new else None,
        colors=[viz.MODEL if token.id == new else viz.token_color(token.id) for token in tokens],
        label=say("strip"),
    )


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
