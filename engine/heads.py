"""What attention heads do: measures of their habits, and the arithmetic behind one of their numbers."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.metrics import softmax
from engine.trace import Trace


@dataclass(frozen=True, eq=False)
class Cell:
    """The arithmetic of one attention weight: products of q and k, their sum, scaled, and the row's softmax.

    Attributes:
        products: (D,) q_i · k_i, number by number.
        score: their sum times the model's scale, mostly 1 / √D.
        dots: (T,) q · k for every key of the row, also those that the query may not look at.
        row_scores: (T,) scores of the whole row; -inf where the query may not look.
        row_weights: (T,) softmax of row_scores; exactly 0 where the query may not look.
        weight: exp(score) / Σ exp(row_scores).
    """

    products: NDArray
    score: float
    dots: NDArray
    row_scores: NDArray
    row_weights: NDArray
    weight: float

    @property
    def dot(self) -> float:
        """The dot product of query and key: the sum of the products."""
        return float(self.products.sum())

    @property
    def row_total(self) -> float:
        """Σ exp(score) over the keys that the query may look at."""
        return float(np.exp(self.row_scores).sum())


def attention_cell(traced: Trace, layer: int, head: int, query: int, key: int) -> Cell:
    """Work out one cell of `Trace.attentions` again from q and k, in float64."""
    q = traced.q[layer, head, query].astype(np.float64)
    k = traced.k[layer, head].astype(np.float64)
    dots = k @ q
    row = np.where(traced.visible(layer)[query], dots * traced.scale, -np.inf)
    weights = softmax(row)
    return Cell(q * k[key], float(row[key]), dots, row, weights, float(weights[key]))


@dataclass(frozen=True, eq=False)
class Output:
    """One number of what a head hands on: Σ_j weight_j · value_j.

    Attributes:
        weights: (T,) the query's attention weights.
        values: (T,) the chosen number of every key's value vector.
        total: that number of the head's output.
    """

    weights: NDArray
    values: NDArray
    total: float

    @property
    def products(self) -> NDArray:
        """(T,) weight times value; their sum is `total`."""
        return self.weights * self.values


def head_output(traced: Trace, layer: int, head: int, query: int, dimension: int) -> Output:
    """Weights times values for one number of `Trace.heads`, in float64 from the traced float32."""
    weights = traced.attentions[layer, head, query].astype(np.float64)
    values = traced.v[layer, head, :, dimension].astype(np.float64)
    return Output(weights, values, float(weights @ values))


MEASURES = ("entropy", "distance", "previous", "next", "first", "same", "induction")
RULES = MEASURES[2:]  # shares of the weight, 0 to 1


def head_measures(traced: Trace) -> dict[str, NDArray]:
    """Habits of every head in this text, each a mean over the queries that have a choice.

    A causal model's first token can only look at itself, so it is left out everywhere. In a block with a
    window only the queries count whose window holds a token that the rule names.

    Returns:
        For each of MEASURES an (L,H) array; NaN if no query of the text can show it in that block.
        "entropy": of a row of weights, nats; its exponential is an effective number of tokens.
        "distance": Σ weight · |query - key|, tokens.
        "previous", "next": the weight on the token just before, just after (masked models alone look there).
        "first": the weight on the first token of all others.
        "same": the weight on equal tokens elsewhere, in a causal model earlier (duplicate-token heads: Wang
        et al. 2022, arXiv:2211.00593).
        "induction": the weight on the token after an equal one elsewhere, in a causal model earlier (Olsson
        et al. 2022, arXiv:2209.11895; Elhage et al. 2021, "A Mathematical Framework for Transformer
        Circuits"). Looking at oneself never counts as "same" or "induction".
    """
    weights = traced.attentions  # (L,H,T,T)
    place = np.arange(len(traced.ids))
    away = abs(place[:, None] - place).astype(weights.dtype)  # (T,T) tokens between query and key
    n_layer, rules = len(weights), _targets(traced.ids)
    found: dict[str, list[NDArray]] = {name: [] for name in MEASURES}
    for layer in range(n_layer):
        seen = traced.visible(layer)
        choice = seen.sum(axis=1) > 1
        found["entropy"].append(_mean(row_entropies(weights[layer]), choice))
        found["distance"].append(_mean(np.einsum("hqk,qk->hq", weights[layer], away), choice))
        for rule, where in rules.items():
            found[rule].append(_mean(_share(weights[layer], where & seen), (where & seen).any(axis=1)))
    return {name: np.stack(values) for name, values in found.items()}


def _share(weights: NDArray, where: NDArray) -> NDArray:
    """(H,T,T) weights -> (H,T): of every query, what lies on the keys that are marked (T,T)."""
    return np.asarray(np.einsum("hqk,qk->hq", weights, where.astype(weights.dtype)))


def row_entropies(weights: NDArray) -> NDArray:
    """(…,H,T) entropy of every row of weights (…,H,T,T), nats, with 0 log 0 = 0."""
    w = torch.tensor(weights)  # a copy: a page's are read only, of which `from_numpy` warns
    return np.asarray((0.0 - w.xlogy_(w).sum(dim=-1)).numpy())  # float64 would take half as long again


def _mean(values: NDArray, queries: NDArray) -> NDArray:
    """(H,T) -> (H,): mean over the chosen queries, NaN if there are none."""
    if not queries.any():
        return np.full(len(values), np.nan)
    return np.asarray(values[..., queries].mean(axis=-1, dtype=np.float64))


def _targets(ids: NDArray) -> dict[str, NDArray]:
    """For each of RULES the keys (T,T) that it names, row by row, also those that a query can't see."""
    n = len(ids)
    equal = (ids[:, None] == ids) & ~np.eye(n, dtype=bool)
    after = np.zeros((n, n), dtype=bool)
    after[:, 1:] = equal[:, :-1]  # keys whose left neighbour equals the query, and is not the query
    return {
        "previous": np.eye(n, k=-1, dtype=bool),
        "next": np.eye(n, k=1, dtype=bool),
        "first": np.eye(1, n, dtype=bool).repeat(n, axis=0) & (np.arange(n) > 0)[:, None],
        "same": equal,
        "induction": after & ~np.eye(n, dtype=bool),
    }


@dataclass(frozen=True)
class Example:
    """A row of attention in which a head follows one of RULES.

    Attributes:
        layer, head: counted from 0.
        query, key: positions; the key is the one named by the rule that gets most.
        weight: of the query on all keys that the rule names, 0 to 1.
        mean: that weight's mean over all queries that can follow the rule.
    """

    layer: int
    head: int
    query: int
    key: int
    weight: float
    mean: float


def best_head(traced: Trace, rule: str) -> tuple[int, int] | None:
    """The (layer, head) that follows one of RULES most, counted from 0; None if no query of the text can."""
    share = head_measures(traced)[rule]
    if np.isnan(share).all():
        return None
    layer, head = np.unravel_index(int(np.nanargmax(share)), share.shape)
    return int(layer), int(head)


def best_example(traced: Trace, rule: str) -> Example | None:
    """A head and the query at which it follows one of RULES most; None if no query of the text can.

    For "induction" head and query with the largest weight, from the second layer on if there is one: such a
    head builds on one of an earlier layer (Elhage et al. 2021). For the others the head that `best_head`
    finds, with its best query; the one right after the first token is left out, as the token before it is
    also the first.
    """
    targets = _targets(traced.ids).get(rule)
    measured = head_measures(traced)[rule]
    if targets is None or np.isnan(measured).all():
        return None
    n_layer, n_head, T = traced.attentions.shape[:3]
    where = np.stack([targets & traced.visible(layer) for layer in range(n_layer)])  # (L,T,T)
    shares = np.stack([_share(traced.attentions[i], where[i]) for i in range(n_layer)])  # (L,H,T)
    can = np.repeat(np.any(where, axis=2, keepdims=True).swapaxes(1, 2), n_head, axis=1)  # (L,H,T)
    if rule == "induction":
        can[: min(1, n_layer - 1)] = False
    else:
        can[:, :, : min(2, T - 1)] = False
        layer, head = best_head(traced, rule) or (0, 0)
        can[np.arange(n_layer) != layer] = False
        can[:, np.arange(n_head) != head] = False
    if not can.any():
        return None
    found = np.unravel_index(int(np.where(can, shares, -1.0).argmax()), shares.shape)
    layer, head, query = (int(i) for i in found)
    key = int(np.where(where[layer, query], traced.attentions[layer, head, query], -1.0).argmax())
    weight, mean = float(shares[layer, head, query]), float(measured[layer, head])
    return Example(layer, head, query, key, weight, mean)
