"""From a model to text: one token drawn after the other, and the bytes of tokens as characters."""

import codecs
import math
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from numpy.typing import NDArray

from engine.cache import KVCache
from engine.config import check_sampling
from engine.decoding import Decoder, fits
from engine.dice import draw as draw
from engine.dice import throws
from engine.model import Transformer
from engine.stages import Stage as Stage
from engine.stages import before_and_after
from engine.stages import next_token_distribution as next_token_distribution
from engine.stages import sampling_stages as sampling_stages
from engine.view import first_seen
from wording import words

say = words("engine.sampling")
READ_AT_ONCE = 256  # tokens of a prompt; between two parts `tell` is called

Tell = Callable[[int, int], None]


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


class Held:
    """What a model has read of a text: the tokens, their keys and values, and the logits after the newest.

    It belongs to one reader at a time, and holds no model.
    """

    def __init__(self, model: Transformer) -> None:
        weight = model.embedding.weight
        self.cache = KVCache(model.config, device=weight.device, dtype=weight.dtype)
        self.ids: list[int] = []
        self.last = torch.empty(0)

    def shared(self, seen: Sequence[int]) -> int:
        """How many of the tokens that are seen now need not be read again."""
        n = min(len(self.ids), len(seen))
        if n == len(self.ids) and self.ids == seen[:n]:  # mostly; it takes less than one by one
            return n
        return next((i for i in range(n) if self.ids[i] != seen[i]), n)

    def keep(self, n: int) -> None:
        """Forget all but the first n tokens, and with the others what came after them."""
        self.ids, self.cache.length, self.last = self.ids[:n], n, torch.empty(0)


class Continuation:
    """Logits of the next token after a growing row of ids, with a cache while everything fits the context.

    Past the context every step is a forward over the last `context_length` tokens, exact and slower, or with
    a `jump` over a single token until the next jump, see `engine.view.first_seen`.

    Args:
        model: a causal one.
        ids: at least one token.
        use_cache: keep keys and values; the numbers are the same.
        jump: how many tokens are forgotten at once past the context.
        held: what was read before, which is not read again.
    """

    def __init__(
        self,
        model: Transformer,
        ids: Sequence[int],
        *,
        use_cache: bool = True,
        jump: int = 1,
        held: Held | None = None,
    ) -> None:
        if model.config.objective != "clm":
            raise ValueError(say("masked_model_fills_gaps"))
        self.model = model
        self.ids = [int(i) for i in ids]
        if not self.ids:
            raise ValueError(say("there_no_token_continue"))
        self.jump = jump
        self._held = (held or Held(model)) if use_cache else None

    @property
    def begin(self) -> int:
        """Index of the first token that is seen."""
        return first_seen(len(self.ids), self.model.config.context_length, self.jump)

    def logits(self, tell: Tell | None = None) -> torch.Tensor:
        """(V,) for the token after the last one.

        Args:
            tell: called with the number of tokens read and of all to read, while many are read.
        """
        begin, held = self.begin, self._held
        seen = self.ids[begin:]
        if held is None or (begin and self.jump == 1):
            return self._forward(seen, None)
        shared, n = held.shared(seen), len(held.ids)
        # An earlier place: what comes after it is kept. Or a reader was stopped before it read on.
        if shared == len(seen) and (shared < n or not len(held.last)):
            held.cache.length = shared - 1
            earlier = self._read(seen[-1:], held.cache)
            held.cache.length = n
            return earlier
        if shared < n:
            held.keep(shared)
        for at in range(shared, len(seen), READ_AT_ONCE):
            if tell is not None and len(seen) - shared > READ_AT_ONCE:
                tell(at - shared, len(seen) - shared)
            part = seen[at : at + READ_AT_ONCE]
            held.last = self._read(part, held.cache)
            held.ids += part
        return held.last

    def _read(self, ids: Sequence[int], cache: KVCache) -> torch.Tensor:
        """(V,) after tokens that follow those of the cache."""
        if len(ids) == 1 and self._decoder is not None:
            return self._decoder.next_logits(ids[0], cache)
        return self._forward(ids, cache)

    @cached_property
    def _decoder(self) -> Decoder | None:
        """The quicker way of a single token, where the model has it; the numbers are the same."""
        return Decoder(self.model) if fits(self.model) else None

    @torch.no_grad()
    def _forward(self, ids: Sequence[int], cache: KVCache | None) -> torch.Tensor:
        return self.model.next_logits(torch.tensor([list(ids)], device=self.model.device), cache=cache)[0]


def next_logits(model: Transformer, ids: Sequence[int]) -> NDArray:
    """Logits (V,) float32 of the token after the last one; only the last `context_length` ids are seen.

    Raises:
        ValueError: for no ids, or a masked model.
    """
    logits: NDArray = Continuation(model, ids, use_cache=False).logits().float().cpu().numpy()
    return logits


@torch.no_grad()
def logits_of_last(model: Transformer, ids: Sequence[int], n: int) -> NDArray:
    """Logits (n,V) float32 after each of the last n of some ids, which fit the context, in one pass."""
    stream = model.stream(torch.tensor([list(ids)], device=model.device))[0, -n:]
    logits: NDArray = model.read_out(stream).float().cpu().numpy()
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
    jump: int = 1,
    held: Held | None = None,
    tell: Tell | None = None,
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
        jump: how many tokens the model forgets at once past its context, see `Continuation`.
        held: what this model has read before; what it shares with the text is not read again.
        tell: called while many tokens of the prompt are read, see `Continuation.logits`.

    Raises:
        ValueError: for an empty prompt, a masked model, settings out of range, fewer than 0 tokens, or logits
            that are not finite.
    """
    check_sampling(temperature, top_k, top_p, min_p, repetition_penalty)
    if n_tokens < 0:
        raise ValueError(say("tokens_at_least_0", n=n_tokens))
    text = Continuation(model, ids, use_cache=use_cache, jump=jump, held=held)
    numbers = throws(n_tokens, secrets.randbits(32) if seed is None else seed, stream=stream, skip=skip)

    def steps() -> Iterator[Step]:  # apart: a wrong setting is refused by the call, not by the first step
        for u in numbers.tolist():
            own, probs = before_and_after(
                text.logits(tell),
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                min_p=min_p,
                repetition_penalty=repetition_penalty,
                previous=text.ids[text.begin :] if repetition_penalty > 1 else (),
            )
            chosen = draw(probs, u)
            log_prob = math.log(own[chosen]) if own[chosen] > 0 else -math.inf
            yield Step(chosen, probs, own, log_prob, u, len(text.ids) - text.begin)
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
