"""A tokenizer.json of a byte-level BPE, read into what tiktoken runs, if that gives the same ids everywhere.

tiktoken merges any two neighbours whose bytes are a token, the lowest rank first. A tokenizer.json lists
which pairs may merge, and in what order. Both agree if, for every token, the pair that tiktoken is left with
just before that token is one that the list allows, and no token's pairs stand between another's.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from engine.refused import broken_entry
from engine.vocabularies import split_pattern
from wording import words

say = words("engine.hub")

MOST_ID = 1_000_000
MOST_WORK = 50_000_000  # sum of squared token lengths: what checking costs
# Ways to cut a text that are the same for tiktoken's regular expressions; {n} is how digits are grouped.
_CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|{n}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_KNOWN_CUTS = {_CUT.replace("{n}", digits) for digits in (r"\p{N}{1,3}", r"\p{N}")}  # Llama 3, Qwen 2
# Digits one by one, then GPT-2's rule in what is left: blanks before a digit end where the piece ends.
_DIGITS_FIRST = r"'(?:[sdmt]|ll|ve|re)|\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+"


class BeyondTiktoken(ValueError):
    """A tokenizer.json that is in order, but tiktoken would not give the same ids everywhere."""


@dataclass(frozen=True)
class Added:
    """A token that is cut out of a text before anything else.

    Attributes:
        special: a control token, which a plain text never means.
        normalized: looked for after normalising.
        strips: white space before or behind it belongs to it.
    """

    id: int
    text: str
    special: bool
    normalized: bool
    strips: bool


@dataclass(frozen=True, eq=False)
class Bpe:
    """What a tokenizer.json says.

    Attributes:
        ranks: tokens in the order in which they merge, the single bytes first; 0, 1, 2 …
        ids: rank -> id; -1 for a byte that has none.
        pattern: how a text is cut.
        nfc: whether a text is put into the form NFC first.
        added: tokens that are cut out first.
        others: id -> bytes of tokens that no text gives.
    """

    ranks: dict[bytes, int]
    ids: list[int]
    pattern: str
    nfc: bool
    added: tuple[Added, ...]
    others: dict[int, bytes]

    @property
    def missing(self) -> bytes:
        """The bytes that have no token."""
        return bytes(b for b in range(256) if self.ids[self.ranks[bytes([b])]] < 0)


def read_bpe(content: Mapping[str, Any]) -> Bpe:
    """Read a tokenizer.json.

    Raises:
        BeyondTiktoken: one sentence, if it is no byte-level BPE, or one whose ids tiktoken can't give.
        ValueError: one sentence, if it is damaged.
    """
    try:
        return _read(content)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(say("tokenizer_damaged", why=broken_entry(error))) from error


def _read(content: Mapping[str, Any]) -> Bpe:
    model = content["model"]
    kind = model.get("type", "BPE")
    if kind != "BPE" or model.get("byte_fallback"):
        raise BeyondTiktoken(say("tokenizer_kind", kind=str(kind)[:80]))
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            refusal = ValueError if name == "dropout" else BeyondTiktoken
            raise refusal(say("tokenizer_setting", name=name, value=repr(model[name])[:80]))
    pattern, nfc = _pattern(content.get("pre_tokenizer")), _nfc(content.get("normalizer"))
    vocab = _vocabulary(model["vocab"])
    added = _all_added(content.get("added_tokens") or (), model["vocab"])
    ranks, pairs = _ranks(vocab, [_pair(merge) for merge in model["merges"]])
    _check_merges(ranks, pairs)
    ids = [vocab.get(data, -1) for data in ranks]
    known = {*ids, *(one.id for one in added)}
    others = {i: data for data, i in vocab.items() if i not in known}
    if model.get("ignore_merges") and others:
        shown = next(iter(others.values())).decode("utf-8", "backslashreplace")
        raise BeyondTiktoken(say("tokenizer_no_merge", token=shown[:80]))
    return Bpe(ranks, ids, pattern, nfc, added, others)


def _alphabet() -> dict[str, int]:
    """How GPT-2 writes bytes: a visible one as itself, the n-th other one as chr(256 + n)."""
    visible = [b for b in range(256) if chr(b).isprintable() and chr(b) != " "]
    hidden = [b for b in range(256) if b not in set(visible)]
    return {chr(b): b for b in visible} | {chr(256 + n): b for n, b in enumerate(hidden)}


_BYTE_OF = _alphabet()


def spelled_bytes(token: str) -> bytes:
    """The bytes of a token; of one that is not written in the alphabet, which no text gives, its UTF-8."""
    with suppress(KeyError):
        return bytes([_BYTE_OF[c] for c in token])
    return b"\xff" + token.encode("utf-8", "surrogatepass")  # and no other token's


def _vocabulary(vocab: Mapping[str, int]) -> dict[bytes, int]:
    found = {}
    for token, i in vocab.items():
        if type(i) is not int or not 0 <= i <= MOST_ID:
            raise ValueError(say("tokenizer_id", token=token[:80], id=repr(i)[:80], most=MOST_ID))
        found[spelled_bytes(token)] = i
    if len(set(found.values())) != len(vocab):
        raise ValueError(say("tokenizer_repeats"))
    return found


def _pair(merge: str | list[str]) -> tuple[bytes, bytes]:
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if len(parts) != 2:
        raise TypeError(merge)
    return spelled_bytes(parts[0]), spelled_bytes(parts[1])


def _ranks(
    vocab: Mapping[bytes, int], merges: list[tuple[bytes, bytes]]
) -> tuple[dict[bytes, int], dict[bytes, set[tuple[bytes, bytes]]]]:
    """Ranks in the order of the merges, and the pairs that make each token."""
    ranks = {bytes([b]): b for b in range(256)}
    pairs: dict[bytes, set[tuple[bytes, bytes]]] = {}
    for data, group in groupby(merges, key=b"".join):
        allowed = set(group)
        strangers = [part for pair in allowed for part in (*pair, data) if part not in vocab]
        if data in ranks or strangers:
            shown = (strangers or [data])[0].decode("utf-8", "backslashreplace")
            raise BeyondTiktoken(say("tokenizer_merges", token=shown[:80]))
        ranks[data] = len(ranks)
        pairs[data] = allowed
    return ranks, pairs


def _check_merges(ranks: Mapping[bytes, int], pairs: Mapping[bytes, set[tuple[bytes, bytes]]]) -> None:
    if sum(len(data) ** 2 for data in pairs) > MOST_WORK:
        raise BeyondTiktoken(say("tokenizer_too_long"))
    for data, allowed in pairs.items():
        if _before(ranks, data) not in allowed:
            raise BeyondTiktoken(say("tokenizer_merges", token=data.decode("utf-8", "backslashreplace")[:80]))


def _before(ranks: Mapping[bytes, int], data: bytes) -> tuple[bytes, ...]:
    """The parts of a token once everything of a lower rank has merged."""
    parts, most = [data[i : i + 1] for i in range(len(data))], ranks[data]
    both = [ranks.get(a + b, most) for a, b in zip(parts, parts[1:], strict=False)]  # of neighbours
    while len(parts) > 2:
        lowest = min(both)
        if lowest >= most:
            break
        at = both.index(lowest)
        parts[at] += parts.pop(at + 1)
        del both[at]
        if at > 0:
            both[at - 1] = ranks.get(parts[at - 1] + parts[at], most)
        if at < len(both):
            both[at] = ranks.get(parts[at] + parts[at + 1], most)
    return tuple(parts)


def _pattern(cut: Mapping[str, Any] | None) -> str:
    """The regular expression of a pre-tokenizer.

    Raises:
        BeyondTiktoken: if it is none of those that are known to cut alike in tiktoken.
    """
    steps = [cut] if cut and cut["type"] != "Sequence" else list((cut or {}).get("pretokenizers", ()))
    kinds = [step["type"] for step in steps]
    last = steps[-1] if kinds and kinds[-1] == "ByteLevel" else None
    if last is not None and not last.get("add_prefix_space", True):
        if kinds == ["ByteLevel"] and last.get("use_regex", True):
            return split_pattern("gpt2")
        if kinds == ["Digits", "ByteLevel"] and last.get("use_regex", True) and steps[0]["individual_digits"]:
            return _DIGITS_FIRST
        first = steps[0]
        if kinds == ["Split", "ByteLevel"] and not last.get("use_regex", True):
            pattern = first["pattern"].get("Regex", "")
            if first["behavior"] == "Isolated" and not first.get("invert") and pattern in _KNOWN_CUTS:
                return str(pattern)
    raise BeyondTiktoken(say("tokenizer_cut", kinds=", ".join(map(str, kinds)) or "null"))


def _nfc(normalizer: Mapping[str, Any] | None) -> bool:
    steps = [normalizer] if normalizer else []
    if normalizer and normalizer["type"] == "Sequence":
        steps = list(normalizer["normalizers"])
    kinds = [str(step["type"]) for step in steps]
    if any(kind != "NFC" for kind in kinds):
        raise BeyondTiktoken(say("tokenizer_normalizer", kinds=", ".join(kinds)))
    return bool(steps)


def _all_added(listed: Sequence[Mapping[str, Any]], vocab: Mapping[str, int]) -> tuple[Added, ...]:
    """The added tokens; their ids must be those that they get when they are added one after the other."""
    found: dict[str, Added] = {}
    for one in map(_added, listed):
        highest = max((other.id for other in found.values()), default=-1)
        if one.id != vocab.get(one.text, max(highest + 1, len(vocab))) or one.text in found:
            raise ValueError(say("tokenizer_added_id", token=one.text[:80], id=one.id))
        found[one.text] = one
    return tuple(found.values())


def _added(one: Mapping[str, Any]) -> Added:
    text, i = one["content"], one["id"]
    if type(i) is not int or not 0 <= i <= MOST_ID:
        raise ValueError(say("tokenizer_id", token=str(text)[:80], id=repr(i)[:80], most=MOST_ID))
    special, strips = bool(one.get("special")), bool(one.get("lstrip") or one.get("rstrip"))
    if not text or one.get("single_word") or (strips and not special):
        raise BeyondTiktoken(say("tokenizer_added", token=str(text)[:80]))
    return Added(i, str(text), special, bool(one.get("normalized", not special)), strips)
