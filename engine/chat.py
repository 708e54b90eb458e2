r"""A message as a chat model reads it: the form ChatML, where a folder's own template is that form.

A template is a small program, which a folder could fill with anything: none is run. Its text is compared with
the form ``<|im_start|>role\ncontent<|im_end|>\n``, repeated for each message; another one is not offered.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from engine import hub_files
from engine.tokenizer import Tokenizer

SETTINGS, APART = "tokenizer_config.json", "chat_template.jinja"
BEGIN, END = "<|im_start|>", "<|im_end|>"
MOST = 20_000  # characters of a template


def _tag(*parts: str) -> str:
    return r"\{%-?\s*" + r"\s+".join(parts) + r"\s*-?%\}\n?"


def _out(*parts: str) -> str:
    return r"\{\{-?\s*" + r"\s*\+\s*".join(parts) + r"\s*-?\}\}"


def _said(pattern: str) -> str:
    return rf"['\"]{pattern}['\"]"


_BEGIN, _END = re.escape(BEGIN), re.escape(END)
_FIRST = (
    _tag("if", r"loop\.first", "and", rf"messages\[0\]\[{_said('role')}\]", "!=", _said("system"))
    + _out(_said(rf"{_BEGIN}system\n(?P<system>[^'\"{{}}]*?){_END}\n"))
    + _tag("endif")
)
_CLOSE = rf"(?:{_said(_END)}\s*\+\s*{_said(chr(10))}|{_said(_END + chr(10))})"
_FORM = re.compile(
    r"\s*"
    + _tag("for", "message", "in", "messages")
    + rf"(?:{_FIRST})?"
    + _out(
        _said(_BEGIN), rf"message\[{_said('role')}\]", _said("\n"), rf"message\[{_said('content')}\]", _CLOSE
    )
    + _tag("endfor")
    + _tag("if", "add_generation_prompt")
    + _out(_said(_BEGIN + "assistant\n"))
    + _tag("endif")
    + r"\s*"
)


class Message(NamedTuple):
    """What somebody said.

    Attributes:
        role: "system", "user" or "assistant".
        content: plain text; a control token's spelling in it stays text.
    """

    role: str
    content: str


@dataclass(frozen=True)
class ChatForm:
    """How a model's chats look.

    Attributes:
        begin, end: ids of the control tokens around a message.
        system: what the template says first if nobody else does; None if nothing.
    """

    begin: int
    end: int
    system: str | None


def template_of(folder: Path) -> str | None:
    """The text of a folder's chat template; None if it has none that can be read."""
    try:
        if (folder / APART).exists():
            path = hub_files.inside(folder, APART)
            return path.read_text("utf-8") if path.stat().st_size <= MOST else None
        found: Any = hub_files.read_json(folder, SETTINGS).get("chat_template")
    except (OSError, ValueError):
        return None
    if isinstance(found, list):  # several, by name
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    return found if isinstance(found, str) and len(found) <= MOST else None


def read_form(template: str) -> tuple[bool, str | None]:
    """Whether a template is ChatML as described above, and the system message that it begins with."""
    found = _FORM.fullmatch(template.replace("\\n", "\n"))
    return (False, None) if found is None else (True, found["system"])


def chat_form(folder: str | Path, tokenizer: Tokenizer) -> ChatForm | None:
    """The form of a model's chats; None if it has no template, or not one that is known to be ChatML."""
    template = template_of(Path(folder))
    known, system = (False, None) if template is None else read_form(template)
    if not known:
        return None
    try:
        begin, end = (tokenizer.encode(one, special=True) for one in (BEGIN, END))
        if len(begin) != 1 or len(end) != 1:
            return None
        form = ChatForm(begin[0], end[0], system)
        said = f"{BEGIN}user\na{END}\n{BEGIN}assistant\n"
        whole = tokenizer.encode(said, special=True)  # do control tokens swallow nothing?
        plain = {*tokenizer.encode(BEGIN), *tokenizer.encode(END)}
    except ValueError:
        return None
    parts = [*_message(tokenizer, form, Message("user", "a")), *_opening(tokenizer, form)]
    return form if whole == parts and not plain & {form.begin, form.end} else None


def chat_ids(
    tokenizer: Tokenizer, messages: Sequence[Message], form: ChatForm, *, answer: bool = True
) -> list[int]:
    """The ids of a chat, as the model's template puts it together.

    Args:
        tokenizer: of the model.
        messages: in their order, at least one.
        form: see `chat_form`.
        answer: whether the beginning of the assistant's answer stands at the end.
    """
    ids: list[int] = []
    if form.system is not None and messages[0].role != "system":
        messages = [Message("system", form.system), *messages]
    for message in messages:
        ids += _message(tokenizer, form, message)
    return ids + (_opening(tokenizer, form) if answer else [])


def _message(tokenizer: Tokenizer, form: ChatForm, message: Message) -> list[int]:
    said = tokenizer.encode(f"{message.role}\n{message.content}")
    return [form.begin, *said, form.end, *tokenizer.encode("\n")]


def _opening(tokenizer: Tokenizer, form: ChatForm) -> list[int]:
    return [form.begin, *tokenizer.encode("assistant\n")]


def end_ids(folder: str | Path | None, tokenizer: Tokenizer) -> frozenset[int]:
    """The ids with which a model ends a text; none if nothing says so.

    Of a published model all that its generation_config.json or else its config.json names, as there may be
    several; of others the tokenizer's, if the model has a row for it.
    """
    found: Any = None
    for name in ("generation_config.json", hub_files.CONFIG):
        if folder is not None and found is None and (Path(folder) / name).exists():
            try:
                found = hub_files.read_json(Path(folder), name).get("eos_token_id")
            except ValueError:
                continue
    listed = found if isinstance(found, list) else [found]
    ids = frozenset(i for i in listed if type(i) is int and 0 <= i < tokenizer.vocab_size)
    if ids:
        return ids
    try:
        return frozenset(i for i in (tokenizer.end_id,) if i < tokenizer.vocab_size)
    except ValueError:
        return frozenset()
