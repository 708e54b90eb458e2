"""What all tokenizers of published models have in common: the model's rows, their spellings, the frame."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.hub_frame import Frame
from engine.tokenizer import MASK_TEXT, Tokenizer
from wording import words

say = words("engine.hub")

_KEPT = ("model", "pre_tokenizer", "normalizer", "decoder", "added_tokens")
_MASKS = ("<mask>", MASK_TEXT)


class PublishedTokenizer(Tokenizer):
    """A published vocabulary under its own ids.

    The ids may lie in any order and have gaps; `vocab_size` counts the rows of the model, so that each id
    that the model can predict has bytes to show, also a row that was never used.
    """

    def _describe(
        self,
        name: str,
        content: Mapping[str, Any],
        rows: int,
        end_id: int | None,
        frame: tuple[Sequence[int], Sequence[int]],
        known: dict[int, bytes],
    ) -> None:
        """Set what the kinds share.

        Args:
            name: how to call it.
            content: its tokenizer.json.
            rows: ids of the model.
            end_id: the id that ends a text; None if there is none.
            frame: ids that the model wants before and after a text.
            known: spelling of each id that a token has.

        Raises:
            ValueError: one sentence, if the model has fewer rows, or the frame an id without a token.
        """
        self.name = name
        self.vocab_size = rows
        self._end = end_id
        self._known = known
        self._frame: Frame = (list(frame[0]), list(frame[1]))
        if known and max(known) >= rows:
            raise ValueError(say("more_ids_than_rows", name=name, n=max(known) + 1, rows=rows))
        if strangers := [i for side in self._frame for i in side if i not in known]:
            raise ValueError(say("tokenizer_frame_id", name=name, id=strangers[0]))
        masks = [one["id"] for one in content.get("added_tokens") or () if one["content"] in _MASKS]
        self.mask_id = masks[0] if masks else rows
        spec = {key: content[key] for key in _KEPT if key in content}
        self._spec = {"kind": "hub", "name": name, "rows": rows, "end": end_id, "content": spec}
        if any(self._frame):
            self._spec["frame"] = [*self._frame]

    @property
    def frame(self) -> Frame:
        """Ids that the model wants before and after a text, see `Tokenizer.frame`."""
        return list(self._frame[0]), list(self._frame[1])

    def model_vocab_size(self, objective: str) -> int:
        """Rows of the model, which already count the mask if it has one."""
        return self.vocab_size

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one id; of a row that no token has, its number in brackets."""
        if token_id == self.mask_id == self.vocab_size:
            return MASK_TEXT.encode()
        if not 0 <= token_id < self.vocab_size:
            return super().token_bytes(token_id)
        return self._known.get(int(token_id), f"[{int(token_id)}]".encode())

    def _piece(self, token_id: int) -> bytes:
        raise KeyError(token_id)

    @property
    def end_id(self) -> int:
        """The id that ends a text.

        Raises:
            ValueError: if the model names none.
        """
        if self._end is None:
            raise ValueError(say("no_end", name=self.name))
        return self._end
