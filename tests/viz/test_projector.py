"""Figures for a projector: every letter larger, the same numbers."""

import plotly.graph_objects as go
import pytest

from viz.projector import FACTOR, enlarge


def test_all_letters_grow_and_the_numbers_stay() -> None:
    fig = go.Figure(go.Bar(x=[0, 1], y=[0.25, 0.75], textfont={"size": 12}))
    fig.update_layout(font_size=14, height=400, margin={"l": 10, "t": 20}, legend_font_size=14)
    fig.update_xaxes(tickfont_size=14, title={"text": "token", "font": {"size": 16}})
    fig.add_annotation(text="note", x=0, y=0, font={"size": 12})
    made = enlarge(fig)
    assert made.data[0].textfont.size == round(12 * FACTOR, 1)
    assert made.layout.xaxis.title.font.size == round(16 * FACTOR, 1)
    assert made.layout.annotations[0].font.size == round(12 * FACTOR, 1)
    assert (made.layout.font.size, made.layout.legend.font.size) == (round(14 * FACTOR, 1),) * 2
    assert list(made.data[0].y) == [0.25, 0.75]
    assert made.layout.height > 400 and made.layout.margin.l > 10
    assert fig.layout.font.size == 14 and fig.data[0].textfont.size == 12, "the figure itself stays"


@pytest.mark.parametrize(("n", "angle"), [(10, -45), (11, -90)])
def test_many_names_that_lean_stand_upright(n: int, angle: int) -> None:
    fig = go.Figure(go.Heatmap(z=[[0.0] * n]), layout={"height": 400})
    fig.update_xaxes(tickvals=list(range(n)), ticktext=["princess"] * n, tickangle=-45)
    fig.update_yaxes(scaleanchor="x")
    made = enlarge(fig)
    assert made.layout.xaxis.tickangle == angle and fig.layout.xaxis.tickangle == -45
    assert made.layout.height == 400 + (24 if angle == -90 else 0)


def test_a_square_grows_only_by_its_letters() -> None:
    """The screen's width bounds it: a taller figure had a hole above the map."""
    fig = go.Figure(go.Heatmap(z=[[0.0]]), layout={"height": 400, "margin": {"t": 20, "b": 40}})
    fig.update_yaxes(scaleanchor="x")
    made = enlarge(fig)
    assert made.layout.height == 400 + (27 - 20) + (54 - 40) and fig.layout.height == 400
