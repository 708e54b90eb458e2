"""Exercises on tokens: bytes, merges, ids, and the vectors that they become."""

from collections import Counter
from random import Random

import numpy as np

from engine.exercise import Made, Option, choice, number
from engine.merges import replay
from engine.tokenizers import Tokenizer, byte_tokenizer, train_bpe

WORDS = (
    "niño", "café", "naïve", "über", "señal", "árbol", "crème", "Zoë", "jalapeño", "corazón", "façade",
    "smörgås", "œuvre", "Ångström", "déjà", "canción", "año", "tres días", "mañana", "piñata", "fiancée",
)  # fmt: skip
LETTERS, LENGTHS = "abcd", (11, 15)


def utf8_bytes(rng: Random) -> Made:
    """How many bytes a word with an accent has."""
    word = rng.choice(WORDS)
    slips = {"characters": len(word), "two_each": 2 * len(word)}
    return number(len(byte_tokenizer().encode(word)), "bytes", whole=True, slips=slips, word=word)


def _text(rng: Random) -> tuple[str, list[tuple[str, int]]]:
    """A text of letters in which one pair is more frequent than any other, and its pairs by count.

    No letter stands beside itself: how often a pair of equal ones can be joined depends on where one begins.
    """
    while True:
        text = rng.choice(LETTERS)
        for _ in range(rng.randint(*LENGTHS) - 1):
            text += rng.choice([letter for letter in LETTERS if letter != text[-1]])
        pairs = Counter(a + b for a, b in zip(text, text[1:], strict=False)).most_common()
        if len(pairs) > 4 and pairs[0][1] > max(2, pairs[1][1]):
            return text, pairs


def _first_merge(text: str) -> Tokenizer:
    return train_bpe(text, 257, pattern=r"[\s\S]+")


def first_merge(rng: Random) -> Made:
    """Which pair BPE joins first."""
    text, pairs = _text(rng)
    joined = _first_merge(text).token_bytes(256).decode()
    rarer = [Option("rarer", pair) for pair, _ in pairs if pair != joined]
    wrong = [*rarer[:2], rarer[-1]]
    values = {"text": text, "pair": joined, "count": pairs[0][1], "next": pairs[1][1]}
    return Made(choice(rng, [Option("joined", joined)], wrong), values)


def merge_saves(rng: Random) -> Made:
    """How many tokens are left after the first merge."""
    text, _ = _text(rng)
    tokenizer = _first_merge(text)
    history = replay(tokenizer, text)
    n, count = len(text), int(history.counts[0])
    slips = {"one_merge": n - 1, "both_gone": n - 2 * count, "bytes_before": n}
    pair = tokenizer.token_bytes(256).decode()
    left = int(history.lengths[1])
    return number(left, "tokens", whole=True, slips=slips, text=text, pair=pair, size=n, count=count)


def embedding_parameters(rng: Random) -> Made:
    """Numbers in an embedding matrix."""
    v, d = rng.choice((500, 1000, 1024, 8000, 32_000, 50_257)), rng.choice((32, 64, 128, 256, 512, 768))
    n = np.empty((v, d), dtype=bool).size
    return number(n, "parameters", whole=True, slips={"sum": v + d, "square": v * v}, V=v, d=d)


def one_hot_row(rng: Random) -> Made:
    """One number of a one-hot row times an embedding matrix."""
    rows = [[rng.choice([-1, 1]) * rng.randint(1, 9) / 10 for _ in range(3)] for _ in range(4)]
    token = rng.choice((1, 2))
    column = rng.choice([j for j in range(3) if j != token])
    value = (np.eye(4)[token] @ np.array(rows))[column]
    slips = {
        "transposed": rows[column][token],
        "from_one": rows[token - 1][column],
        "column_sum": sum(row[column] for row in rows),
    }
    one_hot = np.eye(4, dtype=int)[token].tolist()
    matrix = "\n".join("[" + ", ".join(f"{x:4}" for x in row) + "]" for row in rows)
    return number(value, slips=slips, rows=rows, matrix=matrix, one_hot=one_hot, token=token, column=column)
