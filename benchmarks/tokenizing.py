"""P10: learning a byte-level BPE from a text, and encoding it, beside the `tokenizers` package.

Both learn 512 ids from the whole text with the same pattern, and both encode the whole text with the same
merges: the ids must be equal, or the row fails. `tokenizers` encodes in both of its ways, `encode` (which
also says where each token stands) and `encode_batch_fast` (which does not); the ratio is to the faster. What
it learns is compared too: of pairs that are equally frequent it may join another one first, because it
numbers bytes in another order. Every core is free for both; times are by the clock and of the processor.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.rows import Goal, Measure, Options, Row, Spread
from engine.corpus import stories
from engine.merges import N_BYTES, recover_pairs
from engine.tokenizers import Tokenizer, train_bpe

VOCAB_SIZE = 512
LEAST_ALIKE = 0.95  # share of merges that both must learn, in whatever order
Times = dict[str, list[dict[str, float]]]


def letters() -> dict[int, str]:
    """The letter that stands for each byte in `tokenizers`, as in GPT-2 (Radford et al. 2019)."""
    shown = [*range(ord("!"), 127), *range(ord("¡"), 173), *range(ord("®"), 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


def peer(pattern: str, model: Any) -> Any:
    """A tokenizer of the `tokenizers` package that splits by a pattern, with no more around it."""
    from tokenizers import Regex
    from tokenizers import Tokenizer as Peer
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    made = Peer(model)
    to_letters = ByteLevel(add_prefix_space=False, use_regex=False)
    made.pre_tokenizer = Sequence([Split(Regex(pattern), "isolated"), to_letters])
    return made


def learn(text: str, pattern: str, vocab_size: int) -> list[bytes]:
    """The tokens that `tokenizers` learns, in order, after the 256 bytes."""
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.trainers import BpeTrainer

    made = peer(pattern, BPE())
    every_byte = ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=vocab_size, initial_alphabet=every_byte, show_progress=False)
    made.train_from_iterator([text], trainer)
    byte_of = {letter: byte for byte, letter in letters().items()}
    merges = json.loads(made.to_str())["model"]["merges"]
    return [bytes(byte_of[letter] for letter in left + right) for left, right in merges]


def same_merges(ours: Tokenizer) -> Any:
    """A tokenizer of the `tokenizers` package with our merges and ids."""
    from tokenizers.models import BPE

    letter = letters()
    spelled = ["".join(letter[b] for b in ours.token_bytes(i)) for i in range(ours.vocab_size)]
    pairs = recover_pairs([ours.token_bytes(i) for i in range(N_BYTES, ours.vocab_size)])
    vocab = {word: i for i, word in enumerate(spelled)}
    merges = [(spelled[left], spelled[right]) for left, right in pairs]
    return peer(ours.to_json()["pattern"], BPE(vocab=vocab, merges=merges))


def timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds by the clock and of the processor, of all threads together; and what came of it."""
    clock, processor = time.perf_counter(), time.process_time()
    found = work()
    return {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}, found


def in_turn(works: dict[str, Callable[[], Any]], rounds: int) -> tuple[Times, dict[str, Any]]:
    """Times of each piece of work in every round, after one uncounted try; and what came of it."""
    found = {name: work() for name, work in works.items()}
    times: Times = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(timed(work)[0])
    return times, found


def check(found: dict[str, Any], ours: Tokenizer) -> int:
    """How many merges both have learned.

    Raises:
        ValueError: if the ids differ, or so much of what was learned that the times can't be compared.
    """
    if not (found["encode"] == found["encode, peer"] == found["encode fast, peer"]):
        raise ValueError("The two programs gave different ids for the same text and the same merges.")
    own = [ours.token_bytes(i) for i in range(N_BYTES, ours.vocab_size)]
    alike = len(set(own) & set(found["learn, peer"]))
    if alike < LEAST_ALIKE * len(own):
        raise ValueError(f"Of {len(own)} merges the two programs learned only {alike} alike.")
    return alike


def corpus(options: Options) -> str:
    """The text: the one given, or 1.1 MB of stories."""
    if options.toy:
        return stories(60, seed=1).text
    text: str = options.text.read_text("utf-8") if options.text else stories(6000, seed=1).text
    return text[:1_115_394]  # as long as tinyshakespeare


def ratio(times: Times, above: tuple[str, ...], below: str, kind: str) -> Spread:
    """How many times as fast as the fastest of the peer's ways, round by round."""
    fastest = [min(row[kind] for row in rows) for rows in zip(*(times[name] for name in above), strict=True)]
    return Spread.of([peer / own[kind] for peer, own in zip(fastest, times[below], strict=True)])


def measure(options: Options) -> Row:
    """The row."""
    text, vocab_size = corpus(options), 280 if options.toy else VOCAB_SIZE
    ours = train_bpe(text, vocab_size)
    theirs, pattern = same_merges(ours), ours.to_json()["pattern"]
    works: dict[str, Callable[[], Any]] = {
        "learn": lambda: train_bpe(text, vocab_size),
        "learn, peer": lambda: learn(text, pattern, vocab_size),
        "encode": lambda: ours.encode(text),
        "encode, peer": lambda: theirs.encode(text).ids,
        "encode fast, peer": lambda: theirs.encode_batch_fast([text])[0].ids,
    }
    times, found = in_turn(works, 1 if options.toy else options.rounds)
    alike = check(found, ours)

    def seen(name: str) -> Spread:
        return Spread.of([1000 * each["clock"] for each in times[name]])

    figures = {
        "learning: Loupe": seen("learn"),
        "tokenizers": seen("learn, peer"),
        "encoding: Loupe": seen("encode"),
        "tokenizers, encode_batch_fast": seen("encode fast, peer"),
        "tokenizers, encode": seen("encode, peer"),
    }
    ways = ("encode, peer", "encode fast, peer")
    goals = []
    for kind, told in (("clock", ""), ("processor", ", by processor time")):
        goals.append(Goal(f"x tokenizers, learning{told}", ratio(times, ("learn, peer",), "learn", kind), 3))
        goals.append(Goal(f"x tokenizers, encoding{told}", ratio(times, ways, "encode", kind), 5))
    n = ours.vocab_size - N_BYTES
    name = options.text.name if options.text and not options.toy else "stories"
    notes = (
        f"{len(text.encode()) / 1e6:.2f} MB of {name}; ids are equal. Of {n} merges both learned {alike}, "
        "equally frequent ones perhaps in another order. Of the peer's two ways to encode the faster counts."
    )
    what = f"BPE of {ours.vocab_size} ids: learned from a text, and the text encoded"
    return Row("P10", what, "ms", figures, goals, notes, {"seconds": times})


MEASURES: dict[str, Measure] = {"P10": measure}
