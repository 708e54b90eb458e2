"""What one merge does to a text, worked out. Whole numbers, so only the result is rounded."""

from ui.worked import aligned, tex
from wording import words

say = words("ui.worked_merges")


def merge(before: int, count: int, n_bytes: int, *, digits: int = 4) -> str:
    """The length of a text after a merge, and how many bytes a token has then.

    Args:
        before: tokens of the text before it.
        count: pairs of tokens that became one.
        n_bytes: of the text.
        digits: of the bytes per token.
    """
    after = before - count
    tokens, unit = say("tokens"), say("bytes")
    return aligned(
        rf"\text{{{tokens}}} &= {before} - {count} = {after}",
        rf"\frac{{\text{{{unit}}}}}{{\text{{{tokens}}}}} &= \frac{{{n_bytes}}}{{{after}}}"
        rf" = {tex(n_bytes / after, digits)}",
    )


def share_of(used: int, n_tokens: int, *, digits: int = 3) -> str:
    """How much of a text is one token."""
    return (
        rf"\frac{{{used}\ \text{{{say('uses')}}}}}{{{n_tokens}\ \text{{{say('tokens')}}}}}"
        rf" = {tex(100 * used / n_tokens, digits)}\,\%"
    )
