"""How well a model writes a language whose true distribution nobody knows: held-out loss, and its texts."""

import re
from dataclasses import asdict, dataclass

import torch

from engine.baselines import NGrams, baseline_losses
from engine.batches import clm_rows, windows
from engine.corpus import Corpus
from engine.evaluation import fixed_rows, total_loss
from engine.metrics import bits_per_byte
from engine.model import Transformer
from engine.run_measures import token_lengths
from engine.sampling import generate
from engine.tokenizers import Tokenizer

TEMPERATURE = 0.7
COPIED_WORDS = 10  # so many words in a row that stand in the training text are copied
_WORD = re.compile(r"[A-Za-z']+")


@dataclass(frozen=True)
class TextReport:
    """Numbers over held-out text, and over samples.

    Attributes:
        tokens: scored tokens.
        loss: nats a token.
        trigram: what counts of the training text's three-token runs score on the same tokens.
        bits_per_byte: the loss per byte of text, comparable across vocabularies.
        samples: texts written, at `TEMPERATURE`, from the start of a line.
        known_words: of their words, the share that stands in the training text (0 to 1).
        copied: of their runs of `COPIED_WORDS` words, the share that stands there word for word.
    """

    tokens: int
    loss: float
    trigram: float
    bits_per_byte: float
    samples: int
    known_words: float
    copied: float

    def to_json(self) -> dict[str, float]:
        """As plain values."""
        return asdict(self)


def text_report(
    model: Transformer, tokenizer: Tokenizer, corpus: Corpus, *, n_samples: int, seed: int = 777
) -> TextReport:
    """Score a causal model on the held-out stories, every token in a row once, and read what it writes."""
    ids = torch.tensor(tokenizer.encode(corpus.val_text or ""))
    length = model.config.context_length + 1
    batch = clm_rows(windows(ids, fixed_rows(len(ids), n_rows=len(ids), length=length), length))
    n = batch.targets.numel()
    total = total_loss(model, batch, rows_at_once=8)
    sizes = torch.tensor(list(token_lengths(tokenizer, model.config.vocab_size)))
    counts = NGrams(tokenizer.encode(corpus.text), model.config.vocab_size)
    texts = [sample(model, tokenizer, seed + k) for k in range(n_samples)]
    known, runs = set(_words(corpus.text)), _runs(_words(corpus.text))
    written = [_words(text) for text in texts]
    words = [word for text in written for word in text]
    own = [run for text in written for run in _runs(text)]
    return TextReport(
        tokens=n,
        loss=total / n,
        trigram=baseline_losses(counts, batch, "clm")["trigram"],
        bits_per_byte=bits_per_byte(total, int(sizes[batch.targets].sum())),
        samples=n_samples,
        known_words=sum(word in known for word in words) / max(1, len(words)),
        copied=sum(run in runs for run in own) / max(1, len(own)),
    )


def sample(model: Transformer, tokenizer: Tokenizer, seed: int, prompt: str = "") -> str:
    """One text of the model, to the end of its line."""
    start = tokenizer.encode(prompt) if prompt else tokenizer.line_end_ids[:1]
    ids = [
        step.id
        for step in generate(
            model,
            start,
            n_tokens=model.config.context_length - len(start),
            temperature=TEMPERATURE,
            seed=seed,
            stop_ids=tokenizer.line_end_ids,
        )
    ]
    return prompt + tokenizer.decode(ids).rstrip("\n")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + COPIED_WORDS]) for i in range(len(words) - COPIED_WORDS + 1)}
