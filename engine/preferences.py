"""Direct preference optimisation: of two answers to a prompt, the one that is wanted becomes likelier.

DPO (Rafailov et al. 2023, arXiv:2305.18290) compares the model with the one that it started from, the
reference, which stays as it was. The implicit reward of an answer y to a prompt x is
β · (log π(y|x) - log π_ref(y|x)); the loss is that of guessing from the two rewards which answer is wanted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.framing import Framing
from engine.instructions import ids_of_answer, padded, shortened
from engine.metrics import IGNORED
from engine.pair_files import Preference as Preference
from engine.pair_files import read_preferences as read_preferences
from engine.story_pairs import story_preferences as story_preferences
from engine.story_pairs import wanted as wanted
from wording import words

say = words("engine.preferences")


class PreferenceBatch(NamedTuple):
    """Inputs and targets, both (B,2,T) int64, the wanted answer first; a target of -100 is not counted.

    `reference` is (B,2): log π_ref of both answers, nats.
    """

    inputs: Tensor
    targets: Tensor
    reference: Tensor


@dataclass(frozen=True, eq=False)
class PreferenceRows:
    """Preferences as rows of ids.

    Attributes:
        chosen, rejected: ids (n,) of each prompt with one answer, and with the other.
        starts: in each, where both answers begin.
        cut: how many prompts lost their start because a row would have been too long.
        length: T, tokens that the longest row gives to the model; all batches have it.
    """

    chosen: list[Tensor]
    rejected: list[Tensor]
    starts: list[int]
    cut: int
    length: int

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def n_tokens(self) -> int:
        """Ids of all rows together."""
        return sum(len(row) for row in (*self.chosen, *self.rejected))

    def batch(self, which: Sequence[int], reference: Tensor) -> PreferenceBatch:
        """Some rows side by side; `reference` (N,2) is of all of them."""
        pairs = [
            padded(row, self.starts[k], self.length)
            for k in which
            for row in (self.chosen[k], self.rejected[k])
        ]
        inputs, targets = (torch.stack(part) for part in zip(*pairs, strict=True))  # (2B,T)
        shape = (-1, 2, self.length)
        return PreferenceBatch(inputs.view(shape), targets.view(shape), reference[list(which)])


def encode_preferences(
    preferences: Sequence[Preference], framing: Framing, context_length: int
) -> PreferenceRows:
    """Preferences as rows of at most `context_length` + 1 ids; both answers have the same prompt before them.

    Raises:
        ValueError: with the line of the first one whose answer doesn't fit.
    """
    chosen, rejected, starts, cut = [], [], [], 0
    before, after = framing.around()
    for one in preferences:
        answers = [ids_of_answer(text, framing, one.line) for text in (one.chosen, one.rejected)]
        prompt = framing.prompt(one.prompt)
        others = len(before) + len(after) + max(map(len, answers))
        shorter = shortened(prompt, others, context_length, one.line)
        cut += len(shorter) < len(prompt)
        asked = before + shorter + after
        chosen.append(torch.tensor(asked + answers[0]))
        rejected.append(torch.tensor(asked + answers[1]))
        starts.append(len(asked))
    longest = max((len(row) for row in (*chosen, *rejected)), default=1)
    return PreferenceRows(chosen, rejected, starts, cut, longest - 1)


def answer_log_probs(logits: Tensor, targets: Tensor) -> Tensor:
    """(N,) log of the probability of each whole answer, nats: the sum over its tokens.

    Args:
        logits: (N,T,V).
        targets: (N,T); -100 is not counted.
    """
    surprisals = F.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return -surprisals.view_as(targets).sum(dim=1)


def margins(
    policy_chosen: Tensor,
    policy_rejected: Tensor,
    reference_chosen: Tensor,
    reference_rejected: Tensor,
    beta: float,
) -> Tensor:
    """(N,) by how much the implicit reward of the wanted answer is higher than that of the other."""
    return beta * ((policy_chosen - reference_chosen) - (policy_rejected - reference_rejected))


def dpo_loss(
    policy_chosen: Tensor,
    policy_rejected: Tensor,
    reference_chosen: Tensor,
    reference_rejected: Tensor,
    beta: float,
) -> Tensor:
    """Mean of -log σ(margin) over some preferences (Rafailov et al. 2023, arXiv:2305.18290, equation 7).

    Args:
        policy_chosen: (N,) log of the model's probability of the wanted answer, nats.
        policy_rejected: of the other one.
        reference_chosen: of the wanted answer by the model that training started from.
        reference_rejected: of the other one.
        beta: how much a difference counts; the smaller, the further the model may move for the same reward.

    Raises:
        ValueError: if beta is not a finite number above 0.

    >>> even = torch.tensor([-3.0])
    >>> round(dpo_loss(even, even, even, even, 0.1).item(), 4)  # the model is its own reference: ln 2
    0.6931
    """
    if not 0 < beta < float("inf"):
        raise ValueError(say("beta", beta=beta))
    margin = margins(policy_chosen, policy_rejected, reference_chosen, reference_rejected, beta)
    return -F.logsigmoid(margin).mean()
