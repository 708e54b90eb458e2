"""What attention heads do: measures of their habits, and the arithmetic behind one of their numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.metrics import softmax
from engine.trace import Trace


@dataclass(frozen=True, eq=False)
class Cell:
    """The arithmetic of one attention weight: products of q and k, their sum, scaled, and the row's softmax.

    Attributes:
        products: (D,) q_i · k_i, number by number.
        score: their sum divided by √D.
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
    row = dots / np.sqrt(len(q))
    if traced.objective == "clm":
        row[query + 1 :] = -np.inf
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

    A causal model's first token can only look at itself, so it is left out everywhere.

    Returns:
        For each of MEASURES an (L,H) array; NaN if no query of the text can show it.
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
    n, causal = len(traced.ids), traced.objective == "clm"
    place = np.arange(n)
    choice = place > 0 if causal else np.full(n, n > 1)
    away = abs(place[:, None] - place).astype(weights.dtype)  # (T,T) tokens between query and key
    found = {
        "entropy": _mean(_entropies(weights), choice),
        "distance": _mean(np.einsum("lhqk,qk->lhq", weights, away), choice),
    }
    for rule, where in _targets(traced.ids, causal).items():
        share = np.einsum("lhqk,qk->lhq", weights, where.astype(weights.dtype))
        found[rule] = _mean(share, where.any(axis=1) & choice)
    return found


def _entropies(weights: NDArray) -> NDArray:
    """(L,H,T) entropy of every row, nats, with 0 log 0 = 0."""
    logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
    return 0.0 - (weights * logs).sum(axis=-1, dtype=np.float64)


def _mean(values: NDArray, queries: NDArray) -> NDArray:
    """(L,H,T) -> (L,H): mean over the chosen queries, NaN if there are none."""
    if not queries.any():
        return np.full(values.shape[:2], np.nan)
    return np.asarray(values[..., queries].mean(axis=-1, dtype=np.float64))


def _targets(ids: NDArray, causal: bool) -> dict[str, NDArray]:
    """For each of RULES the keys (T,T) that it names, row by row."""
    n = len(ids)
    equal = (ids[:, None] == ids) & ~np.eye(n, dtype=bool)
    after = np.zeros((n, n), dtype=bool)
    after[:, 1:] = equal[:, :-1]  # keys whose left neighbour equals the query, and is not the query
    rules = {
        "previous": np.eye(n, k=-1, dtype=bool),
        "next": np.eye(n, k=1, dtype=bool),
        "first": np.eye(1, n, dtype=bool).repeat(n, axis=0) & (np.arange(n) > 0)[:, None],
        "same": equal,
        "induction": after & ~np.eye(n, dtype=bool),
    }
    return {name: np.tril(where, k=-1) for name, where in rules.items()} if causal else rules


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
    if np.isnan(share).any():
        return None
    layer, head = np.unravel_index(int(share.argmax()), share.shape)
    return int(layer), int(head)


def best_example(traced: Trace, rule: str) -> Example | None:
    """A head and the query at which it follows one of RULES most; None if no query of the text can.

    For "induction" head and query with the largest weight, from the second layer on if there is one: such a
    head builds on one of an earlier layer (Elhage et al. 2021). For the others the head that `best_head`
    finds, with its best query; the one right after the first token is left out, as the token before it is
    also the first.
    """
    where = _targets(traced.ids, traced.objective == "clm").get(rule)
    measured = head_measures(traced)[rule]
    if where is None or np.isnan(measured).any():
        return None
    shares = np.einsum("lhqk,qk->lhq", traced.attentions, where.astype(traced.attentions.dtype))  # (L,H,T)
    can = np.broadcast_to(where.any(axis=1), shares.shape).copy()
    if rule == "induction":
        can[: min(1, len(can) - 1)] = False
    else:
        can[:, :, : min(2, len(traced.ids) - 1)] = False
        layer, head = best_head(traced, rule) or (0, 0)
        can[np.arange(len(can)) != layer] = False
        can[:, np.arange(can.shape[1]) != head] = False
    if not can.any():
        return None
    found = np.unravel_index(int(np.where(can, shares, -1.0).argmax()), shares.shape)
    layer, head, query = (int(i) for i in found)
    key = int(np.where(where[query], traced.attentions[layer, head, query], -1.0).argmax())
    weight, mean = float(shares[layer, head, query]), float(measured[layer, head])
    return Example(layer, head, query, key, weight, mean)
