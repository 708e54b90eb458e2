"""What the results of a study say: the answer to its question, and one conclusion in plain words.

Nothing here is known beforehand: every word follows from the losses, also where they contradict what is
usual.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine import study_laws
from engine.experiments import LEAKS
from engine.outcomes import Outcome
from engine.reading import number
from wording import words

say = words("engine.findings")

CLEAR = 0.03  # nats: a difference that one seed more or less rarely makes at these sizes
FEW_PERCENT = 3.0
PER_CENT = 100.0


@dataclass(frozen=True)
class Finding:
    """What came out.

    Attributes:
        answer: the answer to the study's question in the terms of the prediction: a choice or a number.
        words: the conclusion.
        usual: whether it is what is usually seen.
    """

    answer: str | float
    words: str
    usual: bool = True


def find(study: str, runs: Sequence[Outcome]) -> Finding:
    """What a study found.

    Args:
        study: its name.
        runs: all its runs, done, without the larger one.

    Raises:
        ValueError: one sentence, if the results allow no answer.
    """
    ended = [run for run in runs if not math.isnan(run.last("val_loss"))]
    if len(ended) < (1 if study == "learning-rate" else len(runs)):
        lost = ", ".join(run.name for run in runs if run not in ended)
        raise ValueError(say("no_answer", lost=lost))
    return _FINDERS[study](runs)


def _held_out(runs: Sequence[Outcome]) -> Finding:
    small, large = runs
    best = min((r for r in small.evals if r["val_loss"] is not None), key=lambda r: r["val_loss"])
    last, train = small.last("val_loss"), small.last("train_loss")
    gap = abs(large.last("val_loss") - large.last("train_loss"))
    apart = say("apart", run=large.name, nats=gap) if gap >= 0.01 else say("not_apart", run=large.name)
    told = {"run": small.name, "last": last, "train": train}
    if last - best["val_loss"] >= CLEAR and train < best["train_loss"]:
        words = say("loss.rises", **told, step=best["step"], best=best["val_loss"])
        return Finding("rises", f"{words} {apart}")
    evals = small.evals
    earlier = number(evals[-min(len(evals), max(2, len(evals) // 4))].get("val_loss"))
    if last - train >= 0.2 and earlier - last < CLEAR:
        return Finding("stops", f"{say('loss.stops', **told)} {apart}")
    return Finding("falls", f"{say('loss.falls', **told)} {apart}", usual=False)


def _contamination(runs: Sequence[Outcome]) -> Finding:
    first, last = runs[0], runs[-1]
    if any(math.isnan(run.also("leaked")) for run in runs):
        raise ValueError(say("not_scored"))
    fell = {"leaked": first.also("leaked") - last.also("leaked")}
    fell["clean"] = first.last("val_loss") - last.last("val_loss")
    leaked, clean = (found for found in leak_curves([first, last])[1].values())
    words = say("leak", without=leaked[0], with_all=leaked[1], clean=clean[0], clean_then=clean[1])
    if fell["leaked"] < CLEAR:
        return Finding("neither", f"{words} {say('leak_helped.neither')}", usual=False)
    if fell["clean"] >= fell["leaked"] / 2:
        return Finding("both", f"{words} {say('leak_helped.both')}", usual=False)
    return Finding("leaked", f"{words} {say('leak_helped.leaked')}")


def leak_curves(runs: Sequence[Outcome]) -> tuple[list[float], dict[str, list[float]]]:
    """Doses in percent, and the perplexity of the leaked text and of the fresh stories at each."""
    doses = [PER_CENT * LEAKS[run.label] for run in runs]
    leaked = [math.exp(run.also("leaked")) for run in runs]
    return doses, {"leaked": leaked, "clean": [math.exp(run.last("val_loss")) for run in runs]}


def _rates(runs: Sequence[Outcome]) -> Finding:
    done = [run for run in runs if not math.isnan(run.last("val_loss"))]
    best = min(done, key=lambda run: run.last("val_loss"))
    high = runs[-1]
    others = [
        say("rate_stopped", rate=run.name, step=run.step + 1)
        if run.diverged
        else say("rate_ended", rate=run.name, loss=run.last("val_loss"))
        for run in runs
        if run is not best
    ]
    words = say("rates", rate=best.name, loss=best.last("val_loss"), others=", ".join(others))
    if high.diverged or high.last("val_loss") > 0.9 * math.log(high.model.vocab_size):
        return Finding("lost", f"{words} {say('largest_rate.lost')}")
    if high is best:
        return Finding("best", f"{words} {say('largest_rate.best')}", usual=False)
    return Finding("worse", f"{words} {say('largest_rate.worse')}", usual=False)


def ranked(runs: Sequence[Outcome], name: str = "val_loss") -> list[Outcome]:
    """Runs from the lowest number of the last evaluation up; those without one are left out."""
    return sorted((r for r in runs if not math.isnan(r.last(name))), key=lambda r: r.last(name))


def _context(runs: Sequence[Outcome]) -> Finding:
    order = ranked(runs)
    best, longest, shortest = order[0], runs[-1], runs[0]
    lowest = best.last("val_loss")
    words = say(
        "loss_fell", first=shortest.last("val_loss"), shortest=shortest.name, lowest=lowest, best=best.name
    )
    if best is shortest:
        words = say("shortest_window", run=best.name, loss=lowest)
    if best is longest:
        every = list(runs) == order[::-1]
        how = say("helped_all_the_way") if every else say("longest_window")
        return Finding(best.label, f"{words} {how}")
    behind = say("longest_behind", run=longest.name, behind=longest.last("val_loss") - lowest)
    return Finding(best.label, f"{words} {behind}", usual=False)


def _shape(runs: Sequence[Outcome]) -> Finding:
    order = ranked(runs)
    best, second, worst = order[0], order[1], order[-1]
    lowest, highest = best.last("val_loss"), worst.last("val_loss")
    told = {"best": best.name, "lowest": lowest, "worst": worst.name, "highest": highest}
    words = [say("shapes", steps=best.train.steps, **told)]
    if highest - lowest < CLEAR:
        return Finding(best.label, " ".join([*words, say("shape_hardly_matters")]))
    if second.last("val_loss") - lowest < CLEAR:
        words.append(say("level_with_it", run=second.name))
    middle = best not in (runs[0], runs[-1])
    won = "middle" if middle else "widest" if best is runs[0] else "deepest"
    return Finding(best.label, " ".join([*words, say(f"shape_won.{won}")]), usual=middle)


def _tokenizer(runs: Sequence[Outcome]) -> Finding:
    by_byte, by_token = ranked(runs, "bits_per_byte"), ranked(runs)
    best, worst = by_byte[0], by_byte[-1]
    bits = {"bits": best.last("bits_per_byte"), "most_bits": worst.last("bits_per_byte")}
    words = [say("by_bits_per_byte", best=best.name, worst=worst.name, **bits)]
    alike = _cut_alike(runs)
    if by_token[0] is best:
        return Finding(best.label, " ".join([*words, say("per_token_too"), *alike]), usual=False)
    wrong = by_token[0]  # less loss per token but more per byte: its tokens must be shorter
    lengths = {"bytes": token_bytes(wrong), "best_bytes": token_bytes(best)}
    words.append(say("per_token_wrong", run=wrong.name, loss=wrong.last("val_loss"), **lengths))
    return Finding(best.label, " ".join([*words, *alike]))


def token_bytes(run: Outcome) -> float:
    """Mean length of a token of the held-out text, bytes: nats a token over nats a byte."""
    return run.last("val_loss") / (math.log(2) * run.last("bits_per_byte"))


def _cut_alike(runs: Sequence[Outcome]) -> list[str]:
    """A warning if two vocabularies cut the text into pieces of the same length: then they are one result."""
    for first, second in pairwise(sorted(runs, key=token_bytes)):
        if token_bytes(second) < 1.05 * token_bytes(first):
            one, two = (run.name for run in runs if run in (first, second))
            return [say("cut_alike", one=one[0].upper() + one[1:], two=two)]
    return []


def progress(run: Outcome) -> float:
    """How far a run has come from guessing (ln V) to the floor of its own objective: 0 to 1."""
    start = math.log(run.model.vocab_size)
    return (start - run.last("val_loss")) / (start - run.floor)


def signals(run: Outcome) -> float:
    """Positions that gave a signal: tokens read, times the share that is scored."""
    read = run.step * run.train.batch_size * run.model.context_length
    return read * (run.train.mask_prob if run.model.objective == "mlm" else 1.0)


def _objectives(runs: Sequence[Outcome]) -> Finding:
    clm, mlm = runs
    if math.isnan(clm.floor + mlm.floor):
        raise ValueError(say("no_floor"))
    done = {run.model.objective: progress(run) * PER_CENT for run in runs}
    scored = PER_CENT * signals(mlm) / signals(clm)
    words = say("way_to_floor", clm=done["clm"], mlm=done["mlm"], scored=scored)
    ahead = done["clm"] - done["mlm"]
    if abs(ahead) < FEW_PERCENT:
        return Finding("same", words, usual=False)
    return Finding("clm" if ahead > 0 else "mlm", words, usual=ahead > 0)


def _law(study: str) -> Callable[[Sequence[Outcome]], Finding]:
    return lambda runs: Finding(*study_laws.law_in_words(study, runs))


_FINDERS: dict[str, Callable[[Sequence[Outcome]], Finding]] = {
    "held-out": _held_out,
    "contamination": _contamination,
    "learning-rate": _rates,
    "context": _context,
    "shape": _shape,
    "tokenizer": _tokenizer,
    "model-size": _law("model-size"),
    "text-size": _law("text-size"),
    "objectives": _objectives,
}
