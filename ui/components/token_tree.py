"""What can come next, as a tree of tokens that can be chosen and grown."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

import viz
from ui.components._shared import asset
from wording import words

say = words("ui.component_token_tree")

_COMPONENT = st.components.v2.component(
    "loupe_token_tree",
    html=asset("token_tree.html"),
    css=asset("token_tree.css"),
    js=asset("fill.js") + asset("token_tree.js"),
)
Path = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TreeNode:
    """A node as it is drawn.

    Attributes:
        path: ids from the root down to it; () is the root.
        data: bytes of its token, or of the end of the text at the root.
        prob: of the token, given everything before it.
        whole: probability of the whole path.
        beam: whether the beam's best path goes through it.
        ended: whether the text ends with it.
        grows: whether nothing hangs below it yet and something can.
        children: the likeliest next tokens.
    """

    path: Path
    data: bytes
    prob: float
    whole: float
    beam: bool = False
    ended: bool = False
    grows: bool = False
    children: "list[TreeNode]" = field(default_factory=list)


def token_tree(
    root: TreeNode,
    *,
    key: str,
    label: str,
    chosen: Path = (),
    on_press: Callable[[Path, bool], None] | None = None,
) -> None:
    """Draws the tree, from left to right; on a narrow screen from top to bottom.

    Args:
        root: the text so far.
        key: of the component.
        label: what the tree shows, for screen readers.
        chosen: path of the node that is marked.
        on_press: called with the path of a node that is pressed, and whether it shall grow.
    """
    data = {
        "root": _drawn(root),
        "label": label,
        "words": say.table("words"),
        "chosen": ",".join(map(str, chosen)),
        "colors": {"line": viz.NEUTRAL, "beam": viz.TRUE, "model": viz.MODEL},
    }

    def pressed() -> None:
        found: Any = st.session_state[key].pressed
        if on_press is not None and found:
            on_press(tuple(int(i) for i in found["path"]), bool(found["grow"]))

    _COMPONENT(key=key, data=data, on_pressed_change=pressed)


def _drawn(node: TreeNode) -> dict[str, Any]:
    """A node as the browser draws it."""
    name = viz.visible(node.data)
    own, whole = viz.format_prob(node.prob), viz.format_prob(node.whole)
    said = [say("node", name=name, prob=own, whole=whole) if node.path else say("root", name=name)]
    said += [say("on_beam")] if node.beam and node.path else []
    said += [say("ended")] if node.ended else []
    return {
        "path": list(node.path),
        "parts": viz.visible_parts(node.data),
        "name": name,
        "says": ", ".join(said),
        "prob": own if node.path else "",
        "whole": say("whole", prob=whole) if node.path else say("so_far"),
        "share": round(node.prob, 4),
        "color": viz.token_color(node.path[-1]) if node.path else None,
        "beam": node.beam and bool(node.path),
        "ended": node.ended,
        "grows": node.grows,
        "kids": [_drawn(child) for child in node.children],
    }  # fmt: skip
