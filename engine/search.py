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
from engine.row_reading import RowReading, Tell, quiet
from engine.view import first_seen
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
def next_log_probs(model: Transformer, rows: Sequence[Sequence[int]], jump: int = 1) -> NDArray:
    """(rows, V) float64 log-probabilities of the token after each of some rows of equal length.

    Raises:
        ValueError: for a masked model or an empty prompt.
    """
    _check(model, rows)
    begin = first_seen(len(rows[0]), model.config.context_length, jump)
    seen = torch.tensor([list(row)[begin:] for row in rows], device=model.device)
    return log_softmax(model.next_logits(seen).double().cpu().numpy())


def _check(model: Transformer, rows: Sequence[Sequence[int]]) -> None:
    if model.config.objective != "clm":
        raise ValueError(say("masked_model_fills_gaps"))
    if not rows or not rows[0]:
        raise ValueError(say("there_no_token_continue"))


class _Ahead:
    """Log-probabilities after the prompt and some more tokens; the prompt is read once while it can be."""

    def __init__(self, model: Transformer, ids: Sequence[int], jump: int) -> None:
        _check(model, [ids])
        self.model, self.ids, self.jump = model, list(ids), jump
        self._reading: RowReading | None = None

    def after(self, paths: Sequence[tuple[int, ...]]) -> NDArray:
        """(N,V) after each of N paths of one length."""
        limit, n = self.model.config.context_length, len(self.ids)
        begin = first_seen(n, limit, self.jump)
        if first_seen(n + len(paths[0]), limit, self.jump) != begin:  # another beginning is seen
            each = (next_log_probs(self.model, [[*self.ids, *path]], self.jump) for path in paths)
            return np.concatenate(list(each))
        if self._reading is None:
            self._reading = RowReading(self.model, [self.ids[begin:]])
        return self._reading.ahead(paths) if paths[0] else self._reading.next_log_probs()


def look_ahead(
    model: Transformer,
    ids: Sequence[int],
    *,
    breadth: int,
    depth: int,
    stop_ids: Collection[int] = (),
    grown: Collection[tuple[int, ...]] = (),
    jump: int = 1,
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
        jump: how many tokens the model forgets at once past its context, see `engine.view.first_seen`.

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
    root, ahead = Node(-1, (), 1.0, 0.0), _Ahead(model, ids, jump)
    level = [root]
    for _ in range(depth):
        level = _grow(ahead, level, breadth, stop_ids)
    for path in sorted(grown, key=len):
        node = root.find(path)
        if node is not None and not node.children:
            _grow(ahead, [node], breadth, stop_ids)
    return root


def _grow(ahead: _Ahead, level: list[Node], breadth: int, stop_ids: Collection[int]) -> list[Node]:
    """Give nodes of one depth their children, and give back the children of all."""
    level = [node for node in level if node.id not in stop_ids]
    if not level:
        return []
    rows = ahead.after([node.path for node in level])
    for node, log_probs in zip(level, rows, strict=True):
        for token in largest(log_probs, breadth).tolist():
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
    jump: int = 1,
    tell: Tell = quiet,
) -> list[Beam]:
    """The best continuations that are found by always keeping the `width` likeliest beginnings.

    With a width of 1 it is greedy; with one as large as V to the power of `n_tokens` it misses nothing.

    Args:
        model: a causal one.
        ids: the prompt, at least one token; only the last `context_length` are seen.
        n_tokens: longest continuation.
        width: beginnings kept at each step.
        stop_ids: a continuation is complete with the first of these.
        jump: how many tokens the model forgets at once past its context, see `engine.view.first_seen`.
        tell: is told how many tokens were added, and `n_tokens`.

    Returns:
        At most `width` of them, the likeliest first; complete ones compete with their own probability.
    """
    if width < 1:
        raise ValueError(say("beam_needs_width_least", width=width))
    beams, rows = [Beam((), 0.0)], _Rows(model, ids, jump)
    parents, tokens = [0], list[int]()
    for n in range(n_tokens):
        tell(n, n_tokens)
        open_beams = [beam for beam in beams if not beam.ended]
        if not open_beams:
            break
        found = rows.grow(parents, tokens)
        scores = np.array([beam.log_prob for beam in open_beams])[:, None] + found  # (beams, V)
        grown = [
            (Beam((*open_beams[i].ids, token), float(scores[i, token]), token in stop_ids), i)
            for i, token in (divmod(int(at), found.shape[1]) for at in largest(scores, width))
        ]
        done = [(beam, -1) for beam in beams if beam.ended]
        best = sorted([*done, *grown], key=lambda pair: -pair[0].log_prob)[:width]
        beams = [beam for beam, _ in best]
        parents = [i for beam, i in best if not beam.ended]
        tokens = [beam.ids[-1] for beam in beams if not beam.ended]
    return beams


def largest(scores: NDArray, n: int) -> NDArray:
    """Flat places of the n largest numbers in order, of equal ones the first; not all are sorted."""
    flat = scores.ravel()
    if n < len(flat):
        places = np.flatnonzero(flat >= np.partition(flat, len(flat) - n)[len(flat) - n])
    else:
        places = np.arange(len(flat))
    return places[np.argsort(-flat[places], kind="stable")][:n]


class _Rows:
    """Continuations of one prompt that grow by a token at a time; keys and values are kept if they can be."""

    def __init__(self, model: Transformer, ids: Sequence[int], jump: int) -> None:
        _check(model, [ids])
        self.model, self.jump, self.rows = model, jump, [list(ids)]
        self._reading: RowReading | None = None
        self._begin = -1

    def grow(self, parents: list[int], tokens: list[int]) -> NDArray:
        """(N,V) after N rows, each a row before and a token more; at first, without any, after the prompt."""
        if tokens:
            self.rows = [[*self.rows[i], token] for i, token in zip(parents, tokens, strict=True)]
        limit = self.model.config.context_length
        begin = first_seen(len(self.rows[0]), limit, self.jump)
        if begin and self.jump == 1:
            return next_log_probs(self.model, self.rows)
        if self._reading is None or begin != self._begin:
            self._reading, self._begin = RowReading(self.model, [row[begin:] for row in self.rows]), begin
        else:
            self._reading.go_on(np.array(parents), [[token] for token in tokens])
        return self._reading.next_log_probs()
