"""Components of the browser side: what Plotly and Streamlit's widgets can't do."""

from ui.components._shared import current, select
from ui.components.copy_text import copy_text
from ui.components.figure import show
from ui.components.head_grid import head_grid
from ui.components.live_curve import curve_code, live_curve
from ui.components.merge_chips import merge_chips
from ui.components.stage_bars import stage_bars
from ui.components.token_strip import token_strip
from ui.components.token_table import token_table
from ui.components.token_tree import token_tree

__all__ = [
    "copy_text", "current", "curve_code", "head_grid", "live_curve", "merge_chips", "select", "show",
    "stage_bars", "token_strip", "token_table", "token_tree",
]  # fmt: skip
