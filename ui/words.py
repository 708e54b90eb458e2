"""Words: for times, for the states of a run, and other people's, shown as they are."""

import math
import re
from datetime import datetime

from wording import words

say = words("ui.words")

STATES = {
    "queued": ("gray", ":material/hourglass_empty:"),
    "starting": ("blue", ":material/rocket_launch:"),
    "running": ("green", ":material/trending_down:"),
    "paused": ("orange", ":material/pause:"),
    "stopped": ("orange", ":material/stop:"),
    "finished": ("blue", ":material/flag:"),
    "failed": ("red", ":material/warning:"),
}
OBJECTIVES = ("clm", "mlm")
MEASURES = (*OBJECTIVES, "answers", "preferences")  # what a run's loss is of, `RunInfo.measure`


def state_name(state: str) -> str:
    """What the screen calls a state of a run, one of `STATES`."""
    return say(f"state.{state}") if state in STATES else state


def loss_name(objective: str) -> str:
    """The loss that stands for a run of this kind."""
    return say(f"loss.{objective}")


def objective_name(objective: str) -> str:
    """What a model of this kind guesses."""
    return say(f"objective.{objective}")


def duration(seconds: float) -> str:
    """A time in words that fit an estimate.

    >>> [duration(s) for s in (0.4, 29, 61, 190, 4000)]
    ['1 s', '30 s', '60 s', '3 min', '1 h 7 min']
    """
    if seconds < 10:
        return say("seconds", n=max(1, round(seconds)))
    if seconds < 95:
        return say("seconds", n=5 * round(seconds / 5))
    minutes = round(seconds / 60)
    if minutes < 60:
        return say("minutes", n=minutes)
    return say("hours_and_minutes", hours=minutes // 60, minutes=minutes % 60)


def age(seconds: float) -> str:
    """How long ago something was: as `duration`, from two days on in days.

    >>> [age(s) for s in (29, 4000, 100_000, 30 * 86_400)]
    ['30 s', '1 h 7 min', '27 h 47 min', '30 days']
    """
    days = int(seconds // 86_400)
    return counted(days, "day") if days > 1 else duration(max(0.0, seconds))


def day(time: float) -> str:
    """The day of a moment in seconds since 1970, where the server is.

    >>> day(1_797_076_800.0)
    '12 December 2026'
    """
    when = datetime.fromtimestamp(time)
    return say("day", day=when.day, month=say(f"month.{when.month}"), year=when.year)


def size(n_bytes: float) -> str:
    """How much room something takes, in units of a thousand.

    >>> [size(n) for n in (0, 40_000, 1_234_567, 56_700_000, 3_210_000_000)]
    ['0 kB', '40 kB', '1.2 MB', '57 MB', '3.2 GB']
    """
    if n_bytes >= 1e9:
        return say("gigabytes", n=f"{n_bytes / 1e9:.1f}")
    if n_bytes < 1e5:
        return say("kilobytes", n=f"{math.ceil(n_bytes / 1e3)}")
    return say("megabytes", n=f"{n_bytes / 1e6:.{0 if n_bytes >= 1e7 else 1}f}")


def counted(n: int, noun: str) -> str:
    """A number and its noun, one of those under `[ui.words.noun]` in the text files.

    >>> counted(1, "token"), counted(1200, "byte")
    ('1 token', '1,200 bytes')
    """
    return say(f"noun.{noun}", n=n)


_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>$:&])")


# What Markdown makes a link of by itself, escaped or not: a joiner without width and shape parts it.
_LINK = re.compile(r"(?i)(?<=https:)(?=//)|(?<=http:)(?=//)|(?<=www)(?=\.)|(?<=@)(?=\w)")


def literal(text: str, *, links: bool = False) -> str:
    r"""A text that Markdown shows as it is.

    Args:
        text: anybody's.
        links: whether addresses in it may become links; only for texts of the app's own.

    >>> print(literal("*a* <b> $x$"))
    \*a\* \<b\> \$x\$
    >>> literal("http://a") == "http\\:\u2060//a", literal("http://a", links=True) == "http\\://a"
    (True, True)
    """
    return _MARKUP.sub(r"\\\1", text if links else _LINK.sub("\u2060", text))
