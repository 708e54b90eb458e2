"""Figures: arrays and strings in, Plotly figures out. Knows neither the model nor the screen."""

from viz.along import running_perplexity, surprisal_bars
from viz.attention import attention_map, mask_matrix
from viz.cells import cell_map, cell_numbers
from viz.cosines import cosine_bars
from viz.curves import Reference, Series, loss_curve, thin
from viz.distributions import distribution_bars, position_heatmap
from viz.merges import corpus_length, merge_tree, token_lengths, token_uses
from viz.positions import (
    lookup_picture,
    position_table,
    rotation_plane,
    sum_picture,
    turn_lengths,
)
from viz.signed import signed_bars
from viz.stream import stream_lengths
from viz.text import (
    clip,
    escape,
    format_bits,
    format_count,
    format_nats,
    format_number,
    format_perplexity,
    format_prob,
    format_tick,
    visible,
    visible_parts,
)
from viz.theme import (
    CAUSAL,
    CONFIG,
    DIVERGING_SCALE,
    MASKED,
    MODEL,
    NEUTRAL,
    PROBABILITY_SCALE,
    SURPRISAL_SCALE,
    TOKEN_COLORS,
    TRAIN,
    TRUE,
    VALID,
    alt_text,
    objective_color,
    perplexity_name,
    probability_color,
    surprisal_color,
    token_color,
)
from viz.tokens import language_map, vocabulary_bars
from viz.vector_lengths import norm_scatter
from viz.vector_map import token_map

__all__ = [
    "CAUSAL", "CONFIG", "DIVERGING_SCALE", "MASKED", "MODEL", "NEUTRAL", "PROBABILITY_SCALE",
    "SURPRISAL_SCALE", "TOKEN_COLORS", "TRAIN", "TRUE", "VALID", "Reference", "Series", "alt_text",
    "attention_map", "cell_map", "cell_numbers", "clip", "corpus_length", "cosine_bars",
    "distribution_bars", "escape", "format_bits", "format_count", "format_nats", "format_number",
    "format_perplexity", "format_prob", "format_tick", "language_map", "lookup_picture", "loss_curve",
    "mask_matrix", "merge_tree", "norm_scatter", "objective_color", "perplexity_name", "position_heatmap",
    "position_table", "probability_color", "rotation_plane", "running_perplexity",
    "signed_bars", "stream_lengths", "sum_picture", "surprisal_bars", "surprisal_color", "thin",
    "token_color", "token_lengths", "token_map", "token_uses", "turn_lengths", "visible", "visible_parts",
    "vocabulary_bars",
]  # fmt: skip
