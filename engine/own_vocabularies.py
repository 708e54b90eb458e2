"""Vocabularies that a person learned and kept, so that a reload loses none. Each person sees only their own.

They lie in $LOUPE_HOME/vocab/own/<sha256 of the owner's word>/<hash>.json: the tokenizer, what it was learned
from, and when. The word itself gives rights, so it is not written down, as with runs.
"""

import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path

from engine.folders import checked_name, data_folder, told, write_file
from engine.owners import owner_hash
from engine.refused import broken_entry
from engine.setting_checks import is_number
from engine.tokenizers import Tokenizer, tokenizer_from_json
from wording import words

say = words("engine.own_vocabularies")

MOST = 20  # of one person; the oldest make room
MOST_BYTES = 4_000_000  # of one file; 8,192 ids of a usual text take about 0.1 MB
_FORMAT = 1


@dataclass(frozen=True)
class OwnVocabulary:
    """A vocabulary that was kept.

    Attributes:
        hash: of the tokenizer, also its file's name.
        name: of the tokenizer, such as "BPE 1024".
        learned_from: the text, in a few words; may hold any characters.
        created: seconds since 1970.
    """

    hash: str
    name: str
    learned_from: str
    created: float


@told()
def save(owner: str, tokenizer: Tokenizer, learned_from: str, *, home: Path | None = None) -> OwnVocabulary:
    """Keep a vocabulary; one that is there already becomes the newest.

    Raises:
        ValueError: if it is no own BPE, or too large.
    """
    spec = tokenizer.to_json()
    if spec["kind"] != "bpe":
        raise ValueError(say("only_bpe_ones_own", name=tokenizer.name))
    kept = OwnVocabulary(tokenizer.hash, tokenizer.name, learned_from[:80], time.time())
    content = {
        "format": _FORMAT,
        "learned_from": kept.learned_from,
        "created": kept.created,
        "tokenizer": spec,
    }
    data = json.dumps(content).encode()
    if len(data) > MOST_BYTES:
        raise ValueError(say("vocabulary_takes_bytes_because", n=len(data), most=MOST_BYTES))
    folder = _folder(owner, home)
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / f"{kept.hash}.json", data)
    for path in _newest_first(folder)[MOST:]:
        path.unlink(missing_ok=True)
    return kept


def listed(owner: str, *, home: Path | None = None) -> tuple[list[OwnVocabulary], list[str]]:
    """A person's vocabularies, newest first, and a sentence about each file that can't be read."""
    found, problems = [], []
    for path in _newest_first(_folder(owner, home)):
        try:
            found.append(_read(path)[0])
        except ValueError as error:
            problems.append(str(error))
    return found, problems


def stamp(owner: str, *, home: Path | None = None) -> tuple[tuple[str, int], ...]:
    """Changes whenever `listed` would; costs next to nothing."""
    return tuple((str(path), path.stat().st_mtime_ns) for path in _newest_first(_folder(owner, home)))


def load(owner: str, vocabulary_hash: str, *, home: Path | None = None) -> Tokenizer:
    """A vocabulary of this person, with exactly the ids that it had when it was kept.

    Raises:
        ValueError: one sentence, if it is not there or damaged.
    """
    path = _path(owner, vocabulary_hash, home)
    if not path.is_file():
        raise ValueError(say("your_vocabulary_not_machine", vocabulary_hash=vocabulary_hash))
    return _read(path)[1]


@told()
def remove(owner: str, vocabulary_hash: str, *, home: Path | None = None) -> None:
    """Forget a vocabulary; nothing happens if it is gone already. Runs that use it keep their own copy."""
    _path(owner, vocabulary_hash, home).unlink(missing_ok=True)


def ranks_file(tokenizer: Tokenizer) -> bytes:
    """A vocabulary as a .tiktoken file: a line for each id, its bytes in base64 and its number."""
    lines = (base64.b64encode(tokenizer.token_bytes(i)) + b" %d\n" % i for i in range(tokenizer.vocab_size))
    return b"".join(lines)


def _folder(owner: str, home: Path | None) -> Path:
    return data_folder(home) / "vocab" / "own" / owner_hash(owner)[:32]


def _path(owner: str, vocabulary_hash: str, home: Path | None) -> Path:
    return _folder(owner, home) / f"{checked_name(vocabulary_hash)}.json"


def _newest_first(folder: Path) -> list[Path]:
    paths = [path for path in folder.glob("*.json") if not path.name.startswith(".")]
    return sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


def _read(path: Path) -> tuple[OwnVocabulary, Tokenizer]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(say("too_large"))
        try:
            content = json.loads(path.read_bytes())
        except ValueError as error:
            raise ValueError(say("unreadable")) from error
        if not isinstance(content, dict) or not is_number(content.get("created")):
            raise ValueError(say("unreadable"))
        tokenizer = tokenizer_from_json(content["tokenizer"])
        if tokenizer.hash != path.stem:
            raise ValueError(say("content_not_what_name"))
        kept = OwnVocabulary(
            path.stem, tokenizer.name, str(content["learned_from"]), float(content["created"])
        )
        return kept, tokenizer
    except ValueError as error:
        raise ValueError(_damaged(path, str(error))) from error
    except (KeyError, TypeError) as error:
        raise ValueError(_damaged(path, broken_entry(error))) from error
    except (OSError, RecursionError) as error:
        raise ValueError(_damaged(path, say("unreadable"))) from error


def _damaged(path: Path, why: str) -> str:
    return say("kept_vocabulary_damaged_learn", name=path.stem[:20], error=why)
