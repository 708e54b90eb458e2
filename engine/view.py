"""Which tokens of a text a model sees while the text grows past its context."""


def first_seen(n_tokens: int, context_length: int, jump: int = 1) -> int:
    """Index of the first token that a model sees of a text: 0 while everything fits its context.

    Args:
        n_tokens: of the text.
        context_length: most tokens that the model sees.
        jump: how many tokens it forgets at once when they don't fit. With 1 it always sees as many as it can,
            and every token costs a reading of all of them; with more the cache is of use until the next jump.

    >>> [first_seen(n, 8, 4) for n in (7, 8, 9, 12, 13)]
    [0, 0, 4, 4, 8]
    """
    over = max(0, n_tokens - context_length)
    return -(-over // jump) * jump
