"""Published vocabularies: where their files may lie on this machine, and how to read one safely.

A file counts only with the right sha256. Nothing here opens a network connection: tiktoken's own
download has no time-out, so it is never called.
"""

import hashlib
import importlib.util
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from engine.folders import data_folder, write_file
from engine.ranks import read_ranks
from wording import words

say = words("engine.vocabularies")

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
    """A file that holds a vocabulary's ranks; `size` in bytes."""

    url: str
    sha256: str
    size: int

    @property
    def host(self) -> str:
        """Who publishes it."""
        return urlsplit(self.url).netloc

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
    835_554,
)
_GPT2_JSON = Source(
    f"{_HOST}/gpt-2/encodings/main/encoder.json",
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    1_042_301,
)
_P50K = Source(
    f"{_HOST}/encodings/p50k_base.tiktoken",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    836_186,
)
_CL100K = Source(
    f"{_HOST}/encodings/cl100k_base.tiktoken",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    1_681_126,
)
_O200K = Source(
    f"{_HOST}/encodings/o200k_base.tiktoken",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    3_613_922,
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
    home = data_folder()
    named = [os.environ.get("TIKTOKEN_CACHE_DIR"), os.environ.get("DATA_GYM_CACHE_DIR")]
    cache = Path(tempfile.gettempdir()) / "data-gym-cache"
    return [home / "vocab", *(Path(n) for n in named if n), cache, *_installed()]


@lru_cache(maxsize=1)
def _installed() -> tuple[Path, ...]:
    """Folders of installed packages that bring such files along; the packages are not imported."""
    inside = {
        "litellm": ("litellm_core_utils/tokenizers", "llms/tokenizers"),
        "llama_index": ("core/_static/tiktoken_cache",),
    }
    found = []
    for package, places in inside.items():
        spec = importlib.util.find_spec(package)
        for root in (spec and spec.submodule_search_locations) or ():
            found += [path for place in places if (path := Path(root) / place).is_dir()]
    return tuple(found)


def find(name: str) -> Path | None:
    """The file of a vocabulary whose sha256 is right, or None. Cheap when asked again."""
    for source in _published(name).sources:
        for folder in folders():
            for file_name in source.file_names:
                path = folder / file_name
                if _is(path, source):
                    return path
    return None


def _is(path: Path, source: Source) -> bool:
    try:
        found = path.stat()
        if found.st_size != source.size or not path.is_file():
            return False
        return _sha256(path, found.st_mtime_ns, found.st_size) == source.sha256
    except OSError:  # not there, or somebody else's
        return False


@lru_cache(maxsize=64)
def _sha256(path: Path, changed: int, size: int) -> str:
    """Of a file; read again only when its time or size has changed."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def recognise(content: bytes) -> tuple[Source | None, tuple[str, ...]]:
    """Whose file this is, by its sha256: the source, and the vocabularies in it; (None, ()) if unknown."""
    sha256 = hashlib.sha256(content).hexdigest()
    holds = {name: s for name, p in VOCABULARIES.items() for s in p.sources if s.sha256 == sha256}
    return next(iter(holds.values()), None), tuple(holds)


def keep(content: bytes) -> tuple[str, ...]:
    """Put a published file into the data folder, from where it is found from now on; gives the names it has.

    Raises:
        ValueError: if its sha256 is none of the known ones.
    """
    source, names = recognise(content)
    if source is None:
        raise ValueError(say("file_none_published_vocabularies"))
    folders()[0].mkdir(parents=True, exist_ok=True)
    write_file(folders()[0] / source.file_names[1], content)
    return names


def how_to_add(name: str) -> str:
    """One sentence on how to bring a missing vocabulary to this machine."""
    source = _published(name).sources[0]
    file = f"{source.file_names[1]} (sha256 {source.sha256[:12]}…)"
    return say("put_into_published", file=file, folders=folders()[0], url=source.url)


def read(name: str) -> tuple[dict[bytes, int], str, dict[str, int]]:
    """Ranks, split pattern and special tokens of a vocabulary.

    Raises:
        ValueError: if the name is unknown or no file with the right sha256 is on this machine.
    """
    published, path = _published(name), find(name)
    content = path.read_bytes() if path else b""
    if name not in recognise(content)[1]:  # also if the file was changed since it was found
        raise ValueError(say("vocabulary_not_machine", name=name, how_to_add=how_to_add(name)))
    return read_ranks(content), published.pattern, published.specials


def split_pattern(name: str) -> str:
    """The regular expression with which a published vocabulary cuts a text before it merges."""
    return _published(name).pattern


def source_of(name: str) -> Source:
    """The file to bring to this machine for a vocabulary."""
    return _published(name).sources[0]


def _published(name: str) -> Published:
    if name not in VOCABULARIES:
        raise ValueError(say("no_vocabulary_called_known", name=name, join=", ".join(VOCABULARIES)))
    return VOCABULARIES[name]
