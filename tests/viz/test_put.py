"""Properties set at once are those that Plotly's own, slower functions set one by one."""

import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from viz.put import merged, nested, put, put_xaxes, put_yaxes

LAYOUT = {
    "height": 200,
    "margin_r": 30,
    "margin": {"t": 4},
    "legend_font": {"size": 9},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "hoverlabel_bgcolor": "#FFFFFF",
    "meta": {"alt": "a_b", "x_y": 1},
    "xaxis": {"title_text": "p", "tickvals": [0, 1]},
    "yaxis2": {"overlaying": "y", "side": "right"},
}
AXIS = {"title_text": "p", "title_font_size": 11, "tickfont": {"size": 9}, "range": [3, 0], "type": "log"}


def begun() -> go.Figure:
    return go.Figure(
        go.Scatter(x=[1], y=[2]),
        layout={"margin": {"l": 1, "r": 2}, "xaxis": {"title": {"standoff": 5}}, "meta": {"alt": "old"}},
    )


def test_a_layout_is_set_as_by_plotly():
    ours, plotlys = begun(), begun()
    put(ours, **LAYOUT)
    plotlys.update_layout(**LAYOUT)
    assert ours.to_plotly_json() == plotlys.to_plotly_json()
    assert ours.layout.margin.l == 1 and ours.layout.margin.r == 30 and ours.layout.meta["x_y"] == 1


@pytest.mark.parametrize("at", [None, (1, 2), (2, 1)])
@pytest.mark.parametrize("kind", ["x", "y"])
def test_axes_are_set_as_by_plotly_all_or_one(kind, at):
    ours, plotlys = (make_subplots(2, 2, figure=begun()) for _ in range(2))
    {"x": put_xaxes, "y": put_yaxes}[kind](ours, at, **AXIS)
    where = {} if at is None else {"row": at[0], "col": at[1]}
    {"x": plotlys.update_xaxes, "y": plotlys.update_yaxes}[kind](**AXIS, **where)
    assert ours.to_plotly_json() == plotlys.to_plotly_json()
    assert sum(ours.layout[f"{kind}axis{n}"].type == "log" for n in ("", 2, 3, 4)) == (4 if at is None else 1)


def test_a_name_that_plotly_does_not_know_is_an_error():
    with pytest.raises(ValueError):
        put(begun(), colour="red")
    with pytest.raises(ValueError):
        put_xaxes(begun(), titel_text="p")


def test_nothing_given_is_changed():
    old, new = {"a": {"x": 1}}, {"a": {"y": 2}}
    assert merged(old, new) == {"a": {"x": 1, "y": 2}}
    assert old == {"a": {"x": 1}} and new == {"a": {"y": 2}}
    assert nested({"a_x": 1, "a": {"y_z": 2}}) == {"a": {"x": 1, "y": {"z": 2}}}
