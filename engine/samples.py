"""Short texts that show, while it trains, what a model has learned so far."""

import math
from collections.abc import Sequence

import torch

from engine.batches import mask_tokens
from engine.framing import Framing
from engine.model import Transformer
from engine.sampling import generate
from engine.tokenizers import Tokenizer

SAMPLE_TOKENS = 60
ANSWER_TOKENS = 160
FILLED_TOKENS = 24  # length of the sentence that a masked model fills


def shown(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    r"""Text of some ids; bytes that are no whole character, as beginners write, stand as ``\xf0``."""
    return b"".join(map(tokenizer.token_bytes, ids)).decode("utf-8", "backslashreplace")


class AnswerSampler:
    """The answer to always the same prompt, with always the same seed."""

    def __init__(self, model: Transformer, framing: Framing, prompt: str) -> None:
        self._model, self._framing, self._prompt = model, framing, prompt

    def record(self) -> dict[str, str]:
        """Texts for a "sample" record."""
        text = write_answer(self._model, self._framing, self._prompt, n_tokens=ANSWER_TOKENS, seed=0)
        return {"prompt": self._prompt + "\n", "text": text}


def write_answer(
    model: Transformer,
    framing: Framing,
    prompt: str,
    *,
    n_tokens: int,
    seed: int,
    temperature: float = 0.8,
) -> str:
    """An answer to a prompt, without the token that ends it; `n_tokens` at most."""
    asked = framing.prompt_ids(prompt)
    room = max(1, model.config.context_length - len(asked))
    steps = generate(
        model,
        asked,
        n_tokens=min(n_tokens, room),
        temperature=temperature,
        seed=seed,
        stop_ids=framing.stop_ids,
    )
    ids = [step.id for step in steps]
    if ids and ids[-1] == framing.end:
        ids.pop()
    return shown(framing.tokenizer, ids).rstrip("\n")


class Sampler:
    """Short texts that show what the model has learned so far; always the same prompt and seed."""

    def __init__(
        self, model: Transformer, tokenizer: Tokenizer, ids: torch.Tensor, prompt: str | None, kind: str
    ) -> None:
        """Choose the prompt, or for a masked model the sentence and the hidden places, once."""
        self.model, self.tokenizer, self.stories = model, tokenizer, kind == "stories"
        ends = torch.isin(ids, torch.tensor(tokenizer.line_end_ids, dtype=torch.int64)).nonzero().flatten()
        begin = int(ends[0]) if len(ends) else 0
        if model.config.objective == "clm":
            self._prompt = tokenizer.encode(prompt) if prompt else []
            self._start = self._prompt or [int(ids[begin])]
        else:
            begin = min(begin + bool(len(ends)), len(ids) - 1)
            length = min(FILLED_TOKENS, model.config.context_length)
            self._row = ids[begin : begin + length][None]
            self._masked = mask_tokens(
                self._row,
                mask_prob=0.2,
                mask_id=tokenizer.mask_id,
                vocab_size=tokenizer.vocab_size,
                generator=torch.Generator().manual_seed(0),
                split=(1.0, 0.0, 0.0),
            ).inputs

    def record(self) -> dict[str, str]:
        """Texts for a "sample" record."""
        return self._continue() if self.model.config.objective == "clm" else self._fill()

    def _continue(self) -> dict[str, str]:
        ids = []
        for step in generate(self.model, self._start, n_tokens=SAMPLE_TOKENS, temperature=0.8, seed=0):
            ids.append(step.id)
            if self.stories and step.id in self.tokenizer.line_end_ids:
                break
        return {"prompt": self._text(self._prompt), "text": self._text(ids)}

    def _text(self, ids: list[int]) -> str:
        return shown(self.tokenizer, ids)

    @torch.no_grad()
    def _fill(self) -> dict[str, str]:
        logits = self.model(self._masked.to(self.model.device))[0].cpu()  # (T,V)
        logits[:, self.tokenizer.mask_id] = -math.inf
        filled = torch.where(self._masked[0] == self.tokenizer.mask_id, logits.argmax(-1), self._masked[0])
        texts = {"masked": self._masked[0], "text": filled, "truth": self._row[0]}
        return {name: self._text(ids.tolist()) for name, ids in texts.items()}
