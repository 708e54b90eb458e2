"""Real English: TinyStories (Eldan & Li 2023, arXiv:2305.07759), read from a file.

The text does not come with Loupe; its licence, CDLA-Sharing-1.0, lets models made from it be shared. Any part
of TinyStories-train.txt will do: a blank line in it parts paragraphs, and a single line end parts stories.
"""

import random
import re
from pathlib import Path

from engine.corpus import Corpus

NAME = "tiny-stories"
VAL_SHARE = 0.05  # of the stories, the last ones after mixing
SHORTEST = 150  # characters; shorter pieces are torn-off ends
SEED = 1
_PLAIN = {
    "“": '"',
    "‘": "'",
    "’": "'",
    "–": "-",
    "…": "...",
    "”": '"',
}  # the last misread is a part of the others


def tiny_stories(path: Path) -> Corpus:
    """The stories of a file, one a line, in an order that doesn't depend on the file; each story once.

    Raises:
        ValueError: if there are fewer than 100 stories.
    """
    return Corpus(NAME, NAME, *_split(stories_in(path.read_text(encoding="utf-8"))))


def stories_in(text: str) -> list[str]:
    """Whole stories, each on one line, without repeats; what a cut has torn at the end is left out."""
    for sign, plain in _PLAIN.items():
        text = text.replace(sign, plain).replace(_misread(sign), plain)
    pieces = [" ".join(piece.split()) for piece in re.split(r"(?<!\n)\n(?!\n)|<\|endoftext\|>", text)]
    return list(dict.fromkeys(piece for piece in pieces if len(piece) > SHORTEST and piece[-1] in '.!?"'))


def _misread(sign: str) -> str:
    """UTF-8 bytes taken for cp1252, as in parts of the published file."""
    return sign.encode().decode("cp1252", "ignore")


def _split(stories: list[str]) -> tuple[str, str]:
    if len(stories) < 100:
        raise ValueError(f"The file holds {len(stories)} whole stories; at least 100 are needed.")
    random.Random(SEED).shuffle(stories)
    cut = len(stories) - round(len(stories) * VAL_SHARE)
    return "\n".join(stories[:cut]) + "\n", "\n".join(stories[cut:]) + "\n"
