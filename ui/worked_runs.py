"""Formulas for runs with several seeds, with their numbers put in."""

import math

from engine.seed_spread import Contrast, Spread
from ui.worked import aligned, rounded, tex, tie


def margin(contrast: Contrast, first: Spread, second: Spread) -> str:
    """How far chance moves a difference: t · s · sqrt(1/n + 1/m), of two samples with one variance."""
    n, m = first.n, second.n

    def compute(t: float, s: float) -> float:
        return t * s * math.sqrt(1 / n + 1 / m)

    digits = tie(compute, contrast.student, contrast.pooled, digits=3)
    t, s = (tex(rounded(x, digits), digits) for x in (contrast.student, contrast.pooled))
    root = rf"\sqrt{{\tfrac1{{{n}}} + \tfrac1{{{m}}}}}"
    return aligned(
        rf"& t \cdot s \cdot {root}",
        rf"&= {t} \cdot {s} \cdot {root}",
        rf"&= {tex(contrast.margin, 3)}",
    )
