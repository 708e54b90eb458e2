"""The result of a scaling study: the law, the run that it foretells, and whether that came true."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine import findings, scaling
from engine.outcomes import Outcome
from engine.scaling import Interval, Law
from ui import worked_experiments
from ui.components import show
from ui.words import literal
from viz import format_number
from viz.scaling import Foretold, LawLines, law_figure

X_TITLES = {"model-size": "weights", "text-size": "tokens of different text"}
BAND_POINTS = 16


@st.cache_resource(max_entries=16, show_spinner="Fitting the law …")
def _law(
    sizes: tuple[float, ...], losses: tuple[float, ...], further: float
) -> tuple[Law, LawLines, Interval]:
    """The law, its lines up to a further size, and what it foretells there."""
    law = scaling.fit(sizes, losses)
    along = np.geomspace(min(sizes), max(*sizes, further) * 1.1, BAND_POINTS)
    spans = [scaling.predict(law, float(size)) for size in along]
    lines = LawLines(along, law(along), [s.low for s in spans], [s.high for s in spans], law.floor)
    return law, lines, scaling.predict(law, further)


def draw(study: str, runs: Sequence[Outcome], further: float, key: str) -> None:
    """The picture, and the law with its numbers.

    Args:
        study: its name.
        runs: all its runs; the larger one may be missing.
        further: size of the larger one.
        key: of the chart.

    Raises:
        ValueError: one sentence, if there is no law.
    """
    few, larger = findings.split_larger(runs)
    few = [run for run in few if not math.isnan(findings.loss_of(study, run))]
    sizes = tuple(findings.size_of(study, run) for run in few)
    losses = tuple(findings.loss_of(study, run) for run in few)
    law, lines, told = _law(sizes, losses, further)
    came = findings.loss_of(study, larger) if larger is not None and larger.done else None
    foretold = Foretold(further, told.low, told.high, came)
    floor = None if math.isnan(few[0].floor) else few[0].floor
    show(
        law_figure(
            sizes, losses, [run.label for run in few], lines,
            x_title=X_TITLES[study], floor=floor, foretold=foretold,
        ),
        key=key,
    )  # fmt: skip
    if larger is not None and came is not None:
        st.markdown(f"**{literal(findings.verdict_on_prediction(study, law, larger))}**")
    else:
        st.markdown(
            f"**The law foretells {told.low:.2f} to {told.high:.2f} nats for "
            f"{format_number(further)} {X_TITLES[study]}** (95 % of such runs)."
        )
    with st.expander("The law with today’s numbers"):
        st.latex(worked_experiments.law(law.floor, law.coefficient, law.exponent, further))
        st.caption(
            "E, A and α are fitted by least squares of the relative errors. The intervals hold 95 % and "
            "come from "
            "how much worse the fit gets when a number is held elsewhere."
        )
