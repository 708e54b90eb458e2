"""Pictures of the studies: a loss at each setting, two texts at each dose, two measures side by side."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from viz.curves import Reference, reference_line
from viz.put import put_xaxes, put_yaxes
from viz.text import escape, format_number
from viz.theme import MODEL, NEUTRAL, TRUE, VALID, finish
from wording import words

say = words("viz.experiments")


def loss_at(
    names: Sequence[str],
    losses: Sequence[float],
    *,
    x_title: str,
    floor: float | None = None,
    best: int | None = None,
) -> go.Figure:
    """The last loss of each run, from left to right by what differs between them.

    Args:
        names: of the settings.
        losses: nats per token.
        x_title: what differs.
        floor: what the true source scores, or None.
        best: which one ended lowest: a diamond.
    """
    x = np.arange(len(names), dtype=np.int32)
    fig = go.Figure(
        go.Scatter(
            x=x,
            y=np.asarray(losses, np.float64),
            mode="lines+markers+text",
            line={"color": NEUTRAL, "width": 1.5, "dash": "dot"},
            marker={
                "size": [17 if i == best else 12 for i in x],
                "color": MODEL,
                "opacity": 1,
                "symbol": ["diamond" if i == best else "circle" for i in x],
            },
            text=[format_number(v) for v in losses],
            textposition="top center",
            cliponaxis=False,
            customdata=[escape(name) for name in names],
            hovertemplate="%{customdata}: %{y:.6g} " + say("nats") + "<extra></extra>",
        )
    )
    seen = [*losses, *([floor] if floor is not None else [])]
    pad = 0.16 * ((max(seen) - min(seen)) or 0.1)
    put_xaxes(
        fig,
        title_text=x_title,
        tickvals=x,
        ticktext=[_two_lines(name) for name in names],
        tickangle=0,
        range=[-0.4, len(names) - 0.6],
    )
    put_yaxes(fig, title_text=say("last_loss_axis"), range=[min(seen) - pad, max(seen) + pad])
    if floor is not None:
        reference_line(fig, Reference(floor, say("floor"), "floor"), log_y=False)
    said = ", ".join(f"{name} {format_number(v)}" for name, v in zip(names, losses, strict=True))
    return finish(fig, height=360, alt=say("last_loss_alt", x_title=x_title, said=said), showlegend=False)


def _two_lines(name: str) -> str:
    """A name broken at the space nearest to its middle, so that a phone turns none and leaves none out.

    >>> _two_lines("8 layers of 32")
    '8 layers<br>of 32'
    """
    spaces = [i for i, character in enumerate(name) if character == " "]
    if not spaces:
        return escape(name)
    at = min(spaces, key=lambda i: abs(2 * i + 1 - len(name)))
    return f"{escape(name[:at])}<br>{escape(name[at + 1 :])}"


def leak_figure(
    doses: Sequence[float], leaked: Sequence[float], clean: Sequence[float], floor: float | None = None
) -> go.Figure:
    """Perplexity of the test text that leaked, and of a clean one, at each dose.

    Args:
        doses: percent of the test text that is in the training text.
        leaked: perplexity of the test text at each dose.
        clean: of the clean one.
        floor: perplexity of the true source on the test text, or None.
    """
    fig = go.Figure()
    for name, values, color, symbol, dash in (
        (say("fresh_stories"), clean, VALID, "circle", "solid"),
        (say("leaked_text"), leaked, "#B33C9C", "diamond", "dash"),
    ):
        fig.add_trace(
            go.Scatter(
                x=list(doses), y=list(values), mode="lines+markers+text", name=name,
                line={"color": color, "width": 2.5, "dash": dash}, marker={"size": 12, "symbol": symbol},
                text=[format_number(v) for v in values],
                textposition=[
                    "top center" if mine >= other else "bottom center"
                    for mine, other in zip(values, leaked if values is clean else clean, strict=True)
                ],
                cliponaxis=False,
                hovertemplate=say("leak_hover", name=name) + "<extra></extra>",
            )
        )  # fmt: skip
    seen = [*leaked, *clean, *([floor] if floor is not None else [])]
    pad = 0.18 * ((max(seen) - min(seen)) or 0.1)
    put_xaxes(fig, title_text=say("leak_axis"), tickvals=list(doses), range=[-9, 109])
    put_yaxes(fig, title_text=say("perplexity"), range=[min(seen) - pad, max(seen) + pad])
    if floor is not None:
        reference_line(fig, Reference(floor, say("true_source"), "floor"), log_y=False)
    ends = {
        "leaked": format_number(leaked[0]),
        "leaked_then": format_number(leaked[-1]),
        "clean": format_number(clean[0]),
        "clean_then": format_number(clean[-1]),
    }
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    return finish(fig, height=380, alt=say("leak_alt", **ends), legend=legend, showlegend=True)


def two_measures(
    names: Sequence[str],
    per_byte: Sequence[float],
    per_token: Sequence[float],
    *,
    floors: tuple[Sequence[float], Sequence[float]] | None = None,
) -> go.Figure:
    """Vocabularies by bits per byte, which can be compared, and by loss per token, which can't.

    Args:
        names: of the vocabularies.
        per_byte: bits per byte.
        per_token: nats per token.
        floors: what the true source scores with each, by byte and by token.
    """
    titles = (say("bits_per_byte_title"), say("nats_per_token_title"))
    units = (say("bits_per_byte"), say("nats_per_token"))
    fig = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.06)
    y = np.arange(len(names), dtype=np.int32)
    for column, (title, unit, values, color) in enumerate(
        zip(titles, units, (per_byte, per_token), (MODEL, NEUTRAL), strict=True), start=1
    ):
        fig.add_trace(
            go.Bar(
                x=list(values), y=y, orientation="h", marker={"color": color}, name=title,
                text=[format_number(v) for v in values], textposition="outside", cliponaxis=False,
                customdata=[escape(name) for name in names],
                hovertemplate=f"%{{customdata}}: %{{x:.6g}} {unit}<extra></extra>",
            ),
            row=1, col=column,
        )  # fmt: skip
        put_xaxes(fig, (1, column), title_text=title, range=[0, 1.25 * max(values)])
        if floors is not None:
            fig.add_trace(
                go.Scatter(
                    x=list(floors[column - 1]), y=y, mode="markers", name=say("the_true_source"),
                    showlegend=column == 1,
                    marker={"symbol": "line-ns-open", "size": 22, "color": TRUE,
                            "line": {"width": 3, "color": TRUE}},
                    hovertemplate=say("the_true_source") + ": %{x:.6g}<extra></extra>",
                ),
                row=1, col=column,
            )  # fmt: skip
    put_yaxes(fig, tickvals=y, ticktext=[escape(name) for name in names], range=[len(names) - 0.4, -0.6])
    said = ", ".join(f"{name} {format_number(v)}" for name, v in zip(names, per_byte, strict=True))
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    fig = finish(
        fig,
        height=126 + 52 * len(names),
        alt=say("two_measures_alt", said=said),
        legend=legend,
    )
    fig.update_traces(showlegend=False, selector={"type": "bar"})
    return fig
