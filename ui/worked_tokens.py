"""Formulas of the Tokens page, with the numbers of the chosen token, vocabulary or language put in."""

from ui.worked import aligned, tex


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
        lines.append(
            rf"\text{{tokens per word}} &= \frac{{{n_tokens}}}{{{words}}} = {tex(n_tokens / words, digits)}"
        )
    for name, n in (("characters", characters), ("bytes", n_bytes)):
        lines.append(
            rf"\text{{{name} per token}} &= \frac{{{n}}}{{{n_tokens}}} = {tex(n / n_tokens, digits)}"
        )
    return aligned(*lines)


def times(n_tokens: int, n_reference: int, language: str, reference: str, *, digits: int = 3) -> str:
    """How many times as many tokens a language takes as the one it is compared with; plain letters only."""
    ratio = tex(n_tokens / n_reference, digits)
    return (
        rf"\frac{{{n_tokens}\ \text{{tokens, {language}}}}}{{{n_reference}\ \text{{tokens, {reference}}}}}"
        rf" = {ratio}"
    )
