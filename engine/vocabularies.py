"""Published vocabularies: where their files may lie on this machine, and how to read one safely.

A file counts only with the right sha256. Nothing here opens a network connection: tiktoken's own
download has no time-out, so it is never called.
"""

import base64
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

_HOST = "https://openaipublic.blob.core.windows.net"
_GPT2_SPLIT = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CL100K_SPLIT = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K_SPLIT = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SUFFIX}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SUFFIX}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


class Source(NamedTuple):
    """A file that holds a vocabulary's ranks."""

    url: str
    sha256: str

    @property
    def file_names(self) -> tuple[str, str]:
        """The name under which tiktoken caches it, and its plain name."""
        return hashlib.sha1(self.url.encode()).hexdigest(), self.url.rsplit("/", 1)[1]


class Published(NamedTuple):
    """What is publicly known of a vocabulary; any one of `sources` is enough."""

    sources: tuple[Source, ...]
    pattern: str
    specials: dict[str, int]


_R50K = Source(
    f"{_HOST}/encodings/r50k_base.tiktoken",
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
)
_GPT2_JSON = Source(
    f"{_HOST}/gpt-2/encodings/main/encoder.json",
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
)
_P50K = Source(
    f"{_HOST}/encodings/p50k_base.tiktoken",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
)
_CL100K = Source(
    f"{_HOST}/encodings/cl100k_base.tiktoken",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
)
_O200K = Source(
    f"{_HOST}/encodings/o200k_base.tiktoken",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
)
_FIM = {"<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260}

VOCABULARIES: dict[str, Published] = {
    "gpt2": Published((_R50K, _GPT2_JSON), _GPT2_SPLIT, {"<|endoftext|>": 50256}),
    "r50k_base": Published((_R50K, _GPT2_JSON), _GPT2_SPLIT, {"<|endoftext|>": 50256}),
    "p50k_base": Published((_P50K,), _GPT2_SPLIT, {"<|endoftext|>": 50256}),
    "cl100k_base": Published(
        (_CL100K,), _CL100K_SPLIT, {"<|endoftext|>": 100257, **_FIM, "<|endofprompt|>": 100276}
    ),
    "o200k_base": Published((_O200K,), _O200K_SPLIT, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
}


def folders() -> list[Path]:
    """Folders that may hold vocabulary files, best first."""
    home = Path(os.environ.get("LOUPE_HOME", Path(__file__).parent.parent / ".loupe"))
    named = [os.environ.get("TIKTOKEN_CACHE_DIR"), os.environ.get("DATA_GYM_CACHE_DIR")]
    return [home / "vocab", *(Path(n) for n in named if n), Path(tempfile.gettempdir()) / "data-gym-cache"]


def find(name: str) -> Path | None:
    """The file of a vocabulary whose sha256 is right, or None."""
    for source in _published(name).sources:
        for folder in folders():
            for file_name in source.file_names:
                path = folder / file_name
                if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == source.sha256:
                    return path
    return None


def how_to_add(name: str) -> str:
    """One sentence on how to bring a missing vocabulary to this machine."""
    source = _published(name).sources[0]
    file = f"{source.file_names[1]} (sha256 {source.sha256[:12]}…)"
    return f"Put {file} into {folders()[0]}; it is published at {source.url}."


def read(name: str) -> tuple[dict[bytes, int], str, dict[str, int]]:
    """Ranks, split pattern and special tokens of a vocabulary.

    Raises:
        ValueError: if the name is unknown or no file with the right sha256 is on this machine.
    """
    published, path = _published(name), find(name)
    if path is None:
        raise ValueError(f"The vocabulary {name} is not on this machine. {how_to_add(name)}")
    content = path.read_bytes()
    if content[:1] == b"{":
        return _ranks_from_gpt2_json(content), published.pattern, published.specials
    lines = (line.split() for line in content.splitlines() if line)
    return {base64.b64decode(data): int(rank) for data, rank in lines}, published.pattern, published.specials


def _published(name: str) -> Published:
    if name not in VOCABULARIES:
        raise ValueError(f"No vocabulary is called {name!r}. Known: {', '.join(VOCABULARIES)}.")
    return VOCABULARIES[name]


def _ranks_from_gpt2_json(content: bytes) -> dict[bytes, int]:
    """GPT-2 spells a byte that is no visible character as chr(256 + n), n counting these bytes from 0."""
    visible = [b for b in range(256) if chr(b).isprintable() and chr(b) != " "]
    hidden = [b for b in range(256) if b not in set(visible)]
    byte_of = {chr(b): b for b in visible} | {chr(256 + n): b for n, b in enumerate(hidden)}
    ids = json.loads(content)
    return {bytes(byte_of[c] for c in text): rank for text, rank in ids.items() if text != "<|endoftext|>"}
