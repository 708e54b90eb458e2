"""Texts: any Unicode through every tokenizer, scored, looked into, continued and filled."""

from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as some

from engine.fill import masked_guesses, one_pass
from engine.metrics import score
from engine.model import Transformer
from engine.sampling import generate
from engine.token_costs import count_words, measure
from engine.tokenizer import Tokenizer
from engine.tokenizers import char_tokenizer, train_bpe
from engine.tokens import repair_text
from engine.trace import trace
from trials import inputs_made as made
from trials.inputs_kind import Broken, Kind
from viz import visible

LONG = 100_000  # characters
SCORED = 200  # tokens of a text that are scored in a case
PIECES = (
    "a",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\x00",
    "\x1b[31m",
    "\u202e",
    "\u200d",
    "\ufeff",
    "e\u0301",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "👍🏽",
    "🇩🇪",
    "שלום",
    "ไทย",
    "한국어",
    "漢字",
    "ﷺ",
    "𝔘",
    "\ud83d",
    "\udc4d",
    "\U0010ffff",
    "\ufffe",
    "$x^2$",
    "\\frac{1}{2}",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "**b**",
    ":red[x]",
    "`",
    "```",
    "{name}",
    "%s",
    "<|endoftext|>",
    "[MASK]",
    "\u0300" * 20,
    "\x85",
    "\u2028",
    "0",
    "１２",
    "½",
)
texts = some.one_of(
    some.text(max_size=60),
    some.text(
        some.characters(codec=None, categories=("Cs", "Cc", "Mn", "So", "Cf", "Zs", "Lo")), max_size=40
    ),
    some.lists(some.sampled_from(PIECES), max_size=12).map("".join),
    some.builds(lambda piece, n: piece * n, some.sampled_from(PIECES), some.integers(1, 500)),
)
KNOWN = (
    "",
    " ",
    "a",
    "\x00",
    "\ud800",
    *PIECES,
    "a" * 3000,
    "\u0300" * 3000,
    "😀 " * 1000,
)
HEAVY = (
    "a" * LONG,
    " " * LONG,
    "\n" * LONG,
    "😀" * LONG,
    "e\u0301" * LONG,
    "\u0300" * LONG,
    "🇩🇪" * (LONG // 2),
    "\u200d" * LONG,
    "👩‍👩‍👧‍👦" * (LONG // 7),
    "\ud83d" * LONG,
    "abc " * (LONG // 4),
    "0" * LONG,
    "<b>" * (LONG // 3),
    "$" * LONG,
    "'" * LONG,
    "\r\n" * LONG,
    " " * 1_000_000 + "x",
)


@cache
def _tokenizers() -> dict[str, Tokenizer]:
    return made.every_tokenizer()


@cache
def _models() -> dict[tuple[str, str], Transformer]:
    return {
        (name, objective): made.model(_tokenizers()[name], objective)
        for name in ("bytes", "bpe")
        for objective in ("clm", "mlm")
    }


def attempt(text: str, _: Path) -> None:
    """Everything that pages do with a text."""
    normal, n_repaired = repair_text(text)
    normal.encode()
    if not n_repaired and normal != text:
        raise Broken("a whole text was changed")
    shown = visible(normal[:1000])
    if any(ord(c) < 32 for c in shown):
        raise Broken("a control character is shown as it is")
    measure(normal)
    count_words(normal)
    for tokenizer in _tokenizers().values():
        _cut(tokenizer, normal)
    if normal:
        _cut(char_tokenizer(normal), normal)
    if normal.strip() and len(normal) <= 10_000:
        _cut(train_bpe(normal, 270), normal)
    for (name, objective), model in _models().items():
        _look(model, _tokenizers()[name], normal, objective)


def _cut(tokenizer: Tokenizer, text: str) -> None:
    """Into tokens and back."""
    try:
        ids = tokenizer.encode(text)
    except ValueError:
        if tokenizer.name != "characters":  # any other one takes every text
            raise Broken(f"{tokenizer.name} refuses a text") from None
        return
    if tokenizer.decode(ids) != text:
        raise Broken(f"{tokenizer.name}: another text comes back")
    groups = tokenizer.segments(text, most=2000)
    tokens = [token for group in groups for token in group]
    if [token.id for token in tokens] != ids[:2000]:
        raise Broken(f"{tokenizer.name}: segments give other tokens")
    if b"".join(token.data for token in tokens) != text.encode()[: tokens[-1].byte_end if tokens else 0]:
        raise Broken(f"{tokenizer.name}: tokens are not the text")
    special = tokenizer.encode(text, special=True)
    if min((*ids, *special), default=0) < 0 or max(ids, default=0) >= tokenizer.vocab_size:
        raise Broken(f"{tokenizer.name}: an id outside the vocabulary")


def _look(model: Transformer, tokenizer: Tokenizer, text: str, objective: str) -> None:
    """Look inside, score, continue, fill."""
    if not text:
        return
    found = trace(model, tokenizer, text)
    if not np.isfinite(found.logits).all() or not np.allclose(found.attentions.sum(-1), 1, atol=1e-4):
        raise Broken("numbers of a trace")
    ids = tokenizer.encode(text)[-SCORED:]
    if objective == "mlm":
        guesses = masked_guesses(model, tokenizer.mask_id)
        filled = one_pass(guesses, ids[:20], range(0, len(ids[:20]), 2))
        if not all(0 <= i < tokenizer.vocab_size for i in filled.ids):
            raise Broken("a filler outside the vocabulary")
        return
    if len(ids) > 1 and not score(model, ids).log_probs.max() <= 0:
        raise Broken("a probability above 1")
    steps = list(generate(model, ids, n_tokens=3, seed=1))
    tokenizer.decode([step.id for step in steps])


KIND = Kind("texts", texts, attempt, known=KNOWN, heavy=HEAVY, ready=lambda: (_tokenizers(), _models()))
