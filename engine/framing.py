"""How a prompt and its answer become one row of ids, and which id ends an answer."""

from dataclasses import dataclass
from typing import Literal

from engine.tokenizer import Tokenizer
from wording import words

say = words("engine.framing")

Kind = Literal["plain", "chat"]
BEGIN, END = "<|im_start|>", "<|im_end|>"  # ChatML


@dataclass(frozen=True, eq=False)
class Framing:
    r"""What stands around a prompt and behind an answer.

    "plain" is the prompt, a line end, the answer, and the id that ends a text; a vocabulary without such an
    id ends the answer with a line end, so there an answer is one line. "chat" is the form ChatML, which the
    model must know: ``<|im_start|>user\n`` prompt ``<|im_end|>\n<|im_start|>assistant\n`` answer
    ``<|im_end|>``.

    Attributes:
        kind: "plain" or "chat".
        end: the id that ends an answer; None where a line end does.
    """

    tokenizer: Tokenizer
    kind: Kind
    end: int | None

    @property
    def stop_ids(self) -> list[int]:
        """With any of these, an answer that is being written is over."""
        return self.tokenizer.line_end_ids if self.end is None else [self.end]

    def around(self) -> tuple[list[int], list[int]]:
        """Ids before and after the prompt's own, which are never cut off."""
        if self.kind == "plain":
            return list(self.tokenizer.frame[0]), []
        turns = (f"{BEGIN}user\n", f"{END}\n{BEGIN}assistant\n")
        before, after = (self.tokenizer.encode(turn, special=True) for turn in turns)
        return before, after

    def prompt(self, text: str) -> list[int]:
        """The prompt's own ids."""
        return self.tokenizer.encode(text if self.kind == "chat" else text + "\n")

    def prompt_ids(self, text: str) -> list[int]:
        """All ids that stand before the answer: what the model is given to write one."""
        before, after = self.around()
        return before + self.prompt(text) + after

    def answer_ids(self, text: str) -> list[int]:
        """The answer's ids with the one that ends it; all of them are scored.

        Raises:
            ValueError: if the answer has a line end where that would end it.
        """
        if self.end is not None:
            return [*self.tokenizer.encode(text), self.end]
        if "\n" in text.strip("\n"):
            raise ValueError(say("line_end"))
        return self.tokenizer.encode(text.strip("\n") + "\n")


def framing_for(tokenizer: Tokenizer, kind: str = "plain") -> Framing:
    """The framing of this kind for a model with this tokenizer.

    Raises:
        ValueError: for "chat", if the vocabulary has no such form.
    """
    if kind == "chat":
        ids = [tokenizer.encode(one, special=True) for one in (BEGIN, END)]
        if any(len(found) != 1 for found in ids):
            raise ValueError(say("no_chat", name=tokenizer.name))
        return Framing(tokenizer, "chat", ids[1][0])
    return Framing(tokenizer, "plain", _text_end(tokenizer))


def has_chat(tokenizer: Tokenizer) -> bool:
    """Whether this vocabulary has the form "chat"."""
    return all(len(tokenizer.encode(one, special=True)) == 1 for one in (BEGIN, END))


def _text_end(tokenizer: Tokenizer) -> int | None:
    """The id that ends a text, if the model can write it."""
    try:
        end = tokenizer.end_id
    except ValueError:
        return None
    return end if end < tokenizer.vocab_size else None
