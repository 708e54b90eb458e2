"""Looking ahead: what can come next, after that, and after that; grown by hand, and written from."""

import math
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from engine.search import Beam, Node, beam_search, look_ahead
from ui import resources, sampling_form, writing, written_text
from ui.branches import Writing
from ui.components import token_tree
from ui.components.token_tree import Path, TreeNode
from ui.lesson import literal
from ui.model_refs import ModelRef
from ui.worked_sampling import path_product
from viz import format_prob, visible
from wording import words

say = words("ui.tree_view")

_STATE = "_generation_tree"
KEEP: dict[str, Any] = {"persist_state": "session"}


@dataclass
class Grown:
    """What a person did with one tree: the nodes that were expanded, and the one that is chosen."""

    about: tuple[Any, ...]
    paths: set[Path] = field(default_factory=set)
    chosen: Path = ()


@st.cache_resource(max_entries=32, show_spinner=say.later("looking"))
def _tree(
    ref: ModelRef,
    ids: tuple[int, ...],
    breadth: int,
    depth: int,
    stop: frozenset[int],
    grown: frozenset[Path],
) -> Node:
    model = resources.load(ref).model
    return look_ahead(model, ids, breadth=breadth, depth=depth, stop_ids=stop, grown=grown, jump=ref.jump)


@st.cache_resource(max_entries=32, show_spinner=say.later("looking"))
def _beam(ref: ModelRef, ids: tuple[int, ...], n: int, width: int, stop: frozenset[int]) -> Beam:
    return beam_search(resources.load(ref).model, ids, n_tokens=n, width=width, stop_ids=stop, jump=ref.jump)[
        0
    ]


def tree_view(ref: ModelRef, prompt: list[int], text: Writing) -> None:
    """Settings, the tree, and what can be done with the chosen node."""
    for key, value in {"tree_breadth": 3, "tree_depth": 2, "tree_beam": 3}.items():
        st.session_state.setdefault(f"generation_{key}", value)
    first, second, third = st.columns(3)
    breadth = int(first.number_input(say("breadth"), 1, 8, key="generation_tree_breadth", **KEEP))
    depth = int(second.number_input(say("depth"), 1, 8, key="generation_tree_depth", **KEEP))
    width = int(third.number_input(say("beam"), 1, 8, key="generation_tree_beam", **KEEP))
    written_text.say_what_is_seen(ref, len(prompt) + len(text.ids))
    ids = tuple(writing.seen(ref, [*prompt, *text.ids]))
    stop = sampling_form.settings(ref).stop_ids
    state = _state((ref, ids, breadth, depth))
    root = _tree(ref, ids, breadth, depth, stop, frozenset(state.paths))
    deepest = max(len(node.path) for node in root.walk())
    beam = _beam(ref, ids, deepest, width, stop)
    if root.find(state.chosen) is None:
        state.chosen = ()
    last = resources.tokenizer(ref).token_bytes(ids[-1])
    token_tree(
        _drawn(root, ref, beam, stop, last),
        key="generation_tree",
        label=say("tree"),
        chosen=state.chosen,
        on_press=lambda path, grow: press(state, path, grow),
    )
    st.caption(_beam_in_words(ref, root, beam, width))
    node = root.find(state.chosen)
    if node is not None:
        _chosen(ref, prompt, text, state, root, node, stop)


def _state(about: tuple[Any, ...]) -> Grown:
    kept: Grown | None = st.session_state.get(_STATE)
    if kept is None or kept.about != about:
        kept = st.session_state[_STATE] = Grown(about)
    return kept


def press(state: Grown, path: Path, grow: bool) -> None:
    """Choose a node, and let it grow. For `on_press` and `on_click`."""
    state.chosen = path
    if grow:
        state.paths.add(path)


def _drawn(node: Node, ref: ModelRef, beam: Beam, stop: frozenset[int], last: bytes) -> TreeNode:
    """The tree as the component draws it."""
    ended = node.id in stop
    return TreeNode(
        node.path,
        resources.tokenizer(ref).token_bytes(node.id) if node.path else last,
        node.prob,
        math.exp(node.log_prob),
        beam=bool(node.path) and beam.ids[: len(node.path)] == node.path,
        ended=ended,
        grows=not node.children and not ended,
        children=[_drawn(child, ref, beam, stop, last) for child in node.children],
    )


def _text(ref: ModelRef, ids: tuple[int, ...]) -> str:
    data_of = resources.tokenizer(ref).token_bytes
    return literal(visible(b"".join(data_of(i) for i in ids)))


def greedy_path(root: Node) -> Node:
    """Always the likeliest child, down to a leaf."""
    node = root
    while node.children:
        node = node.children[0]
    return node


def _beam_in_words(ref: ModelRef, root: Node, beam: Beam, width: int) -> str:
    greedy = greedy_path(root)
    whole = format_prob(math.exp(beam.log_prob))
    about = {"width": width, "text": _text(ref, beam.ids), "whole": whole}
    left = next((n for n in range(len(beam.ids)) if root.find(beam.ids[: n + 1]) is None), None)
    if left is None:
        found = say("beam_found", **about)
    else:
        found = say("beam_leaves", **about, left=left, all=len(beam.ids))
    if greedy.path == beam.ids[: len(greedy.path)]:
        return f"{found} {say('greedy_same')}"
    likely = format_prob(math.exp(greedy.log_prob))
    return f"{found} {say('greedy', text=_text(ref, greedy.path), whole=likely)}"


def _chosen(
    ref: ModelRef,
    prompt: list[int],
    text: Writing,
    state: Grown,
    root: Node,
    node: Node,
    stop: frozenset[int],
) -> None:
    """The chosen node in words, and its buttons."""
    if node.path:
        st.markdown(say("chosen", text=_text(ref, node.path)))
        steps = [root.find(node.path[: n + 1]) for n in range(len(node.path))]
        st.latex(path_product([step.prob for step in steps if step]))
    with st.container(horizontal=True):
        st.button(say("expand"), key="generation_expand", on_click=press, args=(state, node.path, True),
                  disabled=bool(node.children) or node.id in stop)  # fmt: skip
        st.button(say("take"), key="generation_take", on_click=take,
                  args=(text, ref, prompt, node.path), disabled=not node.path)  # fmt: skip
        st.button(say("fold"), key="generation_fold", on_click=state.paths.clear,
                  disabled=not state.paths)  # fmt: skip
    if not node.path:
        st.caption(say("how"))


def take(text: Writing, ref: ModelRef, prompt: list[int], path: Path) -> None:
    """Force the tokens of a path. For `on_click`."""
    how = sampling_form.settings(ref)
    for token_id in path:
        writing.force(text, ref, prompt, token_id, how)
