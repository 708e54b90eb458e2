"""The ids that a published model wants around a text, as its tokenizer.json tells them."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.refused import broken_entry
from wording import words

say = words("engine.hub")

Frame = tuple[list[int], list[int]]


def frame_of(processor: Mapping[str, Any] | None, *, masked: bool) -> Frame:
    """Ids before and after a single text.

    A causal model gets none after it: what its tokenizer would write there ends a text, and ours go on.

    Args:
        processor: the `post_processor` of a tokenizer.json.
        masked: whether the model is a masked one.

    Raises:
        ValueError: one sentence, if it is damaged, of an unknown kind, or puts a part of the text into
            another type than 0, which the models of Loupe don't know.

    >>> frame_of({"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}, masked=True)
    ([0], [2])
    """
    try:
        found = [frame for step in _steps(processor) for frame in _frames(step)]
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(say("tokenizer_damaged", why=broken_entry(error))) from error
    if len(found) > 1:
        raise ValueError(say("tokenizer_frame", kind=str(processor and processor.get("type"))[:80]))
    before, after = found[0] if found else ([], [])
    return before, after if masked else []


def _steps(processor: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    if processor is None:
        return []
    return list(processor["processors"]) if processor["type"] == "Sequence" else [processor]


def _frames(step: Mapping[str, Any]) -> Iterator[Frame]:
    kind = step["type"]
    if kind in ("BertProcessing", "RobertaProcessing"):
        yield [_whole(step["cls"][1])], [_whole(step["sep"][1])]
    elif kind == "TemplateProcessing":
        yield _template(step)
    elif kind != "ByteLevel":  # that one only says where tokens lie
        raise ValueError(say("tokenizer_frame", kind=str(kind)[:80]))


def _template(step: Mapping[str, Any]) -> Frame:
    sides: Frame = ([], [])
    texts = 0
    for piece in step["single"]:
        ((what, about),) = piece.items()
        if about["type_id"] != 0:
            raise ValueError(say("tokenizer_types", type=repr(about["type_id"])[:80]))
        if what == "Sequence":
            texts += 1
        else:
            sides[min(texts, 1)].extend(_whole(i) for i in step["special_tokens"][about["id"]]["ids"])
    if texts != 1:
        raise ValueError(say("tokenizer_frame", kind="TemplateProcessing"))
    return sides


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(value)
    return value
