"""The result of a scaling study: the law, the run that it foretells, and whether that came true."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine import scaling, study_laws
from engine.outcomes import Outcome
from engine.scaling import Interval, Law
from ui import worked_experiments
from ui.components import show
from ui.words import literal
from viz import format_number
from viz.scaling import Foretold, LawLines, law_figure
from wording import words

say = words("ui.experiment_law")

STUDIES = ("model-size", "text-size")
BAND_POINTS = 16


@st.cache_resource(max_entries=16, show_spinner=say.later("fitting"))
def _law(
    sizes: tuple[float, ...], losses: tuple[float, ...], further: float
) -> tuple[Law, LawLines, Interval]:
    """The law, its lines up to a further size, and what it foretells there."""
    law = scaling.fit(sizes, losses)
    along = np.geomspace(min(sizes), max(*sizes, further) * 1.1, BAND_POINTS)
    spans = [scaling.predict(law, float(size)) for size in along]
    lines = LawLines(along, law(along), [s.low for s in spans], [s.high for s in spans], law.floor)
    return law, lines, scaling.predict(law, further)


@dataclass(frozen=True, eq=False)
class LawResult:
    """A law with the runs that it was fitted to, and the run that it foretells.

    Attributes:
        study: its name.
        law, lines: fitted, and as they are drawn.
        told: where the larger run will lie.
        few: the runs of the fit.
        larger: the one that is foretold, once it is done.
        further: its size.
    """

    study: str
    law: Law
    lines: LawLines
    told: Interval
    few: Sequence[Outcome]
    larger: Outcome | None
    further: float


def read(study: str, runs: Sequence[Outcome], further: float) -> LawResult:
    """The law of a study.

    Args:
        study: its name.
        runs: all its runs; the larger one may be missing.
        further: size of the larger one.

    Raises:
        ValueError: one sentence, if there is no law.
    """
    few, larger = study_laws.split_larger(runs)
    few = [run for run in few if not math.isnan(study_laws.loss_of(study, run))]
    sizes = tuple(study_laws.size_of(study, run) for run in few)
    losses = tuple(study_laws.loss_of(study, run) for run in few)
    law, lines, told = _law(sizes, losses, further)
    done = larger if larger is not None and larger.done else None
    return LawResult(study, law, lines, told, few, done, further)


def picture(found: LawResult, key: str) -> None:
    """The runs, the law, and what it foretells."""
    came = None if found.larger is None else study_laws.loss_of(found.study, found.larger)
    floor = found.few[0].floor
    show(
        law_figure(
            found.law.sizes, found.law.losses, [run.name for run in found.few], found.lines,
            x_title=say(f"x_title.{found.study}"), floor=None if math.isnan(floor) else floor,
            foretold=Foretold(found.further, found.told.low, found.told.high, came),
        ),
        key=key,
    )  # fmt: skip


def tell(found: LawResult) -> None:
    """What the law foretells, or whether that came true; and the law with its numbers."""
    if found.larger is not None:
        st.markdown(f"**{literal(study_laws.verdict_on_prediction(found.study, found.law, found.larger))}**")
    else:
        told = {"low": found.told.low, "high": found.told.high, "size": format_number(found.further)}
        st.markdown(say(f"foretells.{found.study}", **told))
    with st.expander(say("law_with_numbers")):
        law = found.law
        st.latex(worked_experiments.law(law.floor, law.coefficient, law.exponent, found.further))
        st.caption(say("how_it_is_fitted"))
