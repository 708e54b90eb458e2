"""What one merge does to a text, worked out. Whole numbers, so only the result is rounded."""

from ui.worked import aligned, tex


def merge(before: int, count: int, n_bytes: int, *, digits: int = 4) -> str:
    """The length of a text after a merge, and how many bytes a token has then.

    Args:
        before: tokens of the text before it.
        count: pairs of tokens that became one.
        n_bytes: of the text.
        digits: of the bytes per token.
    """
    after = before - count
    return aligned(
        rf"\text{{tokens}} &= {before} - {count} = {after}",
        rf"\frac{{\text{{bytes}}}}{{\text{{tokens}}}} &= \frac{{{n_bytes}}}{{{after}}}"
        rf" = {tex(n_bytes / after, digits)}",
    )


def share_of(used: int, n_tokens: int, *, digits: int = 3) -> str:
    """How much of a text is one token."""
    return (
        rf"\frac{{{used}\ \text{{uses}}}}{{{n_tokens}\ \text{{tokens}}}}"
        rf" = {tex(100 * used / n_tokens, digits)}\,\%"
    )
