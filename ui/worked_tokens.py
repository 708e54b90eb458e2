"""Formulas of the Tokens page, with the numbers of the chosen token, vocabulary or language put in."""

from ui.worked import aligned, tex
from wording import words

say = words("ui.worked_tokens")


def cost(n_tokens: int, characters: int, n_bytes: int, words: int | None, *, digits: int = 4) -> str:
    """What a text costs in one vocabulary, in three units.

    Args:
        n_tokens: of the text in this vocabulary.
        characters: of the text.
        n_bytes: of the text in UTF-8.
        words: of the text; None or 0 leaves the line out.
        digits: of the results.
    """
    lines = []
    if words:
        name, value = say("tokens_per_word"), tex(n_tokens / words, digits)
        lines.append(rf"\text{{{name}}} &= \frac{{{n_tokens}}}{{{words}}} = {value}")
    for name, n in ((say("characters_per_token"), characters), (say("bytes_per_token"), n_bytes)):
        lines.append(rf"\text{{{name}}} &= \frac{{{n}}}{{{n_tokens}}} = {tex(n / n_tokens, digits)}")
    return aligned(*lines)


def times(n_tokens: int, n_reference: int, language: str, reference: str, *, digits: int = 3) -> str:
    """How many times as many tokens a language takes as the one it is compared with; plain letters only."""
    ratio = tex(n_tokens / n_reference, digits)
    return (
        rf"\frac{{{n_tokens}\ \text{{{say('tokens', language=language)}}}}}"
        rf"{{{n_reference}\ \text{{{say('tokens', language=reference)}}}}}"
        rf" = {ratio}"
    )
