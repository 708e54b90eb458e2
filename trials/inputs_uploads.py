"""Files that people upload as a text or as pairs: any bytes, in any encoding."""

import codecs
import io
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as some

from engine.checks import check_lengths
from engine.corpus import Corpus, decode_upload, encodings, own_text, preview, split, statistics
from engine.pair_files import as_lines, read_pairs, read_preferences
from engine.tokenizers import byte_tokenizer
from engine.tuning_data import pairs_corpus
from trials.inputs_changes import Cut, cut_up, cuts
from trials.inputs_kind import Broken, Kind
from trials.inputs_texts import texts


class Upload(NamedTuple):
    """A file: its bytes, the encoding that is chosen if one must be, and what it is meant to be."""

    data: bytes
    encoding: str | None = None
    use: str = "text"


USES = ("text", "answers", "preferences")
CODECS = (
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "latin-1",
    "cp1252",
    "shift_jis",
)
BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
ROWS = (
    '{"prompt": "Hi", "answer": "Hello.", "chosen": "a", "rejected": "b"}\n' * 4,
    'prompt,answer,chosen,rejected\nHi,Hello,a,b\n"multi\nline",x,c,d\n',
    "prompt;answer;chosen;rejected\r\nHi;Hello;a;b\r\n",
    "Hi\tHello.\nHo\tThere.\n",
)


def _zip(text: bytes = b"x" * 1000) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", text)
    return packed.getvalue()


def _encoded(text: str, codec: str) -> bytes:
    return text.encode(codec, "replace")


files = some.one_of(
    some.binary(max_size=300),
    some.builds(_encoded, texts, some.sampled_from(CODECS)),
    some.builds(lambda bom, rest: bom + rest, some.sampled_from(BOMS), some.binary(max_size=60)),
    some.builds(lambda row, made: cut_up(row.encode(), made), some.sampled_from(ROWS), cuts),
    some.builds(
        lambda row, text: row.replace("Hi", text).encode("utf-8", "replace"), some.sampled_from(ROWS), texts
    ),
)
cases = some.builds(Upload, files, some.sampled_from((None, None, *encodings())), some.sampled_from(USES))
KNOWN: tuple[Any, ...] = (
    Upload(b""),
    Upload(b" \n"),
    Upload(_zip()),
    Upload(_zip(), "cp1252"),
    Upload(b"\xff\xfe"),
    Upload(b"\xff\xfe\x00"),
    Upload(b"\xff\xfe\x00\xd8"),
    Upload(b"\xef\xbb\xbf"),
    Upload(b"[" * 100_000, None, "answers"),
    Upload(b'{"prompt":' * 20_000, None, "answers"),
    Upload(b"prompt,answer\n" + b'"' + b"a" * 200_000, None, "answers"),
    Upload(b'{"prompt": ' + b"1" * 5000 + b"}", None, "answers"),
    *(Upload(row.encode(), None, use) for row in ROWS for use in USES),
)
HEAVY: tuple[Any, ...] = (
    Upload(b"a" * 5_000_000),
    Upload(b"a" * 5_000_001),
    Upload("é".encode("utf-16-le") * 2_500_000, "utf-16-le"),
    Upload(b"\x00" * 5_000_000),
    Upload(b"\x80" * 5_000_000),
    Upload(b"{" * 1_000_000, None, "answers"),
    Upload(b'"' * 1_000_000, None, "answers"),
    Upload(b"\t" * 1_000_000, None, "answers"),
    Upload(b"\n" * 4_000_000 + b"a\tb", None, "answers"),
    Upload(b"a\tb\n" * 1_000_000, None, "answers"),
)


def attempt(case: Upload, _: Path) -> None:
    """Decode and use it as the pages do."""
    text = decode_upload(case.data, case.encoding)
    text.encode()
    if case.use != "text":
        corpus = pairs_corpus(text, case.use, name="x")
        read = read_pairs if case.use == "answers" else read_preferences
        if as_lines(read(corpus.text)) != corpus.text:
            raise Broken("the pairs of a run are other pairs")
        first, second = split(corpus, 0.5)
        if first + second != corpus.text:
            raise Broken("a split loses pairs")
        return
    corpus = own_text(text, name="x", kind="uploaded")
    if not corpus.text.strip():
        return  # `ui.text_choice.usable` refuses it
    _use(corpus)


def _use(corpus: Corpus) -> None:
    counted = statistics(corpus.text)
    if counted.bytes != len(corpus.text.encode()):
        raise Broken("another number of bytes")
    preview(corpus, byte_tokenizer(), 16)
    train, val = split(corpus)
    if train + val != corpus.text:
        raise Broken("a split loses text")
    check_lengths(len(train), len(val), 16)


KIND = Kind("uploads", cases, attempt, known=KNOWN, heavy=HEAVY)
__all__ = ["KIND", "Cut", "Upload"]
