"""What the results of a study say: the answer to its question, and one conclusion in plain words.

Nothing here is known beforehand: every word follows from the losses, also where they contradict what is
usual.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine import scaling
from engine.experiments import LARGER, LEAKS
from engine.outcomes import Outcome
from engine.reading import number
from engine.scaling import Interval, Law
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
        lost = ", ".join(run.label for run in runs if run not in ended)
        raise ValueError(say("there_no_answer_ended", lost=lost))
    return _FINDERS[study](runs)


def split_larger(runs: Sequence[Outcome]) -> tuple[list[Outcome], Outcome | None]:
    """The runs that a law is fitted to, and the one that it foretells, if it was made."""
    larger = next((run for run in runs if run.label == LARGER), None)
    return [run for run in runs if run.label != LARGER], larger


# ---- the questions with a choice


def _held_out(runs: Sequence[Outcome]) -> Finding:
    small, large = runs
    best = min((r for r in small.evals if r["val_loss"] is not None), key=lambda r: r["val_loss"])
    last, train = small.last("val_loss"), small.last("train_loss")
    gap = large.last("val_loss") - large.last("train_loss")
    how_far = f"{abs(gap):.2f} nats" if abs(gap) >= 0.01 else say("less_than_0_01")
    apart = say("two_losses_ended_apart", label=large.label, how_far=how_far)
    if last - best["val_loss"] >= CLEAR and train < best["train_loss"]:
        return Finding(
            "rises",
            say("loss_fresh_stories_lowest", label=small.label, best=best['step'], best_2=best['val_loss'], last=last, train=train, apart=apart),
        )
    evals = small.evals
    earlier = number(evals[-min(len(evals), max(2, len(evals) // 4))].get("val_loss"))
    if last - train >= 0.2 and earlier - last < CLEAR:
        return Finding(
            "stops",
            say("loss_fresh_stories_stopped", label=small.label, last=last, train=train, apart=apart),
        )
    return Finding(
        "falls",
        say("both_losses_fell_end", label=small.label, train=train, last=last, apart=apart),
        usual=False,
    )


def _contamination(runs: Sequence[Outcome]) -> Finding:
    first, last = runs[0], runs[-1]
    if any(math.isnan(run.also("leaked")) for run in runs):
        raise ValueError(say("there_no_answer_test"))
    fell = {"leaked": first.also("leaked") - last.also("leaked")}
    fell["clean"] = first.last("val_loss") - last.last("val_loss")
    leaked, clean = (found for found in leak_curves([first, last])[1].values())
    words = (
        say("without_leak_perplexity_test", leaked=leaked[0], leaked_2=leaked[1], clean=clean[0], clean_2=clean[1])
    )
    if fell["leaked"] < CLEAR:
        return Finding("neither", words + say("leak_did_not_help"), usual=False)
    if fell["clean"] >= fell["leaked"] / 2:
        return Finding("both", words + say("leak_helped_new_text"), usual=False)
    return Finding(
        "leaked", words + say("model_has_read_text")
    )


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
        f"{run.label} "
        + (say("stopped_step_numbers_no", step=run.step + 1) if run.diverged
           else say("ended", last=run.last('val_loss')))
        for run in runs if run is not best
    ]  # fmt: skip
    words = (
        say("rate_ended_lowest_nats", label=best.label, last=best.last('val_loss'))
        + ", ".join(others) + "."
    )  # fmt: skip
    if high.diverged or high.last("val_loss") > 0.9 * math.log(high.model.vocab_size):
        return Finding("lost", words + say("steps_too_large_throw"))
    if high is best:
        return Finding("best", words + say("largest_rate_best_here"), usual=False)
    return Finding("worse", words + say("largest_rate_learned_but"), usual=False)


def ranked(runs: Sequence[Outcome], name: str = "val_loss") -> list[Outcome]:
    """Runs from the lowest number of the last evaluation up; those without one are left out."""
    return sorted((r for r in runs if not math.isnan(r.last(name))), key=lambda r: r.last(name))


def _context(runs: Sequence[Outcome]) -> Finding:
    order = ranked(runs)
    best, longest, shortest = order[0], runs[-1], runs[0]
    words = (
        say("loss_fell_nats", last=shortest.last('val_loss'), label=shortest.label, last_2=best.last('val_loss'), label_2=best.label)
    )
    if best is shortest:
        words = say("shortest_window_ended_lowest", label=best.label, last=best.last('val_loss'))
    if best is longest:
        every = list(runs) == order[::-1]
        how = say("more_text_look_back") if every else say("longest_window_ended_lowest")
        return Finding(best.label, words + how)
    behind = longest.last("val_loss") - best.last("val_loss")
    return Finding(
        best.label,
        words + say("longest_ended_nats_behind", label=longest.label, behind=behind),
        usual=False,
    )


def _shape(runs: Sequence[Outcome]) -> Finding:
    order = ranked(runs)
    best, second, worst = order[0], order[1], order[-1]
    spread = worst.last("val_loss") - best.last("val_loss")
    words = (
        say("nearly_equal_weights_steps", steps=best.train.steps, label=best.label, last=best.last('val_loss'), label_2=worst.label, last_2=worst.last('val_loss'))
    )
    if spread < CLEAR:
        return Finding(best.label, words + say("no_clear_difference_here"))
    if second.last("val_loss") - best.last("val_loss") < CLEAR:
        words += say("level", label=second.label)
    middle = best not in (runs[0], runs[-1])
    end = (
        say("neither_widest_nor_deepest")
        if middle
        else (say("widest_won") if best is runs[0] else say("deepest_won"))
    )
    return Finding(best.label, words + end, usual=middle)


def _tokenizer(runs: Sequence[Outcome]) -> Finding:
    by_byte, by_token = ranked(runs, "bits_per_byte"), ranked(runs)
    best, worst = by_byte[0], by_byte[-1]
    words = (
        say("bits_per_byte_best", label=best.label, last=best.last('bits_per_byte'), label_2=worst.label, last_2=worst.last('bits_per_byte'))
    )
    alike = _cut_alike(runs)
    if by_token[0] is best:
        told = words + say("loss_per_token_names") + alike
        return Finding(best.label, told, usual=False)
    wrong = by_token[0]  # less loss per token but more per byte: its tokens must be shorter
    return Finding(
        best.label,
        words + say("loss_per_token_would", label=wrong.label, last=wrong.last('val_loss'), token_bytes=token_bytes(wrong), token_bytes_2=token_bytes(best), alike=alike),
    )


def token_bytes(run: Outcome) -> float:
    """Mean length of a token of the held-out text, bytes: nats a token over nats a byte."""
    return run.last("val_loss") / (math.log(2) * run.last("bits_per_byte"))


def _cut_alike(runs: Sequence[Outcome]) -> str:
    """A warning if two vocabularies cut the text into pieces of the same length: then they are one result."""
    for first, second in pairwise(sorted(runs, key=token_bytes)):
        if token_bytes(second) < 1.05 * token_bytes(first):
            one, two = (run.label for run in runs if run in (first, second))
            return (
                say("cut_text_nearly_alike", upper=one[0].upper(), one=one[1:], two=two)
            )
    return ""


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
        raise ValueError(say("there_no_answer_floor"))
    done = {run.model.objective: progress(run) * PER_CENT for run in runs}
    words = (
        say("guessing_own_floor_next", done=done['clm'], done_2=done['mlm'], per_cent=PER_CENT * signals(mlm) / signals(clm))
    )
    ahead = done["clm"] - done["mlm"]
    if abs(ahead) < FEW_PERCENT:
        return Finding("same", words, usual=False)
    return Finding("clm" if ahead > 0 else "mlm", words, usual=ahead > 0)


# ---- laws


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


def _law(study: str) -> Callable[[Sequence[Outcome]], Finding]:
    thing = {"model-size": say("weights_take"), "text-size": say("text_takes")}[study]

    def found(runs: Sequence[Outcome]) -> Finding:
        law = law_of(study, runs)
        low, high = law.saved_by_doubling, scaling.exponent_interval(law)
        words = (
            say("law_exponent_fits_twice", exponent=law.exponent, between=_between(high), thing=thing, per_cent=PER_CENT * low, floor=law.floor, between_2=_between(scaling.floor_interval(law)))
        )
        return Finding(low * PER_CENT, words + _against_the_floor(law, runs))

    return found


def _against_the_floor(law: Law, runs: Sequence[Outcome]) -> str:
    truth, allowed = runs[0].floor, scaling.floor_interval(law)
    if math.isnan(truth):
        return ""
    if truth in allowed:
        return say("true_floor_these_stories", truth=truth)
    side = "above" if allowed.low > truth else "below"
    return (
        say("true_floor_these_stories_2", truth=truth, side=side)
    )


def _between(interval: Interval) -> str:
    low = f"{interval.low:.2f}" if not interval.open_low else say("less", low=interval.low)
    high = f"{interval.high:.2f}" if not interval.open_high else say("more", high=interval.high)
    return say("between", low=low, high=high)


def verdict_on_prediction(study: str, law: Law, larger: Outcome) -> str:
    """Whether the run that was foretold came out as the law said."""
    told, came = scaling.predict(law, size_of(study, larger)), loss_of(study, larger)
    words = say("law_foretold_nats_run", low=told.low, high=told.high, came=came)
    if came in told:
        return words + "inside."
    where = "below" if came < told.low else "above"
    return words + say("outside_law_did_not", where=where)


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
