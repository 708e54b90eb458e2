"""Components of the browser side: what Plotly and Streamlit's widgets can't do."""

from ui.components._shared import current, select
from ui.components.figure import show
from ui.components.head_grid import head_grid
from ui.components.live_curve import live_curve
from ui.components.token_strip import token_strip

__all__ = ["current", "head_grid", "live_curve", "select", "show", "token_strip"]
