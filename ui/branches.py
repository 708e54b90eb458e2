"""A text that a person lets a model write, in branches: what was drawn, and what was forced."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from engine.sampling import TextStream
from wording import words

say = words("ui.branches")

MOST = 12  # branches of one text


class Draw(NamedTuple):
    """One token after the prompt: what it is, the number that chose it, and the settings of that moment.

    Attributes:
        u: the random number in [0, 1) that chose it; None if a person forced it.
        prob: what it was drawn with; 0 if it was forced although the cuts had removed it.
        model_prob: the model's own, before temperature and cuts.
        settings: keywords of `engine.sampling.sampling_stages`, but for `previous`.
        seed: of the random number.
    """

    id: int
    data: bytes
    u: float | None
    prob: float
    model_prob: float
    settings: dict[str, Any]
    seed: int = 0

    @property
    def forced(self) -> bool:
        """Whether a person chose it."""
        return self.u is None

    @property
    def log_prob(self) -> float:
        """Natural log of the model's own probability."""
        return math.log(self.model_prob) if self.model_prob > 0 else -math.inf


@dataclass(eq=False)
class Branch:
    """One continuation of the prompt.

    Attributes:
        name: a letter.
        stream: of the seed's random numbers; each branch has its own, see `engine.dice.throws`.
        left: the branch that it left; empty for the first.
        after: after so many tokens.
        draws: all tokens after the prompt, also those that it shares with other branches.
    """

    name: str
    stream: int
    left: str = ""
    after: int = 0
    draws: list[Draw] = field(default_factory=list)

    @property
    def came_from(self) -> str:
        """How it began, in words; empty for the first."""
        return say("left", name=self.left, n=self.after) if self.left else ""

    @property
    def ids(self) -> list[int]:
        """All tokens after the prompt."""
        return [draw.id for draw in self.draws]

    @property
    def log_prob(self) -> float:
        """Natural log of the model's own probability of all tokens after the prompt."""
        return math.fsum(draw.log_prob for draw in self.draws)

    @property
    def per_token(self) -> float:
        """Mean log-probability; NaN without a token."""
        return self.log_prob / len(self.draws) if self.draws else math.nan

    @property
    def n_forced(self) -> int:
        """How many tokens a person chose."""
        return sum(draw.forced for draw in self.draws)

    def text(self, *, ended: bool = True) -> str:
        """What was written; until it has ended, half a character waits for its other half."""
        stream = TextStream()
        text = "".join([stream.push(draw.data) for draw in self.draws])
        return text + stream.end() if ended else text


class Writing:
    """Everything that was written after one prompt by one model, in branches, one of which is being written.

    Attributes:
        about: model and prompt.
        branches: never empty.
        asked, done, seconds: of the last "write": tokens wanted, tokens written, and how long that took.
        full: whether the last click did nothing because there are too many branches.
    """

    def __init__(self, about: tuple[str, str]) -> None:
        self.about = about
        self.branches = [Branch("A", 0)]
        self.at = 0
        self.asked = self.done = 0
        self.seconds = 0.0
        self.full = False

    @property
    def message(self) -> str:
        """Why the last click did nothing; empty if it did something."""
        return say("too_many", most=MOST) if self.full else ""

    @property
    def branch(self) -> Branch:
        """The one that is being written."""
        return self.branches[self.at]

    @property
    def draws(self) -> list[Draw]:
        """Of the branch that is being written."""
        return self.branch.draws

    @property
    def ids(self) -> list[int]:
        """Of the branch that is being written."""
        return self.branch.ids

    @property
    def empty(self) -> bool:
        """Whether nothing has been written at all."""
        return not any(branch.draws for branch in self.branches)

    def text(self, *, ended: bool = True) -> str:
        """Of the branch that is being written, see `Branch.text`."""
        return self.branch.text(ended=ended)

    def undo(self) -> None:
        """Take the last token back. For `on_click`."""
        self.branch.draws = self.draws[:-1]
        self._begin()

    def restart(self) -> None:
        """Back to the prompt; the tokens of this branch are forgotten. For `on_click`."""
        self.branch.draws = []
        self._begin()

    def rewind(self, n: int) -> None:
        """Go on from the first n tokens; what came after them stays, as its branch. For `on_click`.

        A branch that has nothing of its own, because another one holds all its tokens, is itself cut back.
        """
        self._begin()
        old = self.branch
        if n >= len(old.draws):
            return
        if any(old.ids == other.ids[: len(old.ids)] for other in self.branches if other is not old):
            old.draws = old.draws[:n]
            return
        if len(self.branches) >= MOST:
            self.full = True
            return
        name, stream = self._unused()
        self.branches.append(Branch(name, stream, old.name, n, old.draws[:n]))
        self.at = len(self.branches) - 1

    def force(self, draw: Draw) -> None:
        """Put a token that a person chose at the end."""
        self._begin()
        self.draws.append(draw)

    def switch(self, name: str) -> None:
        """Go on with another branch. For `on_click`."""
        self._begin()
        self.at = next((i for i, branch in enumerate(self.branches) if branch.name == name), self.at)

    def delete(self, name: str) -> None:
        """Forget a branch; without any left, a bare prompt. For `on_click`."""
        self._begin()
        here = self.branch
        self.branches = [branch for branch in self.branches if branch.name != name] or [Branch("A", 0)]
        self.at = self.branches.index(here) if here in self.branches else len(self.branches) - 1

    def _begin(self) -> None:
        self.asked, self.full = 0, False

    def _unused(self) -> tuple[str, int]:
        """The first letter and stream that no branch has: the same clicks and seed give the same text."""
        used = {branch.stream for branch in self.branches}
        stream = next(i for i in range(MOST + 1) if i not in used)
        return chr(ord("A") + stream), stream

    def n_shared(self) -> int:
        """How many tokens all branches begin with."""
        columns = zip(*(branch.ids for branch in self.branches), strict=False)
        n = 0
        for ids in columns:
            if len(set(ids)) > 1:
                break
            n += 1
        return n


def as_json(text: Writing, prompt_ids: Sequence[int], about: dict[str, Any]) -> str:
    """Everything about a text for other programs: prompt, settings, and each token with its numbers."""

    def token(draw: Draw) -> dict[str, Any]:
        return {
            "id": draw.id,
            "bytes": draw.data.hex(),
            "forced": draw.forced,
            "u": draw.u,
            "seed": None if draw.forced else draw.seed,
            "drawn_with": draw.prob,
            "log_prob": draw.log_prob if math.isfinite(draw.log_prob) else None,
            "settings": draw.settings,
        }

    branches = [
        {
            "name": branch.name,
            "stream": branch.stream,
            "began": branch.came_from or say("prompt"),
            "text": branch.text(),
            "log_prob": branch.log_prob if math.isfinite(branch.log_prob) else None,
            "tokens": [token(draw) for draw in branch.draws],
        }
        for branch in text.branches
    ]
    content = {
        **about,
        "prompt": text.about[1],
        "prompt_ids": list(prompt_ids),
        "log_prob_is": say("log_prob_is"),
        "written": text.branch.name,
        "branches": branches,
    }
    return json.dumps(content, ensure_ascii=False, indent=1)
