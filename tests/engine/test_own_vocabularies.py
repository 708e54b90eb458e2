"""Kept vocabularies: exact, private, bounded, and safe against damage."""

import base64
import json
import os
from pathlib import Path

import pytest

from engine import own_vocabularies as own
from engine.tokenizers import Tokenizer, byte_tokenizer, custom_vocabulary, train_bpe

ME, YOU = "a" * 32, "b" * 32
TEXT = "the cat sat on the mat, and the rat sat on the cat 😀"


def learned(size: int = 262) -> Tokenizer:
    return train_bpe(TEXT, size)


def files(home: Path) -> list[Path]:
    return sorted((home / "vocab" / "own").rglob("*.json"))


def test_what_is_kept_comes_back_with_the_same_ids(loupe_home: Path) -> None:
    tokenizer = learned()
    kept = own.save(ME, tokenizer, "*My* text")
    assert (kept.name, kept.learned_from, kept.hash) == ("BPE 262", "*My* text", tokenizer.hash)
    again = own.load(ME, kept.hash)
    assert again.hash == tokenizer.hash and again.encode(TEXT) == tokenizer.encode(TEXT)
    assert own.listed(ME) == ([kept], [])
    assert [path.stem for path in files(loupe_home)] == [tokenizer.hash]


def test_nobody_else_sees_it_and_the_word_is_not_written_down(loupe_home: Path) -> None:
    kept = own.save(ME, learned(), "text")
    assert own.listed(YOU) == ([], [])
    with pytest.raises(ValueError, match="not on this machine any more"):
        own.load(YOU, kept.hash)
    own.remove(YOU, kept.hash)
    assert own.listed(ME)[0] == [kept]
    assert all(ME not in str(path) and ME not in path.read_text("utf-8") for path in files(loupe_home))


def test_kept_twice_is_one_and_the_newest(loupe_home: Path) -> None:
    first, second = own.save(ME, learned(260), "text"), own.save(ME, learned(261), "text")
    os.utime(files(loupe_home)[0], ns=(1, 1))
    os.utime(files(loupe_home)[1], ns=(1, 1))
    assert len(files(loupe_home)) == 2
    own.save(ME, learned(260), "text")
    assert [kept.hash for kept in own.listed(ME)[0]] == [first.hash, second.hash]


def test_the_oldest_make_room(loupe_home: Path) -> None:
    for n in range(own.MOST):
        kept = own.save(ME, learned(257 + n), "text")
        path = next(path for path in files(loupe_home) if path.stem == kept.hash)
        os.utime(path, ns=(n, n))
    last = own.save(ME, train_bpe("another text of its own", 300), "text")
    hashes = [kept.hash for kept in own.listed(ME)[0]]
    assert len(hashes) == own.MOST and hashes[0] == last.hash and learned(257).hash not in hashes


def test_removed_is_gone_and_a_second_time_is_no_fault(loupe_home: Path) -> None:
    kept = own.save(ME, learned(), "text")
    own.remove(ME, kept.hash)
    own.remove(ME, kept.hash)
    assert own.listed(ME) == ([], []) and files(loupe_home) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"tokenizer": {"kind": "bpe"}}', b'{"tokenizer": 3}'])
def test_a_damaged_file_is_skipped_with_a_sentence(loupe_home: Path, damage: bytes) -> None:
    bad, good = own.save(ME, learned(260), "text"), own.save(ME, learned(261), "text")
    next(path for path in files(loupe_home) if path.stem == bad.hash).write_bytes(damage)
    found, problems = own.listed(ME)
    assert found == [good] and len(problems) == 1 and bad.hash in problems[0] and "damaged" in problems[0]
    with pytest.raises(ValueError, match="damaged"):
        own.load(ME, bad.hash)


def test_other_ids_under_a_name_are_refused(loupe_home: Path) -> None:
    kept = own.save(ME, learned(), "text")
    path = files(loupe_home)[0]
    content = json.loads(path.read_bytes())
    content["tokenizer"]["merged"].reverse()
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(ValueError, match="not what its name says"):
        own.load(ME, kept.hash)


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "a" * 81])
def test_a_name_leads_nowhere_else(name: str) -> None:
    with pytest.raises(ValueError, match="can't be a name"):
        own.load(ME, name)
    with pytest.raises(ValueError, match="can't be a name"):
        own.remove(ME, name)


def test_only_an_own_bpe_of_a_bounded_size_is_kept(loupe_home: Path) -> None:
    with pytest.raises(ValueError, match="Only a BPE of one's own"):
        own.save(ME, byte_tokenizer(), "text")
    with pytest.raises(ValueError, match=r"at most 4,000,000 are kept"):
        own.save(ME, train_bpe("a" * 3_000_000, 300, pattern=r"[\s\S]+"), "text")
    assert files(loupe_home) == []


def test_the_ranks_file_holds_every_id_in_order() -> None:
    tokenizer = learned()
    lines = [line.split() for line in own.ranks_file(tokenizer).splitlines()]
    assert [int(rank) for _, rank in lines] == list(range(262))
    assert [base64.b64decode(data) for data, _ in lines] == [tokenizer.token_bytes(i) for i in range(262)]
    read = custom_vocabulary(own.ranks_file(tokenizer), "mine")  # the page takes such a file back
    assert [read.token_bytes(i) for i in range(262)] == [tokenizer.token_bytes(i) for i in range(262)]
