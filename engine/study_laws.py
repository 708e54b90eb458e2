"""The laws of the scaling studies: fitted to runs, said in words, held against a run that they foretell."""

import math
from collections.abc import Sequence

from engine import scaling
from engine.experiments import LARGER
from engine.outcomes import Outcome
from engine.scaling import Interval, Law
from wording import words

say = words("engine.study_laws")

PER_CENT = 100.0


def split_larger(runs: Sequence[Outcome]) -> tuple[list[Outcome], Outcome | None]:
    """The runs that a law is fitted to, and the one that it foretells, if it was made."""
    larger = next((run for run in runs if run.label == LARGER), None)
    return [run for run in runs if run.label != LARGER], larger


def size_of(study: str, run: Outcome) -> float:
    """What a law of this study is a law of: weights, or tokens of text."""
    return float(run.parameters if study == "model-size" else run.train_tokens)


def loss_of(study: str, run: Outcome) -> float:
    """The loss that counts: the last one, or with little text the lowest, since it rises again."""
    return run.last("val_loss") if study == "model-size" else run.best()


def law_of(study: str, runs: Sequence[Outcome]) -> Law:
    """The law through the runs of a scaling study, the larger one left out.

    Raises:
        ValueError: one sentence, if there is none.
    """
    few = [run for run in split_larger(runs)[0] if not math.isnan(loss_of(study, run))]
    return scaling.fit([size_of(study, run) for run in few], [loss_of(study, run) for run in few])


def law_in_words(study: str, runs: Sequence[Outcome]) -> tuple[float, str]:
    """What twice the size takes away from the distance to the law's floor, percent, and the law in words."""
    law = law_of(study, runs)
    saved = law.saved_by_doubling * PER_CENT
    told = say(
        f"law.{study}",
        exponent=law.exponent,
        exponents=_between(scaling.exponent_interval(law)),
        saved=saved,
        floor=law.floor,
        floors=_between(scaling.floor_interval(law)),
    )
    return saved, " ".join([told, *_against_the_floor(law, runs)])


def _against_the_floor(law: Law, runs: Sequence[Outcome]) -> list[str]:
    truth, allowed = runs[0].floor, scaling.floor_interval(law)
    if math.isnan(truth):
        return []
    if truth in allowed:
        return [say("true_floor_inside", truth=truth)]
    if allowed.low > truth:
        return [say("floor_above_truth", truth=truth)]
    return [say("floor_below_truth", truth=truth)]


def _between(interval: Interval) -> str:
    low = say("or_less", value=interval.low) if interval.open_low else f"{interval.low:.2f}"
    high = say("or_more", value=interval.high) if interval.open_high else f"{interval.high:.2f}"
    return say("between", low=low, high=high)


def verdict_on_prediction(study: str, law: Law, larger: Outcome) -> str:
    """Whether the run that was foretold came out as the law said."""
    told, came = scaling.predict(law, size_of(study, larger)), loss_of(study, larger)
    where = "inside" if came in told else "below" if came < told.low else "above"
    return say(f"foretold.{where}", low=told.low, high=told.high, came=came)
