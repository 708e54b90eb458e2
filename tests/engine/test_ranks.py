"""Vocabulary files that anybody may have written: read in full, or refused in one sentence."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import ranks
from engine.ranks import checked_ranks, read_ranks
from engine.tokenizers import custom_vocabulary
from engine.vocabularies import VOCABULARIES

pytestmark = pytest.mark.usefixtures("no_network")


def lines(entries):
    return b"\n".join(base64.b64encode(data) + b" %d" % rank for data, rank in entries)


BYTES = [(bytes([b]), b) for b in range(256)]


@pytest.mark.parametrize("name", ["gpt2", "cl100k_base", "o200k_base"])
def test_a_published_file_passes_the_checks_of_a_stranger_s(name, vocab_folder):
    content = (vocab_folder / VOCABULARIES[name].sources[0].file_names[0]).read_bytes()
    assert checked_ranks(content) == read_ranks(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"hello", "Line 1 is not a token and its number"),
        (b"YQ== 0\nYg== one", "Line 2 is not"),
        (b"YQ== 0\nYg== -1", "Line 2 is not"),
        (b"YQ== 1_0", "Line 1 is not"),
        (b"YQ 0", "Line 1 is not"),
        (b"Y\xffQ= 0", "Line 1 is not"),
        (b"= 0", "Line 1 is not"),
        (b"Y!Q== 0", "Line 1 is not"),
        (b"YQ== 0 0", "Line 1 is not"),
        (b"YQ== 999999999999999999999", "Line 1 is not"),
        (b"YQ== 1000001", "Line 1 has the number 1,000,001"),
        (b"\x00\x01\x02" * 99, "Line 1 is not"),
        (b"YQ== 0\nYQ== 1", "Line 2 repeats the token"),
        (b"YQ== 0\nYg== 0", "Line 2 repeats the number 0"),
        (lines(BYTES[:-1]), r"no token for 1 of the 256 bytes \(FF\)"),
        (lines(BYTES[10:]), r"no token for 10 of the 256 bytes \(00 01 02 03 04 05 06 07 …\)"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(content, said):
    with pytest.raises(ValueError, match=said) as refusal:
        custom_vocabulary(content, "mine")
    assert "\n" not in str(refusal.value)


def test_too_much_is_refused_before_it_is_read(monkeypatch):
    with pytest.raises(ValueError, match="8,000,001 bytes"):
        checked_ranks(bytes(ranks.MAX_BYTES + 1))
    monkeypatch.setattr(ranks, "MAX_LINES", 255)
    with pytest.raises(ValueError, match="more than 255 lines"):
        checked_ranks(lines(BYTES))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_whatever_give_a_traceback(content):
    """A tiktoken panic is no `Exception`: it would pass here."""
    with pytest.raises(ValueError):
        custom_vocabulary(content, "mine")


def test_a_custom_vocabulary_cuts_as_its_file_says():
    entries = [(data, 2 * rank) for data, rank in BYTES] + [(b"th", 600), (b"the", 601), (b" the", 700)]
    tokenizer = custom_vocabulary(lines(entries), "mine")
    assert tokenizer.name == "custom: mine" and tokenizer.vocab_size == tokenizer.mask_id == 701
    assert tokenizer.encode("the the?") == [601, 700, 2 * ord("?")]
    assert tokenizer.decode(tokenizer.encode("a😀 \n")) == "a😀 \n"
    assert tokenizer.encode("[MASK]<|endoftext|>", special=True) == [701, 702]
    with pytest.raises(ValueError, match="no id 1"):
        tokenizer.token_bytes(1)


def test_line_ends_of_windows_and_a_last_line_end_do_not_matter():
    content = lines(BYTES).replace(b"\n", b"\r\n") + b"\r\n"
    assert checked_ranks(content) == dict(BYTES)
