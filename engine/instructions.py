"""Supervised fine-tuning: prompts with their answers, of which only the answers are scored.

The model reads the prompt and learns what to say after it (Ouyang et al. 2022, arXiv:2203.02155, §3.5). A row
is a prompt and its answer; the targets of the prompt, and of what fills the row up, are -100. The token that
ends the answer is scored: else the model would never learn to stop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.batches import Batch, clm_rows
from engine.framing import Framing as Framing
from engine.framing import framing_for as framing_for
from engine.metrics import IGNORED
from engine.pair_files import Pair as Pair
from engine.pair_files import read_pairs as read_pairs
from engine.story_pairs import follows as follows
from engine.story_pairs import story_pairs as story_pairs
from wording import words

say = words("engine.instructions")


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """Pairs as rows of ids.

    Attributes:
        rows: ids (n,) of each pair, the prompt's and then the answer's, at most context length + 1.
        starts: in each, where the answer begins.
        cut: how many prompts lost their start because the row would have been too long.
        length: T, tokens that the longest row gives to the model; all batches have it.
    """

    rows: list[Tensor]
    starts: list[int]
    cut: int
    length: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_tokens(self) -> int:
        """Ids of all rows together."""
        return sum(len(row) for row in self.rows)

    def batch(self, which: Sequence[int]) -> Batch:
        """Some rows side by side, (B,T), filled up on the right, where a causal model never looks."""
        batches = [padded(self.rows[k], self.starts[k], self.length) for k in which]
        return Batch(*(torch.stack(part) for part in zip(*batches, strict=True)))


def padded(row: Tensor, start: int, length: int) -> Batch:
    """One row as inputs and targets (T,): only the ids from `start` on are targets.

    >>> padded(torch.tensor([7, 8, 9, 5]), 2, 5).targets.tolist()
    [-100, 9, 5, -100, -100]
    """
    inputs, targets = clm_rows(row[None])
    targets = targets.clone()
    targets[0, : start - 1] = IGNORED
    room = (0, length - inputs.shape[1])
    pad = torch.nn.functional.pad
    return Batch(pad(inputs, room)[0], pad(targets, room, value=IGNORED)[0])


def encode_pairs(pairs: Sequence[Pair], framing: Framing, context_length: int) -> AnswerRows:
    """Pairs as rows of at most `context_length` + 1 ids; of a longer one the prompt loses its start.

    Raises:
        ValueError: with the line of the first pair whose answer doesn't fit.
    """
    rows, starts, cut = [], [], 0
    before, after = framing.around()
    for pair in pairs:
        answer = ids_of_answer(pair.answer, framing, pair.line)
        prompt = framing.prompt(pair.prompt)
        shorter = shortened(prompt, len(before) + len(after) + len(answer), context_length, pair.line)
        cut += len(shorter) < len(prompt)
        asked = before + shorter + after
        rows.append(torch.tensor(asked + answer))
        starts.append(len(asked))
    return AnswerRows(rows, starts, cut, max((len(row) for row in rows), default=1) - 1)


def ids_of_answer(answer: str, framing: Framing, line: int) -> list[int]:
    """The ids of an answer.

    Raises:
        ValueError: with its line, if it has none.
    """
    try:
        return framing.answer_ids(answer)
    except ValueError as error:
        raise ValueError(say("pair_at", line=line, why=error)) from error


def shortened(prompt: list[int], others: int, context_length: int, line: int) -> list[int]:
    """The end of a prompt that fits a row together with `others` more ids.

    Raises:
        ValueError: with its line, if nothing of it would be left.
    """
    room = context_length + 1 - others
    if room < 1:
        raise ValueError(say("answer_too_long", line=line, n=others, most=context_length))
    return prompt[-room:]
