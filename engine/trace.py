"""Everything that one forward pass computed, as numpy: the data behind every picture of the inside."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.metrics import softmax
from engine.model import Recorder, Transformer
from engine.tokenizers import Token, Tokenizer


@dataclass(frozen=True, eq=False)
class Trace:
    """One forward pass. T is the number of tokens that the model saw.

    Attributes:
        tokens: the T tokens of the text.
        ids: what the model was given, (T,): the tokens' ids, or the mask where one was hidden.
        logits: (T,V) float32.
        attentions: (L,H,T,T) float32; rows are queries, columns keys, each row sums to 1.
        q, k, v: (L,H,T,D) as the attention used them (turned, if positions are rotary).
        heads: (L,H,T,D) weights × values, before the output matrix.
        residual: (L+1,T,C) the stream after the embedding and after each block.
        attention_out, mlp_out: (L,T,C) what each half of a block computed.
        objective: "clm" or "mlm".
        hidden: positions that were replaced by the mask.
        unused: how many tokens at the start of the text did not fit the context and were not read.
    """

    tokens: list[Token]
    ids: NDArray
    logits: NDArray
    attentions: NDArray
    q: NDArray
    k: NDArray
    v: NDArray
    heads: NDArray
    residual: NDArray
    attention_out: NDArray
    mlp_out: NDArray
    objective: str
    hidden: tuple[int, ...] = ()
    unused: int = 0

    def probs(self) -> NDArray:
        """(T,V) float64, each row sums to 1."""
        return softmax(self.logits)

    @property
    def scored_bytes(self) -> int:
        """Bytes of all tokens but the first, which nothing predicts."""
        return self.tokens[-1].byte_end - self.tokens[0].byte_end


def trace(
    model: Transformer,
    tokenizer: Tokenizer,
    text: str,
    *,
    ablate: Iterable[tuple[int, int]] = (),
    hidden: Sequence[int] = (),
) -> Trace:
    """Run a text through a model and keep everything.

    Args:
        model: causal or masked.
        tokenizer: the one that it was trained with.
        text: if it has more tokens than the context, the last `context_length` are read and `Trace.unused`
            says how many were not.
        ablate: (layer, head) pairs to silence, both counted from 0.
        hidden: positions (counted in the tokens that are read) that a masked model must not see.

    Raises:
        ValueError: for an empty text, a head or position that does not exist, or hiding from a causal model.
    """
    config = model.config
    tokens = tokenizer.tokens(text)
    if not tokens:
        raise ValueError("There is nothing to look at yet. Type at least one character.")
    unused = max(0, len(tokens) - config.context_length)
    tokens, ablate = tokens[unused:], list(ablate)
    for layer, head in ablate:
        if not (0 <= layer < config.n_layer and 0 <= head < config.n_head):
            raise ValueError(
                f"There is no head {head} in layer {layer}: the model has {config.n_layer} layers of "
                f"{config.n_head} heads, both counted from 0."
            )
    ids = np.array([t.id for t in tokens])
    if hidden:
        if config.objective != "mlm":
            raise ValueError("Only a masked model knows the mask. Choose a masked model, or hide nothing.")
        if min(hidden) < 0 or max(hidden) >= len(ids):
            raise ValueError(
                f"Positions to hide must lie between 0 and {len(ids) - 1}, not {sorted(hidden)}."
            )
        ids[list(hidden)] = tokenizer.mask_id
    recorder = Recorder(ablate)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)[None].to(model.device), recorder=recorder)[0]

    def stacked(name: str) -> NDArray:
        return torch.stack([t[0] for t in recorder.kept[name]]).float().cpu().numpy()

    return Trace(
        tokens=tokens,
        ids=ids,
        logits=logits.float().cpu().numpy(),
        attentions=stacked("weights"),
        q=stacked("q"),
        k=stacked("k"),
        v=stacked("v"),
        heads=stacked("heads"),
        residual=stacked("residual"),
        attention_out=stacked("attention_out"),
        mlp_out=stacked("mlp_out"),
        objective=config.objective,
        hidden=tuple(sorted(hidden)),
        unused=unused,
    )


@dataclass(frozen=True, eq=False)
class Cell:
    """The arithmetic of one attention weight: products of q and k, their sum, scaled, and the row's softmax.

    Attributes:
        products: (D,) q_i · k_i, number by number.
        score: their sum divided by √D.
        row_scores: (T,) scores of the whole row; -inf where the query may not look.
        weight: exp(score) / Σ exp(row_scores).
    """

    products: NDArray
    score: float
    row_scores: NDArray
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
    row = k @ q / np.sqrt(len(q))
    if traced.objective == "clm":
        row[query + 1 :] = -np.inf
    return Cell(q * k[key], float(row[key]), row, float(softmax(row)[key]))


RULES = ("previous", "first", "same")


def head_patterns(traced: Trace) -> dict[str, NDArray]:
    """How far each head follows a simple rule: the weight it puts there, mean over the queries with a choice.

    Returns:
        For each of RULES an (L,H) array between 0 and 1; NaN if no query of the text can follow it.
        "previous": the token just before. "first": the first token. "same": earlier tokens that are equal to
        the query (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits").
    """
    weights, ids = traced.attentions, traced.ids  # (L,H,T,T)
    n = len(ids)
    previous, first = np.eye(n, k=-1, dtype=bool), np.eye(1, n, dtype=bool).repeat(n, axis=0)
    rules = (previous, first, np.tril(ids[:, None] == ids, k=-1))
    found = {}
    for name, where in zip(RULES, rules, strict=True):
        queries = where.any(axis=1)
        queries[0] = False  # the first token of a causal model has no choice
        share = np.where(where, weights, 0.0).sum(axis=-1)[..., queries]  # (L,H,queries)
        found[name] = share.mean(axis=-1) if queries.any() else np.full(weights.shape[:2], np.nan)
    return found


def best_head(traced: Trace, rule: str) -> tuple[int, int] | None:
    """The (layer, head) that follows one of RULES most, counted from 0; None if no query of the text can."""
    share = head_patterns(traced)[rule]
    if np.isnan(share).any():
        return None
    layer, head = np.unravel_index(int(share.argmax()), share.shape)
    return int(layer), int(head)
