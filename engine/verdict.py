"""One plain sentence or two on how a run stands: decided by thresholds, never at odds with one another."""

import math
from typing import NamedTuple

from engine.reading import Reading
from wording import words

say = words("engine.verdict")

WORSE_THAN_GUESSING = 0.1  # nats above ln V
DIVERGES = 0.5  # nats above the best so far, the training loss too
CLEAR_RISE = 0.03  # nats above the best validation loss, while the training loss fell: overfitting
AT_THE_FLOOR = 0.05  # nats above it
LEVEL = 0.02  # nats: so close to a baseline is neither above nor below
NEAR_GUESSING = 0.9  # of ln V: where no baseline is known
STILL_FALLING = 0.02  # nats in the last quarter of the steps: less is a plateau


class Verdict(NamedTuple):
    """How a run stands: the kind of case, and the words for it.

    `kind` is one of "nothing", "waiting", "not-finite", "start", "diverged", "overfitting", "floor",
    "plateau" and "learning".
    """

    kind: str
    words: str


def verdict(
    now: Reading | None, vocab_size: int, *, done: bool = False, objective: str = "clm", start: str = ""
) -> Verdict:
    """How a run stands.

    The first case that holds decides: nothing to learn, nothing measured, not finite, before the first step,
    diverged, overfitting, at the floor. Else two sentences say between which baselines the loss lies and
    whether it still falls.

    Args:
        now: its numbers, None before the first evaluation.
        vocab_size: 1 is a text with nothing to learn.
        done: whether the run has ended.
        objective: what the loss is of, see `RunInfo.measure`. "mlm" sees both sides, which its words must
            not deny; "preferences" guess between two answers.
        start: name of the model that the run started from, or "".
    """
    if vocab_size < 2:
        return Verdict("nothing", say("nothing_to_learn"))
    if now is None:
        return Verdict("waiting", say("nothing_measured") if done else say("first_numbers_come_moment"))
    if math.isnan(now.loss):
        return Verdict("not-finite", say("not_finite", step=now.step))
    if now.step == 0:
        return Verdict("start", _start(now, objective, start))
    special = _diverged(now) or _overfitting(now) or _at_the_floor(now)
    if special:
        return special
    kind, trend = _trend(now, done)
    place = [_preference(now)] if objective == "preferences" else _place(now, objective)
    sentences = [*place, *trend]
    if now.val_loss is None:
        sentences.append(say("no_validation_text"))
    return Verdict(kind, " ".join(sentences))


def _start(now: Reading, objective: str, start: str) -> str:
    if objective == "preferences":
        return say("start_of_preferences", loss=now.loss)
    if start:
        return say("start_of_model", loss=now.loss, name=start)
    return say("start", loss=now.loss, start=now.start)


def _preference(now: Reading) -> str:
    """How far from not knowing which answer is wanted."""
    if abs(now.loss - now.start) < LEVEL:
        return say("prefers_nothing_yet", loss=now.loss)
    return say("prefers" if now.loss < now.start else "prefers_the_other", loss=now.loss)


def _diverged(now: Reading) -> Verdict | None:
    if now.loss > now.start + WORSE_THAN_GUESSING and not _memorises(now):
        return Verdict("diverged", say("worse_than_guessing", loss=now.loss, start=now.start))
    if now.loss > now.best_loss + DIVERGES and now.train_loss > now.best_train_loss + DIVERGES:
        jumped = {"best_loss": now.best_loss, "best_step": now.best_step, "loss": now.loss}
        return Verdict("diverged", say("jumped_up", **jumped))
    return None


def _memorises(now: Reading) -> bool:
    """Whether validation rose clearly since its best while training fell."""
    return (
        now.val_loss is not None
        and now.val_loss - now.best_loss >= CLEAR_RISE
        and now.train_loss < now.best_train_loss
    )


def _overfitting(now: Reading) -> Verdict | None:
    if not _memorises(now):
        return None
    return Verdict(
        "overfitting",
        say(
            "overfitting",
            best_step=now.best_step,
            best_loss=now.best_loss,
            loss=now.loss,
            train_loss=now.train_loss,
        ),
    )


def _at_the_floor(now: Reading) -> Verdict | None:
    if now.gap is None or now.gap >= AT_THE_FLOOR:
        return None
    return Verdict("floor", say("near_the_floor", gap=now.gap) if now.gap >= 0.0005 else say("at_the_floor"))


def last_passed(now: Reading) -> tuple[str | None, str | None, bool]:
    """The best baseline that the loss has passed, the next to pass, and whether it is level with the first.

    Level means closer than `LEVEL`. Counts of more tokens are as a rule better; on a short text they need not
    be, so the order is that of their losses.
    """
    known = dict(now.baselines) or {"uniform": now.start}
    names = sorted(known, key=lambda name: -known[name])
    passed = [name for name in names if now.loss < known[name] + LEVEL]
    ahead = [name for name in names if name not in passed]
    last = passed[-1] if passed else None
    level = last is not None and abs(now.loss - known[last]) <= LEVEL
    return last, (ahead[0] if ahead else None), level


def _place(now: Reading, objective: str) -> list[str]:
    """Between which baselines the loss lies, and how far above the floor: a sentence or two."""
    if not now.baselines:
        return [_place_of_guessing(now)]
    above = [] if now.gap is None else [say("above_floor", gap=now.gap)]
    return [_among_baselines(now, objective), *above]


def _among_baselines(now: Reading, objective: str) -> str:
    last, ahead, level = last_passed(now)
    names = say.table("baseline")
    if last is None:
        return say("no_better_than_guessing", loss=now.loss, start=now.start)
    if level:
        return say("level_with", last=names[last], level_with=say(f"level_knows.{last}"))
    if ahead is None:
        knows = say("masked_knows") if objective == "mlm" else say(f"knows.{last}")
        return say("better_than", last=names[last], knows=knows)
    if last == "uniform":
        knows = say("less_than_unigram") if ahead == "unigram" else say(f"knows.{last}")
        return say("better_than_guessing", ahead=names[ahead], knows=knows)
    return say("between", last=names[last], ahead=names[ahead], knows=say(f"knows.{last}"))


def _place_of_guessing(now: Reading) -> str:
    if now.loss > NEAR_GUESSING * now.start:
        return say("near_guessing", loss=now.loss, start=now.start)
    if now.gap is not None and now.floor is not None:
        share = (now.start - now.loss) / (now.start - now.floor)
        return say("way_from_guessing", gap=now.gap, share=share)
    fewer, all_of_them = math.exp(now.loss), math.exp(now.start)
    return say("as_unsure_as", nats=now.start - now.loss, fewer=fewer, all=all_of_them)


def _trend(now: Reading, done: bool) -> tuple[str, list[str]]:
    """Whether the loss fell in the last quarter of the steps, as the kind of case and in words."""
    if math.isnan(now.earlier_loss):
        return "learning", []
    steps = now.step - now.earlier_step
    fell = now.earlier_loss - now.loss
    if fell >= STILL_FALLING:
        if done:
            return "learning", [say("still_learning", fell=fell, steps=steps)]
        return "learning", [say("learning", fell=fell, steps=steps)]
    if fell <= -STILL_FALLING:
        return "plateau", [say("rising", rose=-fell, steps=steps)]
    return "plateau", [say("level", change=abs(fell), steps=steps)]
