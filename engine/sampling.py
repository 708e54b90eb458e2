"""From a model to text: one token drawn after the other, and the bytes of tokens as characters."""

import codecs
import math
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from numpy.typing import NDArray

from engine.cache import KVCache
from engine.config import check_sampling
from engine.dice import draw as draw
from engine.dice import throws
from engine.model import Transformer
from engine.stages import Stage as Stage
from engine.stages import next_token_distribution as next_token_distribution
from engine.stages import sampling_stages as sampling_stages
from wording import words

say = words("engine.sampling")


@dataclass(frozen=True, eq=False)
class Step:
    """One drawn token.

    Attributes:
        id: the token.
        probs: (V,) the distribution that it was drawn from.
        model_probs: (V,) the model's own, before temperature and cuts.
        log_prob: natural log of the model's own probability of it.
        u: the random number in [0, 1) that chose it.
        context: how many tokens the model saw.
    """

    id: int
    probs: NDArray
    model_probs: NDArray
    log_prob: float
    u: float
    context: int


class Continuation:
    """Logits of the next token after a growing row of ids, with a cache while everything fits the context.

    Past the context every step is a forward over the last `context_length` tokens: exact, and slower.
    """

    def __init__(self, model: Transformer, ids: Sequence[int], *, use_cache: bool = True) -> None:
        if model.config.objective != "clm":
            raise ValueError(say("masked_model_fills_gaps"))
        self.model = model
        self.ids = [int(i) for i in ids]
        if not self.ids:
            raise ValueError(say("there_no_token_continue"))
        weight = model.embedding.weight
        self._cache = KVCache(model.config, device=weight.device, dtype=weight.dtype) if use_cache else None
        self._last = torch.empty(0)  # logits after the newest token that the cache holds

    @torch.no_grad()
    def logits(self) -> torch.Tensor:
        """(V,) for the token after the last one."""
        limit, device = self.model.config.context_length, self.model.device
        if self._cache is None or len(self.ids) > limit:
            return self.model(torch.tensor([self.ids[-limit:]], device=device))[0, -1]
        fresh = self.ids[self._cache.length :]
        if fresh:
            self._last = self.model(torch.tensor([fresh], device=device), cache=self._cache)[0, -1]
        return self._last


def next_logits(model: Transformer, ids: Sequence[int]) -> NDArray:
    """Logits (V,) float32 of the token after the last one; only the last `context_length` ids are seen.

    Raises:
        ValueError: for no ids, or a masked model.
    """
    logits: NDArray = Continuation(model, ids, use_cache=False).logits().float().cpu().numpy()
    return logits


def generate(
    model: Transformer,
    ids: Sequence[int],
    *,
    n_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    seed: int | None = None,
    stream: int = 0,
    skip: int = 0,
    stop_ids: Collection[int] = (),
    use_cache: bool = True,
) -> Iterator[Step]:
    """Continue a prompt token by token; leaving the loop stops the computing.

    Args:
        model: a causal one.
        ids: the prompt, at least one token; only the last `context_length` are seen.
        n_tokens: how many tokens to draw.
        temperature: as in `sampling_stages`.
        top_k: as in `sampling_stages`.
        top_p: as in `sampling_stages`.
        min_p: as in `sampling_stages`.
        repetition_penalty: as in `sampling_stages`; it counts the tokens that the model sees.
        seed: of a generator that belongs to this call alone; None draws a fresh one.
        stream: which of the seed's rows of numbers, see `engine.dice.throws`.
        skip: how many of the seed's numbers were used before. Drawing 3 tokens and then 5 with ``skip=3``
            gives the same text as drawing 8 at once.
        stop_ids: the text ends with the first of these, which still comes.
        use_cache: reuse keys and values while everything fits the context; the numbers are the same.

    Raises:
        ValueError: for an empty prompt, a masked model, settings out of range, or logits that are not finite.
    """
    check_sampling(temperature, top_k, top_p, min_p, repetition_penalty)
    text = Continuation(model, ids, use_cache=use_cache)
    limit = model.config.context_length
    numbers = throws(n_tokens, secrets.randbits(32) if seed is None else seed, stream=stream, skip=skip)

    def steps() -> Iterator[Step]:  # apart: a wrong setting is refused by the call, not by the first step
        for u in numbers.tolist():
            seen = text.ids[-limit:]
            stages = sampling_stages(
                text.logits(),
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                min_p=min_p,
                repetition_penalty=repetition_penalty,
                previous=seen,
            )
            chosen = draw(stages[-1].probs, u)
            own = stages[0].probs
            log_prob = math.log(own[chosen]) if own[chosen] > 0 else -math.inf
            yield Step(chosen, stages[-1].probs, own, log_prob, u, len(seen))
            text.ids.append(chosen)
            if chosen in stop_ids:
                return

    return steps()


class TextStream:
    r"""Turns the bytes of tokens into text as they come; half a character waits for its other half.

    >>> stream = TextStream()
    >>> stream.push(b"\xf0\x9f\x98"), stream.push(b"\x80"), stream.end()
    ('', '😀', '')
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def push(self, data: bytes) -> str:
        r"""Text that is complete now; bytes that can't be UTF-8 come as ``\xf0``."""
        return self._decoder.decode(data)

    def end(self) -> str:
        r"""What was still waiting, as ``\xf0``."""
        return self._decoder.decode(b"", final=True)
