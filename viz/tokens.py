"""What texts cost in tokens: in one vocabulary against another, in one language against another."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count, format_number, format_tick
from viz.theme import (
    DIVERGING_COLORS,
    DIVERGING_SCALE,
    FONT_SIZE,
    INK,
    MODEL,
    NEUTRAL,
    color_bar,
    finish,
    frame_cells,
    ink_on,
    sample_scale,
)
from wording import words

say = words("viz.tokens")

_ROW = 30  # pixels for one row


def _rows(fig: go.Figure, names: Sequence[str], *, longest: int = 24) -> None:
    """Names by place on the y axis, first on top."""
    put_yaxes(
        fig,
        tickvals=list(range(len(names))),
        ticktext=[escape(clip(name, longest)) for name in names],
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
    )


@kept
def vocabulary_bars(
    names: Sequence[str],
    values: Sequence[float | None],
    *,
    unit: str,
    chosen: int | None = None,
    whole: bool = False,
) -> go.Figure:
    """One number for each vocabulary, as horizontal bars.

    Args:
        names: of the vocabularies, top to bottom; not escaped.
        values: one each; None where there is none.
        unit: title of the value axis.
        chosen: the row whose bar stands out.
        whole: whether the numbers are counts, written in full.
    """
    numbers = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    texts = [
        say("none") if v is None else format_count(int(v)) if whole else format_number(v) for v in values
    ]
    top = float(np.nanmax(numbers)) if np.isfinite(numbers).any() else 1.0
    fig = go.Figure(
        go.Bar(
            y=np.arange(len(numbers), dtype=np.int32),
            x=np.nan_to_num(numbers).astype(np.float32),
            orientation="h",
            marker_color=[MODEL if chosen in (None, i) else NEUTRAL for i in range(len(numbers))],
            text=[f"<b>{text} ◀</b>" if i == chosen else text for i, text in enumerate(texts)],
            textposition="outside",
            textfont={"size": FONT_SIZE, "color": INK},
            cliponaxis=False,
            customdata=[[escape(name), text] for name, text in zip(names, texts, strict=True)],
            hovertemplate="%{customdata[0]}<br>" + escape(unit) + ": %{customdata[1]}<extra></extra>",
        )
    )
    _rows(fig, names)
    put_xaxes(fig, title_text=escape(unit), range=[0, max(top, 1e-9) * 1.32], nticks=5)
    listed = "; ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=True))
    alt = say("bars", unit=unit, listed=listed)
    return finish(fig, height=len(names) * _ROW + 62, alt=alt, showlegend=False)


@kept
def language_map(
    languages: Sequence[str],
    vocabularies: Sequence[str],
    counts: ArrayLike,
    *,
    reference: int = 0,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """How many times as many tokens a text has in each language as in the reference language.

    Colour is the base-2 logarithm of the ratio: the palest is as many, each doubling is one step.

    Args:
        languages: row names, top to bottom; not escaped.
        vocabularies: column names; not escaped.
        counts: (languages, vocabularies) tokens.
        reference: row of the language that all others are compared with.
        chosen: (row, column) of the cell that is framed.
    """
    n = np.asarray(counts, dtype=np.float64)
    ratios = n / n[reference]
    z = np.log2(ratios)
    most = max(1.0, float(np.abs(z).max()))
    fig = go.Figure(
        go.Heatmap(
            z=z.astype(np.float32),
            x=np.arange(n.shape[1], dtype=np.int32),
            y=np.arange(n.shape[0], dtype=np.int32),
            colorscale=DIVERGING_SCALE,
            zmin=-most,
            zmax=most,
            xgap=2,
            ygap=2,
            customdata=_hovers(languages, vocabularies, n, ratios, reference),
            hovertemplate="%{customdata}<extra></extra>",
            colorbar=_ratio_bar(most, languages[reference]),
        )
    )
    fig.add_trace(_ratio_texts(ratios, z, most))
    if chosen is not None:
        r, c = chosen
        frame_cells(fig, (c, c), (r, r), INK)
    _rows(fig, languages)
    put_yaxes(fig, title_text=say("language"))
    put_xaxes(
        fig,
        title_text=say("vocabulary"),
        tickvals=list(range(n.shape[1])),
        ticktext=[_two_lines(escape(clip(name, 24))) for name in vocabularies],
        side="top",
        range=[-0.5, n.shape[1] - 0.5],
        showgrid=False,
    )
    worst = divmod(int(ratios.argmax()), ratios.shape[1])
    alt = say(
        "map",
        n_languages=len(languages),
        n_vocabularies=len(vocabularies),
        reference=languages[reference],
        language=languages[worst[0]],
        vocabulary=vocabularies[worst[1]],
        ratio=format_number(ratios[worst], 2),
    )
    return finish(fig, height=len(languages) * _ROW + 150, alt=alt)


def _two_lines(name: str) -> str:
    return name.replace(": ", ":<br>").replace(", ", ",<br>")


def _hovers(
    languages: Sequence[str], vocabularies: Sequence[str], n: np.ndarray, ratios: np.ndarray, reference: int
) -> list[list[str]]:
    return [
        [
            say(
                "cell",
                language=escape(language),
                vocabulary=escape(name),
                tokens=format_count(int(n[r, c])),
                reference=escape(languages[reference]),
                reference_tokens=format_count(int(n[reference, c])),
                ratio=format_number(ratios[r, c], 4),
            )
            for c, name in enumerate(vocabularies)
        ]
        for r, language in enumerate(languages)
    ]


def _ratio_texts(ratios: np.ndarray, z: np.ndarray, most: float) -> go.Scatter:
    """The ratio on each cell, in the ink that can be read there."""
    rows, columns = np.indices(ratios.shape)
    shares = ((z + most) / (2 * most)).ravel()
    return go.Scatter(
        x=columns.ravel(),
        y=rows.ravel(),
        text=[format_number(x, 2) for x in ratios.ravel()],
        mode="text",
        textfont={"size": 13, "color": [ink_on(sample_scale(DIVERGING_COLORS, s)) for s in shares]},
        hoverinfo="skip",
        showlegend=False,
        name="cells",
    )


def _ratio_bar(most: float, reference: str) -> dict[str, object]:
    steps = range(-int(most), int(most) + 1)
    return color_bar(say("times_as_many", reference=escape(reference))) | {
        "tickvals": list(steps),
        "ticktext": [f"{format_tick(2.0**k)}×" for k in steps],
    }
