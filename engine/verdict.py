"""One plain sentence or two on how a run stands: decided by thresholds, never at odds with one another."""

import math
from typing import NamedTuple

from engine.reading import Reading

WORSE_THAN_GUESSING = 0.1  # nats above ln V
DIVERGES = 0.5  # nats above the best so far, the training loss too
CLEAR_RISE = 0.03  # nats above the best validation loss, while the training loss fell: overfitting
AT_THE_FLOOR = 0.05  # nats above it
LEVEL = 0.02  # nats: so close to a baseline is neither above nor below
NEAR_GUESSING = 0.9  # of ln V: where no baseline is known
STILL_FALLING = 0.02  # nats in the last quarter of the steps: less is a plateau

KNOWS = {
    "uniform": "it knows next to nothing",
    "unigram": "it knows how frequent each token is, but less than counts of pairs",
    "bigram": "it knows more than counts of pairs, but less than counts of triples",
    "trigram": "it uses more than the two tokens before",
}
LEVEL_WITH = {
    "uniform": "every token is as likely to it as any other",
    "unigram": "it knows how frequent each token is, and no more",
    "bigram": "it knows as much as counts of pairs",
    "trigram": "it knows as much as counts of triples",
}


class Verdict(NamedTuple):
    """How a run stands: the kind of case, and the words for it.

    `kind` is one of "nothing", "waiting", "not finite", "start", "diverged", "overfitting", "floor",
    "plateau" and "learning".
    """

    kind: str
    words: str


def verdict(now: Reading | None, vocab_size: int, *, done: bool = False, objective: str = "clm") -> Verdict:
    """How a run stands.

    The first case that holds decides: nothing to learn, nothing measured, not finite, before the first step,
    diverged, overfitting, at the floor. Else two sentences say between which baselines the loss lies and
    whether it still falls.

    Args:
        now: its numbers, None before the first evaluation.
        vocab_size: 1 is a text with nothing to learn.
        done: whether the run has ended.
        objective: "mlm" sees both sides, which its words must not deny.
    """
    if vocab_size < 2:
        return Verdict(
            "nothing", "This text has a single symbol, so the loss is 0 and there is nothing to learn."
        )
    if now is None:
        return Verdict("waiting", "Nothing was measured." if done else "The first numbers come in a moment.")
    if math.isnan(now.loss):
        return Verdict(
            "not finite",
            f"At step {now.step:,} the loss was not a finite number: the steps were too large.",
        )
    if now.step == 0:
        return Verdict(
            "start",
            f"Before the first step the model guesses: {now.loss:.2f} nats, close to "
            f"ln V = {now.start:.2f}, the loss of giving every token the same probability.",
        )
    special = _diverged(now) or _overfitting(now) or _at_the_floor(now)
    if special:
        return special
    kind, trend = _trend(now, done)
    words = f"{_place(now, objective)} {trend}".strip()
    if now.val_loss is None:
        words += " There is no validation text, so this may be learning or memorising."
    return Verdict(kind, words)


def _diverged(now: Reading) -> Verdict | None:
    if now.loss > now.start + WORSE_THAN_GUESSING and not _memorises(now):
        return Verdict(
            "diverged",
            f"Worse than guessing: {now.loss:.2f} nats against ln V = {now.start:.2f}. "
            "A smaller learning rate helps.",
        )
    if now.loss > now.best_loss + DIVERGES and now.train_loss > now.best_train_loss + DIVERGES:
        return Verdict(
            "diverged",
            f"The loss jumped up, from {now.best_loss:.2f} nats at step {now.best_step:,} to "
            f"{now.loss:.2f}, in training as well: the steps are too large. A smaller learning rate helps.",
        )
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
        f"Overfitting since step {now.best_step:,}: there validation was best, at {now.best_loss:.2f} nats. "
        f"It has risen to {now.loss:.2f} while training fell to {now.train_loss:.2f}: "
        "the model memorises its text.",
    )


def _at_the_floor(now: Reading) -> Verdict | None:
    if now.gap is None or now.gap >= AT_THE_FLOOR:
        return None
    where = f"Only {now.gap:.3f} nats above the floor" if now.gap >= 0.0005 else "Level with the floor"
    return Verdict("floor", f"{where}: almost nothing is left to learn.")


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


def _place(now: Reading, objective: str) -> str:
    """Between which baselines the loss lies, and how far above the floor."""
    if not now.baselines:
        return _place_of_guessing(now)
    last, ahead, level = last_passed(now)
    above = "" if now.gap is None else f" {now.gap:.2f} nats above the floor."
    if last is None:
        return f"Still no better than guessing: {now.loss:.2f} nats, ln V = {now.start:.2f}.{above}"
    if level:
        return f"Level with the {last} baseline: {LEVEL_WITH[last]}.{above}"
    if ahead is None:
        knows = "it uses more than how frequent each token is" if objective == "mlm" else KNOWS[last]
        return f"Better than the {last} baseline: {knows}.{above}"
    if last == "uniform":
        knows = "it knows less than how frequent each token is" if ahead == "unigram" else KNOWS[last]
        return f"Better than guessing, still above the {ahead} baseline: {knows}.{above}"
    return f"Between {last} and {ahead}: {KNOWS[last]}.{above}"


def _place_of_guessing(now: Reading) -> str:
    if now.loss > NEAR_GUESSING * now.start:
        return f"Still near guessing: {now.loss:.2f} nats of ln V = {now.start:.2f}."
    if now.gap is not None and now.floor is not None:
        share = (now.start - now.loss) / (now.start - now.floor)
        return f"{now.gap:.2f} nats above the floor: {share:.0%} of the way from guessing."
    return (
        f"{now.start - now.loss:.2f} nats better than guessing: as unsure as between "
        f"{math.exp(now.loss):,.1f} equally likely tokens instead of {math.exp(now.start):,.0f}."
    )


def _trend(now: Reading, done: bool) -> tuple[str, str]:
    """Whether the loss fell in the last quarter of the steps, as the kind of case and in words."""
    if math.isnan(now.earlier_loss):
        return "learning", ""
    steps = now.step - now.earlier_step
    fell = now.earlier_loss - now.loss
    span = f"in the last {steps:,} steps"
    if fell >= STILL_FALLING:
        if done:
            return "learning", f"Still learning when it ended, {fell:.2f} nats {span}: more steps would help."
        return "learning", f"Learning: {fell:.2f} nats {span}."
    if fell <= -STILL_FALLING:
        return "plateau", f"Not learning now: the loss rose by {-fell:.2f} nats {span}."
    return "plateau", f"Level: it changed by {abs(fell):.3f} nats {span}."
