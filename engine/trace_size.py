"""How much one look inside a model keeps in memory, and how many tokens it may therefore read at once."""

from engine.config import ModelConfig

MOST_BYTES = 200_000_000  # of one `Trace`
STEP = 32  # tokens


def trace_bytes(config: ModelConfig, n_tokens: int) -> int:
    """Bytes of the float32 arrays of a `Trace` of so many tokens T.

    Attention weights (L,H,T,T), queries, keys, values and outputs of heads (L,H,T,D), the residual stream and
    what goes into it (4·L + 1,T,C), logits (T,V).
    """
    weights = config.n_layer * config.n_head * n_tokens
    heads = 4 * config.n_layer * config.n_head * config.d_head
    stream = (4 * config.n_layer + 1) * config.d_model
    return 4 * n_tokens * (weights + heads + stream + config.vocab_size)


def window_length(config: ModelConfig) -> int:
    """Most tokens that pictures of the inside read at once: all of the context, unless that is too much.

    A large model reads fewer, so that what is kept stays below `MOST_BYTES`; always at least `STEP`.
    """
    n = config.context_length
    while n > STEP and trace_bytes(config, n) > MOST_BYTES:
        n = (n - 1) // STEP * STEP
    return n
