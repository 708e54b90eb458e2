"""Texts to learn from: bytes of an upload to text, the built-in texts, and the train/validation split."""

import codecs
import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache

from engine.tokenizers import Tokenizer
from engine.tokens import repair_text
from wording import words

say = words("engine.corpus")

MAX_UPLOAD_BYTES = 5_000_000
BUILT_IN = ("stories", "python-docs")  # kinds that everybody has; all others are somebody's own
PAIRS = ("answers", "preferences")  # kinds that are pairs, not a text
_BOMS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


NAMES = {"stories": "Stories", "python-docs": "Python docs", "pasted": "Your text"}  # as runs keep them


def encodings() -> dict[str, str]:
    """What people's text files are in when they are not UTF-8, and what it is called."""
    return say.table("encoding")


def title(name: str, kind: str) -> str:
    """What a corpus is called on the screen, in the language spoken now; `name` as its run keeps it."""
    return say(f"name.{kind}") if NAMES.get(kind) == name else name


@dataclass(frozen=True)
class Corpus:
    """A text to train on.

    Attributes:
        name: for people; see `title`.
        kind: "stories", "python-docs", "pasted" or "uploaded"; "answers" and "preferences" are JSON lines,
            see `engine.pair_files`.
        text: the training part and, if `val_text` is None, the validation part too.
        val_text: a validation text of its own (the stories have one: fresh stories from another seed).
    """

    name: str
    kind: str
    text: str
    val_text: str | None = None

    @property
    def title(self) -> str:
        """Its name in the language spoken now."""
        return title(self.name, self.kind)

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of both texts."""
        return hashlib.sha256(f"{self.text}\x00{self.val_text}".encode()).hexdigest()


@dataclass(frozen=True)
class Statistics:
    """Size of a text. `words` are runs without white space, `kinds` the different characters."""

    characters: int
    bytes: int
    words: int
    lines: int
    kinds: int


def statistics(text: str) -> Statistics:
    """Count a text."""
    return Statistics(
        len(text),
        len(text.encode("utf-8")),
        len(text.split()),
        text.count("\n") + bool(text and text[-1] != "\n"),
        len(set(text)),
    )


class UnknownEncoding(ValueError):
    """Text, but not UTF-8: somebody must choose an encoding. `offset` is the first byte that does not fit."""

    def __init__(self, offset: int, byte: int) -> None:
        super().__init__(say("file_not_utf_8", offset=offset, byte=byte))
        self.offset = offset


def decode_upload(data: bytes, encoding: str | None = None) -> str:
    r"""Text of an uploaded file: UTF-8, or UTF-16 with a byte-order mark, or the encoding that was chosen.

    Line ends are kept as they are; a byte-order mark is not part of the text.

    Raises:
        UnknownEncoding: not UTF-8 and no encoding chosen.
        ValueError: too large, binary, or not valid in the chosen encoding.

    >>> decode_upload(b"\xef\xbb\xbfhi"), decode_upload(b"caf\xe9", "cp1252")
    ('hi', 'café')
    """
    if len(data) > MAX_UPLOAD_BYTES:
        raise ValueError(say("file_has_bytes_most", n=len(data), most=MAX_UPLOAD_BYTES))
    for mark, name in _BOMS:
        if data.startswith(mark):
            encoding = encoding or name
            break
    else:
        if b"\x00" in data and encoding not in ("utf-16-le",):
            raise ValueError(say("file_not_text_holds"))
    try:
        text = data.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        if encoding is None:
            raise UnknownEncoding(error.start, data[error.start]) from error
        raise ValueError(say("file_not_valid_byte", encoding=encoding, offset=error.start)) from error
    if data.startswith(codecs.BOM_UTF8):  # where another encoding was chosen it reads as letters
        text = text.removeprefix(codecs.BOM_UTF8.decode(encoding or "utf-8", "ignore"))
    control = sum(c < " " and c not in "\t\n\r\f\x1b" for c in text)
    if control > len(text) / 100:
        raise ValueError(say("file_not_text_too"))
    return text.removeprefix("\ufeff")


@lru_cache(maxsize=2)
def stories(n_stories: int = 4000, seed: int = 1) -> Corpus:
    """Stories from the grammar, whose true distribution is known; validation stories from another seed."""
    from engine.grammar import story_text  # the rules are only read when stories are wanted

    return Corpus(
        NAMES["stories"],
        "stories",
        story_text(seed, n_stories),
        story_text(seed + 1_000_003, max(100, n_stories // 20)),
    )


@lru_cache(maxsize=1)
def python_docs() -> Corpus:
    """Real English that is on every machine: Python's help texts (`pydoc_data.topics`), half a megabyte."""
    from pydoc_data.topics import topics

    return Corpus(NAMES["python-docs"], "python-docs", "\n".join(topics[name] for name in sorted(topics)))


def own_text(text: str, *, name: str = NAMES["pasted"], kind: str = "pasted") -> Corpus:
    """A pasted or uploaded text."""
    return Corpus(name, kind, repair_text(text)[0])


def split(corpus: Corpus, val_share: float = 0.1) -> tuple[str, str]:
    """Training and validation text. The validation part is the end of the text, so no window sees both.

    Of pairs it is whole lines.

    Raises:
        ValueError: if the share is not in [0, 0.5].
    """
    if corpus.val_text is not None:
        return corpus.text, corpus.val_text
    if not 0 <= val_share <= 0.5:
        raise ValueError(say("validation_share_must_lie", val_share=val_share))
    if corpus.kind in PAIRS:
        lines = [line for line in corpus.text.split("\n") if line.strip()]
        n = len(lines) - round(len(lines) * val_share)
        first, second = ("".join(line + "\n" for line in part) for part in (lines[:n], lines[n:]))
        return first, second
    cut = len(corpus.text) - round(len(corpus.text) * val_share)
    return corpus.text[:cut], corpus.text[cut:]


@dataclass(frozen=True)
class SplitPreview:
    """What a tokenizer makes of a split: tokens and how many full rows of the context fit."""

    train_tokens: int
    val_tokens: int
    train_rows: int
    val_rows: int


def preview(
    corpus: Corpus, tokenizer: Tokenizer, context_length: int, val_share: float = 0.1
) -> SplitPreview:
    """Count before training starts.

    Raises:
        ValueError: if the training part is too short for one row, with the numbers.
    """
    from engine.batches import need_tokens

    train_text, val_text = split(corpus, val_share)
    n_train, n_val = len(tokenizer.encode(train_text)), len(tokenizer.encode(val_text))
    need_tokens(n_train, context_length, "training")
    return SplitPreview(n_train, n_val, (n_train - 1) // context_length, max(0, n_val - 1) // context_length)
