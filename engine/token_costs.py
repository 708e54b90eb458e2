"""How many tokens a text costs: in one vocabulary or another, in one language or another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import ArrayLike, NDArray

from engine.tokenizers import Tokenizer
from engine.tokens import repair_text

# Scripts that put no space between words. Korean does.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_LETTER = regex.compile(r"\p{L}")
_UNSPACED_LETTER = regex.compile(rf"(?V1)[\p{{L}}&&[{_UNSPACED}]]")
_PART = r"[\p{L}\p{M}\p{N}\u200c\u200d]+"
_WORD = regex.compile(rf"{_PART}(?:['’]{_PART})*")


def count_words(text: str) -> int | None:
    """Runs of letters and digits; an apostrophe inside belongs to the word.

    None if half of the letters or more are of scripts that put no space between words: what a word is there
    takes a dictionary, not a rule.

    >>> count_words("Don't panic: it’s 42!"), count_words("早上，孩子们去上学。"), count_words("…")
    (4, None, 0)
    """
    letters = len(_LETTER.findall(text))
    if letters and 2 * len(_UNSPACED_LETTER.findall(text)) >= letters:
        return None
    return sum(1 for _ in _WORD.finditer(text))


@dataclass(frozen=True)
class Size:
    """How long a text is, in units that no vocabulary has a say in; `words` as in `count_words`."""

    characters: int
    bytes: int
    words: int | None


def measure(text: str) -> Size:
    """The size of a text."""
    text = repair_text(text)[0]
    return Size(len(text), len(text.encode("utf-8")), count_words(text))


@dataclass(frozen=True)
class Cost:
    """What a text costs in one vocabulary.

    Attributes:
        name: of the vocabulary.
        vocab_size: how many different tokens it has.
        n_tokens: of the text.
        size: of the text.
    """

    name: str
    vocab_size: int
    n_tokens: int
    size: Size

    @property
    def tokens_per_word(self) -> float | None:
        """None where there are no words to count."""
        return self.n_tokens / self.size.words if self.size.words else None

    @property
    def characters_per_token(self) -> float:
        """How far one token reaches."""
        return self.size.characters / self.n_tokens

    @property
    def bytes_per_token(self) -> float:
        """How much of the file one token stands for."""
        return self.size.bytes / self.n_tokens


def count_tokens(tokenizers: Sequence[Tokenizer], texts: Sequence[str]) -> NDArray[np.int64]:
    """(texts, tokenizers) how many tokens each text has in each vocabulary.

    Raises:
        ValueError: from a character vocabulary that lacks a character of a text.
    """
    counts = [[len(tokenizer.encode(text)) for tokenizer in tokenizers] for text in texts]
    return np.array(counts, dtype=np.int64).reshape(len(texts), len(tokenizers))


def relative(counts: ArrayLike, reference: int = 0) -> NDArray[np.float64]:
    """Each row of counts divided by the row `reference`.

    >>> relative([[10, 20], [15, 20]]).tolist()
    [[1.0, 1.0], [1.5, 1.0]]
    """
    numbers = np.asarray(counts, dtype=np.float64)
    return numbers / numbers[reference]
