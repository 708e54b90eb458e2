"""Figures: arrays and strings in, Plotly figures out. Knows neither the model nor the screen."""

from viz.attention import attention_map, mask_matrix
from viz.curves import Reference, Series, loss_curve, running_perplexity, surprisal_bars, thin
from viz.distributions import distribution_bars, position_heatmap, sampling_stages
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

__all__ = [
    "CAUSAL", "CONFIG", "DIVERGING_SCALE", "MASKED", "MODEL", "NEUTRAL", "PROBABILITY_SCALE",
    "SURPRISAL_SCALE", "TOKEN_COLORS", "TRAIN", "TRUE", "VALID", "Reference", "Series", "alt_text",
    "attention_map", "clip", "distribution_bars", "escape", "format_bits", "format_count",
    "format_nats", "format_number", "format_perplexity", "format_prob", "format_tick", "loss_curve",
    "mask_matrix", "objective_color", "perplexity_name", "position_heatmap", "probability_color",
    "running_perplexity", "sampling_stages", "surprisal_bars", "surprisal_color", "thin",
    "token_color", "visible", "visible_parts",
]  # fmt: skip
