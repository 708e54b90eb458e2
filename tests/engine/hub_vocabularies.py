"""Small tokenizer.json files of every kind, trained here by the package `tokenizers`: no downloads."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

TEXT = [
    'The quick brown fox jumped over the lazy dog\'s back. She said: "Hello, world!" and sang 12 songs.',
    "Héllo wörld, naïve café. Once upon a time there was a little cat called Tom who liked to sing and jump.",
    "猫が座っている。 Однажды жила кошка. hello hello world; unwanted, running, jumping, singing (and more)!",
    "def f(x):\n    return x ** 2 + 1.5  # fine ½ words",
] * 20
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LLAMA_SPECIAL = ["<unk>", "<s>", "</s>"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def package() -> Any:
    """The package; a test without it is skipped with the reason."""
    return pytest.importorskip("tokenizers", reason="tokenizers is missing: see requirements-models.txt")


def _template(before: list[tuple[str, int]], after: list[tuple[str, int]]) -> Any:
    single = " ".join([*(name for name, _ in before), "$A", *(name for name, _ in after)])
    return package().processors.TemplateProcessing(single=single, special_tokens=[*before, *after])


def wordpiece(*, lowercase: bool = True) -> Any:
    """BERT's: cased or not."""
    tk = package()
    made = tk.Tokenizer(tk.models.WordPiece(unk_token="[UNK]"))
    made.normalizer = tk.normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    made.decoder = tk.decoders.WordPiece()
    made.train_from_iterator(
        TEXT, tk.trainers.WordPieceTrainer(vocab_size=260, special_tokens=BERT_SPECIAL, show_progress=False)
    )
    made.post_processor = _template([("[CLS]", 2)], [("[SEP]", 3)])
    return made


def unigram() -> Any:
    """As T5 or XLNet have it: changed to NFKC, blanks as ▁, words of the highest probability."""
    tk = package()
    made = tk.Tokenizer(tk.models.Unigram())
    made.normalizer = tk.normalizers.NFKC()
    made.pre_tokenizer = tk.pre_tokenizers.Metaspace()
    made.decoder = tk.decoders.Metaspace()
    made.train_from_iterator(
        TEXT,
        tk.trainers.UnigramTrainer(
            vocab_size=200, unk_token="<unk>", special_tokens=LLAMA_SPECIAL, show_progress=False
        ),
    )
    return made


def sentencepiece(*, metaspace: bool = False) -> Any:
    """As Llama 2 and Mistral have it: a blank before the text, BPE over characters, bytes for the rest.

    Older files put the blank there before the text is cut, newer ones (`metaspace`) when it is.
    """
    tk = package()
    trained = tk.Tokenizer(tk.models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = tk.pre_tokenizers.Metaspace()
    trained.train_from_iterator(
        TEXT, tk.trainers.BpeTrainer(vocab_size=200, special_tokens=LLAMA_SPECIAL, show_progress=False)
    )
    learned = json.loads(trained.to_str())["model"]
    pieces = sorted(learned["vocab"], key=learned["vocab"].get)[len(LLAMA_SPECIAL) :]
    names = [*LLAMA_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    vocab = {piece: i for i, piece in enumerate(names)}
    merges = [tuple(pair) for pair in learned["merges"]]
    made = tk.Tokenizer(
        tk.models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    made.add_special_tokens(LLAMA_SPECIAL)
    n = tk.normalizers
    if metaspace:
        made.pre_tokenizer = tk.pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        made.normalizer = n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
    d = tk.decoders
    made.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    made.post_processor = _template([("<s>", 1)], [])
    return made


def byte_level(
    *,
    normalizer: Callable[[Any], Any] = lambda tk: None,
    prefix: bool = False,
    special: list[str] | None = None,
) -> Any:
    """GPT-2's kind, with rules of its own; with `special` RoBERTa's."""
    tk = package()
    made = tk.Tokenizer(tk.models.BPE())
    if (change := normalizer(tk)) is not None:
        made.normalizer = change
    made.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.decoder = tk.decoders.ByteLevel()
    special = special or ["<|endoftext|>"]
    made.train_from_iterator(
        TEXT,
        tk.trainers.BpeTrainer(
            vocab_size=380,
            special_tokens=special,
            initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if special == ROBERTA_SPECIAL:
        made.post_processor = tk.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made


KINDS: dict[str, Callable[[], Any]] = {
    "wordpiece": wordpiece,
    "wordpiece cased": lambda: wordpiece(lowercase=False),
    "unigram": unigram,
    "sentencepiece": sentencepiece,
    "metaspace": lambda: sentencepiece(metaspace=True),
    "lowercase": lambda: byte_level(normalizer=lambda tk: tk.normalizers.Lowercase()),
    "nfkc": lambda: byte_level(normalizer=lambda tk: tk.normalizers.NFKC()),
    "prefix": lambda: byte_level(prefix=True),
}  # all beyond tiktoken


@cache
def tokenizer_json(kind: str) -> str:
    """The tokenizer.json of one of `KINDS`, or "gpt2", "roberta"."""
    own = {"gpt2": byte_level, "roberta": lambda: byte_level(special=ROBERTA_SPECIAL)}
    text: str = (KINDS | own)[kind]().to_str()
    return text
