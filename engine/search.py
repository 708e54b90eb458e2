"""Looking ahead: the tree of what can come next, and beam search for the likeliest continuations.

Both score with the model's own probabilities: no temperature, no cuts.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from engine.metrics import log_softmax
from engine.model import Transformer
from wording import words

say = words("engine.search")

MOST_NODES = 400  # of a tree


@dataclass(frozen=True)
class Beam:
    """One continuation.

    Attributes:
        ids: of the continuation alone.
        log_prob: natural log of its probability after the prompt.
        ended: whether its last token is a stop token.
    """

    ids: tuple[int, ...]
    log_prob: float
    ended: bool = False


@dataclass(frozen=True, eq=False)
class Node:
    """One token of the tree of continuations.

    Attributes:
        id: the token; -1 at the root, which stands for the prompt.
        path: ids from the root down to it.
        prob: of the token, given everything before it.
        log_prob: natural log of the whole path's probability.
        children: the likeliest next tokens, the likeliest first.
    """

    id: int
    path: tuple[int, ...]
    prob: float
    log_prob: float
    children: "list[Node]" = field(default_factory=list)

    @property
    def rest(self) -> float:
        """Probability of all the other tokens that could come next; 1 where nothing has grown."""
        return max(0.0, 1.0 - sum(child.prob for child in self.children))

    def walk(self) -> "list[Node]":
        """This node and all below it, each before its children."""
        return [self, *(node for child in self.children for node in child.walk())]

    def find(self, path: Sequence[int]) -> "Node | None":
        """The node below this one that a path of ids leads to; None if the tree does not hold it."""
        node: Node | None = self
        for token in path:
            node = next((child for child in node.children if child.id == token), None) if node else None
        return node


@torch.no_grad()
def next_log_probs(model: Transformer, rows: Sequence[Sequence[int]]) -> NDArray:
    """(rows, V) float64 log-probabilities of the token after each of some rows of equal length.

    Raises:
        ValueError: for a masked model or an empty prompt.
    """
    if model.config.objective != "clm":
        raise ValueError(say("masked_model_fills_gaps"))
    if not rows or not rows[0]:
        raise ValueError(say("there_no_token_continue"))
    seen = torch.tensor([list(row)[-model.config.context_length :] for row in rows], device=model.device)
    return log_softmax(model(seen)[:, -1].double().cpu().numpy())


def look_ahead(
    model: Transformer,
    ids: Sequence[int],
    *,
    breadth: int,
    depth: int,
    stop_ids: Collection[int] = (),
    grown: Collection[tuple[int, ...]] = (),
) -> Node:
    """The `breadth` likeliest tokens after the prompt, after each of them again as many, `depth` times.

    Args:
        model: a causal one.
        ids: the prompt, at least one token; only the last `context_length` are seen.
        breadth: children of a node.
        depth: levels below the root.
        stop_ids: nothing grows below these.
        grown: paths of nodes at the tree's edge that get children too; a path may lead through another one's
            children, and one that leads nowhere is left out.

    Raises:
        ValueError: if the tree would have more than `MOST_NODES` nodes, with the way out.
    """
    if breadth < 1 or depth < 1:
        raise ValueError(say("tree_needs_breadth_depth", breadth=breadth, depth=depth))
    n_nodes = sum(breadth**level for level in range(1, depth + 1)) + breadth * len(grown)
    if n_nodes > MOST_NODES:
        raise ValueError(
            say("tree_breadth_depth_has", breadth=breadth, depth=depth, n_nodes=n_nodes, most=MOST_NODES)
        )
    root = Node(-1, (), 1.0, 0.0)
    level = [root]
    for _ in range(depth):
        level = _grow(model, ids, level, breadth, stop_ids)
    for path in sorted(grown, key=len):
        node = root.find(path)
        if node is not None and not node.children:
            _grow(model, ids, [node], breadth, stop_ids)
    return root


def _grow(
    model: Transformer, ids: Sequence[int], level: list[Node], breadth: int, stop_ids: Collection[int]
) -> list[Node]:
    """Give nodes of one depth their children, and give back the children of all."""
    level = [node for node in level if node.id not in stop_ids]
    if not level:
        return []
    rows = next_log_probs(model, [[*ids, *node.path] for node in level])
    for node, log_probs in zip(level, rows, strict=True):
        for token in np.argsort(-log_probs, kind="stable")[:breadth].tolist():
            own = float(log_probs[token])
            node.children.append(Node(token, (*node.path, token), math.exp(own), node.log_prob + own))
    return [child for node in level for child in node.children]


def beam_search(
    model: Transformer,
    ids: Sequence[int],
    *,
    n_tokens: int,
    width: int,
    stop_ids: Collection[int] = (),
) -> list[Beam]:
    """The best continuations that are found by always keeping the `width` likeliest beginnings.

    With a width of 1 it is greedy; with one as large as V to the power of `n_tokens` it misses nothing.

    Args:
        model: a causal one.
        ids: the prompt, at least one token; only the last `context_length` are seen.
        n_tokens: longest continuation.
        width: beginnings kept at each step.
        stop_ids: a continuation is complete with the first of these.

    Returns:
        At most `width` of them, the likeliest first; complete ones compete with their own probability.
    """
    if width < 1:
        raise ValueError(say("beam_needs_width_least", width=width))
    beams = [Beam((), 0.0)]
    for _ in range(n_tokens):
        open_beams = [beam for beam in beams if not beam.ended]
        if not open_beams:
            break
        rows = next_log_probs(model, [[*ids, *beam.ids] for beam in open_beams])
        scores = np.array([beam.log_prob for beam in open_beams])[:, None] + rows  # (beams, V)
        best = np.argsort(-scores, axis=None, kind="stable")[:width]
        grown = [
            Beam((*open_beams[i].ids, token), float(scores[i, token]), token in stop_ids)
            for i, token in (divmod(int(at), rows.shape[1]) for at in best)
        ]
        done = [beam for beam in beams if beam.ended]
        beams = sorted([*done, *grown], key=lambda beam: -beam.log_prob)[:width]
    return beams
