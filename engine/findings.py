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
        raise ValueError(f"There is no answer: {lost} ended without a finite loss. Run the study again.")
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
    how_far = f"{abs(gap):.2f} nats" if abs(gap) >= 0.01 else "less than 0.01 nats"
    apart = f"With {large.label} the two losses ended {how_far} apart."
    if last - best["val_loss"] >= CLEAR and train < best["train_loss"]:
        return Finding(
            "rises",
            f"With {small.label} the loss on fresh stories was lowest at step {best['step']:,} "
            f"({best['val_loss']:.2f} nats) and rose to {last:.2f}, while the loss in training fell on to "
            f"{train:.2f}: from there the model learned its text by heart. {apart}",
        )
    evals = small.evals
    earlier = number(evals[-min(len(evals), max(2, len(evals) // 4))].get("val_loss"))
    if last - train >= 0.2 and earlier - last < CLEAR:
        return Finding(
            "stops",
            f"With {small.label} the loss on fresh stories stopped at {last:.2f} nats while that in training "
            f"fell to {train:.2f}: what it learned last was its own text. {apart}",
        )
    return Finding(
        "falls",
        f"With {small.label} both losses fell to the end, to {train:.2f} in training and {last:.2f} on fresh "
        f"stories: this run was too short to learn its text by heart. {apart}",
        usual=False,
    )


def _contamination(runs: Sequence[Outcome]) -> Finding:
    first, last = runs[0], runs[-1]
    if any(math.isnan(run.also("leaked")) for run in runs):
        raise ValueError("There is no answer: the test text was not scored. Run the study again.")
    fell = {"leaked": first.also("leaked") - last.also("leaked")}
    fell["clean"] = first.last("val_loss") - last.last("val_loss")
    leaked, clean = (found for found in leak_curves([first, last])[1].values())
    words = (
        f"Without a leak the perplexity of the test text is {leaked[0]:.2f}; with all of it in the training "
        f"text it is {leaked[1]:.2f}. A clean text of the same kind went from {clean[0]:.2f} to "
        f"{clean[1]:.2f}. "
    )
    if fell["leaked"] < CLEAR:
        return Finding("neither", words + "The leak did not help here.", usual=False)
    if fell["clean"] >= fell["leaked"] / 2:
        return Finding("both", words + "So the leak helped with new text too.", usual=False)
    return Finding(
        "leaked", words + "The model has read that text before: the low number says nothing of new text."
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
        + (f"stopped at step {run.step + 1:,}, its numbers no longer finite" if run.diverged
           else f"ended at {run.last('val_loss'):.2f}")
        for run in runs if run is not best
    ]  # fmt: skip
    words = (
        f"The rate {best.label} ended lowest, at {best.last('val_loss'):.2f} nats; "
        + ", ".join(others) + "."
    )  # fmt: skip
    if high.diverged or high.last("val_loss") > 0.9 * math.log(high.model.vocab_size):
        return Finding("lost", words + " Steps that are too large throw the weights about instead of down.")
    if high is best:
        return Finding("best", words + " The largest rate was the best here.", usual=False)
    return Finding("worse", words + " The largest rate learned, but it ended worse.", usual=False)


def ranked(runs: Sequence[Outcome], name: str = "val_loss") -> list[Outcome]:
    """Runs from the lowest number of the last evaluation up; those without one are left out."""
    return sorted((r for r in runs if not math.isnan(r.last(name))), key=lambda r: r.last(name))


def _context(runs: Sequence[Outcome]) -> Finding:
    order = ranked(runs)
    best, longest, shortest = order[0], runs[-1], runs[0]
    words = (
        f"The loss fell from {shortest.last('val_loss'):.2f} nats with {shortest.label} to "
        f"{best.last('val_loss'):.2f} with {best.label}. "
    )
    if best is shortest:
        words = f"The shortest window, {best.label}, ended lowest, at {best.last('val_loss'):.2f} nats. "
    if best is longest:
        every = list(runs) == order[::-1]
        how = "More text to look back on helped all the way." if every else "The longest window ended lowest."
        return Finding(best.label, words + how)
    behind = longest.last("val_loss") - best.last("val_loss")
    return Finding(
        best.label,
        words + f"The longest, {longest.label}, ended {behind:.2f} nats behind: it reads fewer rows a step, "
        "and in so few steps the wider view did not make up for that.",
        usual=False,
    )


def _shape(runs: Sequence[Outcome]) -> Finding:
    order = ranked(runs)
    best, second, worst = order[0], order[1], order[-1]
    spread = worst.last("val_loss") - best.last("val_loss")
    words = (
        f"With nearly equal weights and {best.train.steps:,} steps each, {best.label} ended lowest, at "
        f"{best.last('val_loss'):.2f} nats; "
        f"{worst.label} ended highest, at {worst.last('val_loss'):.2f}. "
    )
    if spread < CLEAR:
        return Finding(best.label, words + "That is no clear difference: here the shape hardly matters.")
    if second.last("val_loss") - best.last("val_loss") < CLEAR:
        words += f"{second.label} is level with it. "
    middle = best not in (runs[0], runs[-1])
    end = (
        "Neither the widest nor the deepest won."
        if middle
        else ("The widest won." if best is runs[0] else "The deepest won.")
    )
    return Finding(best.label, words + end, usual=middle)


def _tokenizer(runs: Sequence[Outcome]) -> Finding:
    by_byte, by_token = ranked(runs, "bits_per_byte"), ranked(runs)
    best, worst = by_byte[0], by_byte[-1]
    words = (
        f"By bits per byte {best.label} is best ({best.last('bits_per_byte'):.3f}) and {worst.label} last "
        f"({worst.last('bits_per_byte'):.3f}). "
    )
    alike = _cut_alike(runs)
    if by_token[0] is best:
        told = words + "Loss per token names the same one here, but it need not." + alike
        return Finding(best.label, told, usual=False)
    wrong = by_token[0]  # less loss per token but more per byte: its tokens must be shorter
    return Finding(
        best.label,
        words + f"Loss per token would name {wrong.label} ({wrong.last('val_loss'):.2f} nats): its tokens "
        f"are shorter, {token_bytes(wrong):.1f} bytes against {token_bytes(best):.1f}, and hold less to "
        f"guess.{alike}",
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
                f" {one[0].upper()}{one[1:]} and {two} cut this text nearly alike: what lies between those "
                "two may be chance."
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
        raise ValueError("There is no answer: the floor of a run is not known. Run the study again.")
    done = {run.model.objective: progress(run) * PER_CENT for run in runs}
    words = (
        f"From guessing to its own floor, next token came {done['clm']:.0f} % of the way and hidden tokens "
        f"{done['mlm']:.0f} %. Both read the same number of tokens, but hidden tokens were scored at "
        f"{PER_CENT * signals(mlm) / signals(clm):.0f} % of the positions. The two losses measure different "
        "things, so only each way to its own floor is compared."
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
    thing = {"model-size": "weights take", "text-size": "text takes"}[study]

    def found(runs: Sequence[Outcome]) -> Finding:
        law = law_of(study, runs)
        low, high = law.saved_by_doubling, scaling.exponent_interval(law)
        words = (
            f"A law with the exponent α = {law.exponent:.2f} ({_between(high)}) fits. Twice the {thing} away "
            f"{PER_CENT * low:.0f} % of the distance to E = {law.floor:.2f} nats "
            f"({_between(scaling.floor_interval(law))}). "
        )
        return Finding(low * PER_CENT, words + _against_the_floor(law, runs))

    return found


def _against_the_floor(law: Law, runs: Sequence[Outcome]) -> str:
    truth, allowed = runs[0].floor, scaling.floor_interval(law)
    if math.isnan(truth):
        return ""
    if truth in allowed:
        return f"The true floor of these stories, {truth:.2f}, is among the values of E that the runs allow."
    side = "above" if allowed.low > truth else "below"
    return (
        f"The true floor of these stories, {truth:.2f}, is not among them: E lies {side} it, so the law "
        "holds for "
        "runs like these, and not for ever."
    )


def _between(interval: Interval) -> str:
    low = f"{interval.low:.2f}" if not interval.open_low else f"{interval.low:.2f} or less"
    high = f"{interval.high:.2f}" if not interval.open_high else f"{interval.high:.2f} or more"
    return f"between {low} and {high}"


def verdict_on_prediction(study: str, law: Law, larger: Outcome) -> str:
    """Whether the run that was foretold came out as the law said."""
    told, came = scaling.predict(law, size_of(study, larger)), loss_of(study, larger)
    words = f"The law foretold {told.low:.2f} to {told.high:.2f} nats; the run reached {came:.3f}: "
    if came in told:
        return words + "inside."
    where = "below" if came < told.low else "above"
    return words + f"outside, {where} it. The law did not hold that far."


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
