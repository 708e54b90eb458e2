"""Another value for whatever control stands on a page, as a student would choose it."""

import random
from typing import Any

from streamlit.proto.Slider_pb2 import Slider

from benchmarks.client import Tab

# The controls that lookers turn, by page. Those that a page does not show just now are passed over.
CONTROLS: dict[str, tuple[str, ...]] = {
    "next_token": ("unit", "measure", "bars", "look"),
    "attention": ("attention_bright", "attention_arithmetic"),
    "inside": ("inside", "inside_cells", "inside_layer"),
    "embeddings": ("vectors", "embeddings_dim_128"),
    "masking": ("masking_share", "masking_seed", "hide"),
    "compare": ("other", "compare_unit"),
    "generation": ("temperature", "top_p", "min_p", "generation_view"),
    "examples": ("example", "real"),
    "glossary": ("glossary_index",),
    "models": ("look_at",),
    "exercises": ("topic",),
    "tokens": ("view", "tokens_vocabulary"),
}
STRIPS = {  # tokens to click on, by page
    "next_token": "next_token_strip",
    "attention": "attention_query",
    "inside": "inside_pos",
    "embeddings": "embeddings_strip",
    "compare": "compare_strip",
}


def other_value(tab: Tab, key: str, dice: random.Random) -> Any:
    """A value that a control does not have now; None if it has no other."""
    kind, widget = tab.widget(key)
    now = tab.value(key)
    if kind == "checkbox":
        return not now
    if kind == "slider" and widget.type != Slider.Type.SELECT_SLIDER:
        n = round((widget.max - widget.min) / widget.step)
        return round(widget.min + widget.step * dice.randint(0, n), 6)
    if kind == "number_input":
        step = widget.step or 1
        low, high = max(widget.min, now - 5 * step), min(widget.max, now + 5 * step)
        return round(low + step * dice.randint(0, max(0, round((high - low) / step))), 6)
    options = [getattr(option, "content", option) for option in widget.options]
    left = [option for option in options if option not in (now, *(now if isinstance(now, list) else ()))]
    return dice.choice(left) if left else None
