"""Files of a vocabulary that anybody may have written: .tiktoken, and those that a person kept."""

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as some

from engine import own_vocabularies
from engine.owners import owner_hash
from engine.tokenizers import custom_vocabulary, tokenizer_from_json
from engine.vocabularies import recognise
from trials import inputs_made as made
from trials.inputs_changes import Change, Cut, as_json, changed, changes, cut_up, cuts
from trials.inputs_kind import Broken, Kind

SPECS = ("bpe", "characters", "bytes", "hub", "published")


class Bytes(NamedTuple):
    """Changes of a .tiktoken file's bytes."""

    cuts: tuple[Cut, ...]


class Lines(NamedTuple):
    """Changes of its lines: (line, what it becomes)."""

    lines: tuple[tuple[int, bytes], ...]


class Spec(NamedTuple):
    """Changes of a tokenizer's description in a file that a person kept."""

    kind: str
    changes: tuple[Change, ...]
    kept: bool = False


def _line(data: bytes, number: object) -> bytes:
    return base64.b64encode(data) + f" {number}".encode()


line = some.one_of(
    some.builds(
        _line,
        some.binary(max_size=6),
        some.one_of(some.integers(-3, 500), some.integers(), some.text(max_size=4)),
    ),
    some.binary(max_size=20),
    some.sampled_from(
        (b"", b"!!!! 3", b"YQ 97", b"YQ== 97", b"YQ==", b" ", b"YQ== 1 2", b"YQ== 1_0", b"YQ== 1e3")
    ),
)
cases = some.one_of(
    some.builds(Bytes, cuts.map(tuple)),
    some.builds(
        Lines, some.lists(some.tuples(some.integers(0, 600), line), min_size=1, max_size=4).map(tuple)
    ),
    some.builds(Spec, some.sampled_from(SPECS), changes.map(tuple), some.booleans()),
)
KNOWN: tuple[Any, ...] = (
    Bytes(()),
    Bytes((Cut("cut", 0),)),
    Bytes((Cut("end", 0, b"\n" * 16),)),
    Lines(((500, _line(b"qq", 10**6)),)),
    Lines(((500, _line(b"qq", 10**12)),)),
    Lines(((500, _line(b"q" * 5_000_000, 5000)),)),
    Lines(((3, _line(b"\x03", 97)),)),
    *(Spec(kind, ()) for kind in SPECS),
    Spec("bpe", (), True),
)


def attempt(case: Any, home: Path) -> None:
    """Read it as the page Tokens does."""
    if isinstance(case, Spec):
        _spec(case, home)
        return
    lines = made.ranks_lines()
    if isinstance(case, Bytes):
        content = cut_up(b"\n".join(lines), case.cuts)
    else:
        for at, new in case.lines:
            lines[at % len(lines)] = new
        content = b"\n".join(lines)
    recognise(content)
    tokenizer = custom_vocabulary(content, "x")
    for text in ("the cat \x00", "é😀", made.TEXT[:200]):
        if tokenizer.decode(tokenizer.encode(text)) != text:
            raise Broken("another text comes back")


def _spec(case: Spec, home: Path) -> None:
    good = {
        "bpe": made.bpe().to_json(),
        "characters": {"kind": "characters", "alphabet": "abc the"},
        "bytes": {"kind": "bytes"},
        "published": {"kind": "published", "name": "gpt2"},
        "hub": {
            "kind": "hub",
            "name": "x",
            "rows": 300,
            "end": 0,
            "content": json.loads(made.llama_files()["tokenizer.json"]),
        },
    }
    spec = changed(good[case.kind], case.changes)
    if not case.kept:
        tokenizer = tokenizer_from_json(spec)
        ids = tokenizer.encode("the")
        tokenizer.tokens("the")
        tokenizer.decode(ids)
        return
    folder = home / "vocab" / "own" / owner_hash(made.OWNER)[:32]
    folder.mkdir(parents=True)
    kept = changed({"format": 1, "learned_from": "x", "created": 1.0, "tokenizer": good["bpe"]}, case.changes)
    (folder / f"{made.bpe().hash}.json").write_bytes(as_json(kept))
    found, problems = own_vocabularies.listed(made.OWNER, home=home)
    if len(found) + len(problems) != 1:
        raise Broken("a kept vocabulary is neither listed nor told of")
    own_vocabularies.load(made.OWNER, made.bpe().hash, home=home).encode("the")


KIND = Kind(
    "vocabularies", cases, attempt, known=KNOWN, ready=lambda: (made.ranks_lines(), made.llama_files())
)
