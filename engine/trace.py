"""Everything that one forward pass computed, as numpy: the data behind every picture of the inside."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.config import ModelConfig
from engine.metrics import IGNORED, softmax
from engine.model import Transformer
from engine.recorder import Recorder
from engine.tokenizers import Token, Tokenizer
from wording import words

say = words("engine.trace")


@dataclass(frozen=True, eq=False)
class Trace:
    """One forward pass. T is the number of tokens that the model saw.

    Attributes:
        tokens: the T tokens of the text, and around them those that the model wants there, see
            `Tokenizer.frame`: they have no width and show their spelling.
        ids: what the model was given, (T,): the tokens' ids, or the mask where one was hidden.
        logits: (T,V) float32.
        attentions: (L,H,T,T) float32; rows are queries, columns keys, each row sums to 1.
        q, k, v: (L,H,T,D) as the attention used them (turned, if positions are rotary).
        heads: (L,H,T,D) weights × values, before the output matrix.
        residual: (L+1,T,C) the stream after the embedding and after each block.
        middle: (L,T,C) the stream between the halves of each block: what its MLP's output is added to.
        attention_out, mlp_out: (L,T,C) what each half of a block computed.
        objective: "clm" or "mlm".
        config: the model's shape.
        hidden: positions that were replaced by the mask.
        unused: how many tokens at the start of the text did not fit the context and were not read.
        frame: how many tokens at the beginning and at the end are not the text's.
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
    middle: NDArray
    attention_out: NDArray
    mlp_out: NDArray
    objective: str
    config: ModelConfig
    hidden: tuple[int, ...] = ()
    unused: int = 0
    frame: tuple[int, int] = (0, 0)

    @property
    def inner(self) -> range:
        """Positions of the text's own tokens."""
        return range(self.frame[0], len(self.tokens) - self.frame[1])

    def probs(self) -> NDArray:
        """(T,V) float64, each row sums to 1."""
        return softmax(self.logits)

    @property
    def targets(self) -> NDArray:
        """(T,) the id that each position has to predict: -100 where there is none.

        Of a causal model the next token, so the last position has none; of a masked one the token itself.
        """
        ids = np.array([token.id for token in self.tokens])
        return ids if self.objective == "mlm" else np.append(ids[1:], IGNORED)

    @property
    def scored(self) -> NDArray:
        """(T,) the targets that a loss counts, all in the text; of a masked model only hidden tokens."""
        masked, places = self.objective == "mlm", np.arange(len(self.tokens))
        counted = np.isin(places, self.hidden) if masked else np.isin(places + 1, self.inner)
        return np.where(counted, self.targets, IGNORED)

    def visible(self, layer: int) -> NDArray:
        """(T,T) bool: which keys (columns) each query (row) may look at in a block."""
        T, window = len(self.ids), self.config.window(layer)
        if self.objective == "mlm":
            return np.ones((T, T), dtype=bool)
        seen = np.tri(T, dtype=bool)
        return np.triu(seen, 1 - window) if window else seen

    @property
    def scale(self) -> float:
        """What q · k is multiplied by to give a score."""
        given = self.config.score_scale
        return self.config.d_head**-0.5 if given is None else given

    @property
    def scored_bytes(self) -> int:
        """Bytes of all tokens but the first, which nothing predicts; a frame before the text has none."""
        return self.tokens[-1].byte_end - self.tokens[0].byte_end


PARTS = ("attention", "mlp")  # the halves of a block


def check_ablation(
    config: ModelConfig, ablate: Iterable[tuple[int, int]], ablate_parts: Iterable[tuple[str, int]]
) -> None:
    """Refuse heads, halves and layers that the model does not have.

    Raises:
        ValueError: for the first of them.
    """
    counts = {"n_layer": config.n_layer, "n_head": config.n_head}
    for layer, head in ablate:
        if not (0 <= layer < config.n_layer and 0 <= head < config.n_head):
            raise ValueError(say("there_no_head_layer", head=head, layer=layer, **counts))
    for part, layer in ablate_parts:
        if part not in PARTS:
            raise ValueError(say("block_has_parts_not", part=part))
        if not 0 <= layer < config.n_layer:
            raise ValueError(say("there_no_layer", layer=layer, **counts))


def trace(
    model: Transformer,
    tokenizer: Tokenizer,
    text: str,
    *,
    ablate: Iterable[tuple[int, int]] = (),
    ablate_parts: Iterable[tuple[str, int]] = (),
    hidden: Sequence[int] = (),
    most: int | None = None,
) -> Trace:
    """Run a text through a model and keep everything.

    Args:
        model: causal or masked.
        tokenizer: the one that it was trained with.
        text: if it has more tokens than are read at once, the last ones are read and `Trace.unused` says how
            many were not. The tokenizer's frame stands around those that are read.
        ablate: (layer, head) pairs to silence, both counted from 0: their terms are missing in what attention
            adds to the stream; the other heads, the bias and everything later are computed as ever.
        ablate_parts: ("attention", layer) and ("mlp", layer) pairs: halves of blocks that add nothing at all.
        hidden: positions that a masked model must not see, counted in the tokens that are read, the frame's
            among them; only the text's own can be hidden.
        most: tokens that are read at once, see `engine.trace_size`; None is the whole context.

    Raises:
        ValueError: for an empty text, a head, part or position that does not exist, or hiding from a causal
            model.
    """
    config = model.config
    tokens, unused = tokenizer.ending(text, min(most or config.context_length, config.context_length))
    if not tokens:
        raise ValueError(say("there_nothing_look_yet"))
    ablate, ablate_parts = list(ablate), list(ablate_parts)
    check_ablation(config, ablate, ablate_parts)
    ids, inner = np.array([t.id for t in tokens]), tokenizer.inner(len(tokens))
    if hidden:
        if config.objective != "mlm":
            raise ValueError(say("only_masked_model_knows"))
        if min(hidden) not in inner or max(hidden) not in inner:
            last, places = inner.stop - 1, sorted(hidden)
            raise ValueError(say("positions_hide_must_lie", first=inner.start, last=last, places=places))
        ids[list(hidden)] = tokenizer.mask_id
    recorder = Recorder(ablate, ablate_parts)
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
        middle=stacked("middle"),
        attention_out=stacked("attention_out"),
        mlp_out=stacked("mlp_out"),
        objective=config.objective,
        config=config,
        hidden=tuple(sorted(hidden)),
        unused=unused,
        frame=(inner.start, len(tokens) - inner.stop),
    )
