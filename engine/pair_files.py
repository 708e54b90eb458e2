"""Prompts and answers from a file: JSON lines, CSV with a header, or columns with tabs between them."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.tokens import repair_text
from wording import words

say = words("engine.pair_files")

MOST_BYTES = 5_000_000
MOST_ROWS = 100_000  # more would keep the page waiting for many seconds, each time
Row = tuple[int, dict[str, str]]  # the line that it begins on, and its columns


@dataclass(frozen=True)
class Pair:
    """A prompt and the answer that is wanted; `line` is where a file has it, 0 if it comes from none."""

    prompt: str
    answer: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Preference:
    """A prompt and two answers, of which the first is wanted; `line` as in `Pair`."""

    prompt: str
    chosen: str
    rejected: str
    line: int = field(default=0, compare=False)


def read_pairs(text: str) -> list[Pair]:
    """The pairs of a file with the columns prompt and answer.

    Raises:
        ValueError: one sentence with the line, if something doesn't fit; see `read_rows`.
    """
    return [Pair(**row, line=line) for line, row in read_rows(text, ("prompt", "answer"))]


def read_preferences(text: str) -> list[Preference]:
    """The preferences of a file with the columns prompt, chosen and rejected.

    Raises:
        ValueError: one sentence with the line, if something doesn't fit, or both answers are the same.
    """
    found = [Preference(**row, line=line) for line, row in read_rows(text, ("prompt", "chosen", "rejected"))]
    for one in found:
        if one.chosen == one.rejected:
            raise ValueError(say("same_answers", line=one.line))
    return found


def as_lines(pairs: Iterable[Pair | Preference]) -> str:
    """Pairs or preferences as JSON lines, the text that a run keeps."""
    rows = (vars(pair) for pair in pairs)
    return write_rows({name: value for name, value in row.items() if name != "line"} for row in rows)


def read_rows(text: str, columns: Sequence[str]) -> list[Row]:
    r"""The rows of a file and the line on which each begins.

    JSON lines are objects with at least these columns. Without them, the first line is a header that names
    the columns, or it holds as many parts as there are columns, with tabs between. Blank lines count for
    nothing. Every character is kept; half a surrogate pair becomes U+FFFD.

    Args:
        text: of the file.
        columns: that each row must have, none of them blank.

    Raises:
        ValueError: one sentence with the line, if something doesn't fit.

    >>> read_rows('{"prompt": "Hi", "answer": "Hello."}\n', ("prompt", "answer"))
    [(1, {'prompt': 'Hi', 'answer': 'Hello.'})]
    >>> read_rows("prompt,answer\nHi,Hello.\n", ("prompt", "answer"))
    [(2, {'prompt': 'Hi', 'answer': 'Hello.'})]
    >>> read_rows("Hi\tHello.\n", ("prompt", "answer"))
    [(1, {'prompt': 'Hi', 'answer': 'Hello.'})]
    """
    text = repair_text(text)[0].removeprefix("\ufeff")
    size = len(text.encode())
    if size > MOST_BYTES:
        raise ValueError(say("too_large", n=size, most=MOST_BYTES))
    lines = text.split("\n")  # only these: other line separators belong to the texts
    first = next((k for k, line in enumerate(lines) if line.strip()), None)
    if first is not None and not _header(lines[first], columns):  # of a table, the texts may have many lines
        _check_number(sum(bool(line.strip()) for line in lines))
    if first is None:
        raise ValueError(say("empty", columns=", ".join(columns)))
    beginning = lines[first].strip()
    if beginning.startswith("{"):
        rows = _json_lines(lines, columns)
    elif beginning.startswith("["):
        raise ValueError(say("json_list", line=first + 1))
    elif delimiter := _header(lines[first], columns):
        rows = _table(text, delimiter, columns)
    elif "\t" in lines[first]:
        rows = _tabbed(lines, columns)
    else:
        raise ValueError(say("unknown", line=first + 1, columns=",".join(columns)))
    return [_checked(line, row, columns) for line, row in rows]


def _check_number(n: int) -> None:
    if n > MOST_ROWS:
        raise ValueError(say("too_many", most=MOST_ROWS))


def write_rows(rows: Iterable[Mapping[str, str]]) -> str:
    """JSON lines, as a run keeps them; every character as it is."""
    return "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)


def _json_lines(lines: Sequence[str], columns: Sequence[str]) -> list[Row]:
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(say("not_json", line=number)) from error
        if not isinstance(content, dict):
            raise ValueError(say("not_object", line=number, columns=", ".join(columns)))
        for name in columns:
            if name not in content:
                raise ValueError(
                    say("lacks", line=number, name=name, found=", ".join(map(str, content)) or "0")
                )
            if not isinstance(content[name], str):
                raise ValueError(say("not_text", line=number, name=name))
        rows.append((number, {name: repair_text(content[name])[0] for name in columns}))
    return rows


def _header(line: str, columns: Sequence[str]) -> str:
    """What stands between the columns of a table whose header this is; "" if it is none."""
    for delimiter in ",;\t":
        try:
            found = next(csv.reader([line], delimiter=delimiter))
        except csv.Error:  # no header is so long, or so odd
            continue
        if {name.strip().lower() for name in found} >= set(columns):
            return delimiter
    return ""


def _table(text: str, delimiter: str, columns: Sequence[str]) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    header: list[str] = []
    begins = 1
    try:
        for parts in reader:
            line, begins = begins, reader.line_num + 1
            if not any(part.strip() for part in parts):
                continue
            if not header:
                header = [name.strip().lower() for name in parts]
                continue
            if len(parts) != len(header):
                raise ValueError(say("columns_differ", line=line, n=len(parts), need=len(header)))
            _check_number(len(rows) + 1)
            found = dict(zip(header, parts, strict=True))
            rows.append((line, {name: found[name] for name in columns}))
    except csv.Error as error:
        raise ValueError(say("not_csv", line=begins, error=error)) from error
    return rows


def _tabbed(lines: Sequence[str], columns: Sequence[str]) -> list[Row]:
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            parts = line.removesuffix("\r").split("\t")
            if len(parts) != len(columns):
                raise ValueError(say("columns_differ", line=number, n=len(parts), need=len(columns)))
            rows.append((number, dict(zip(columns, parts, strict=True))))
    return rows


def _checked(line: int, row: dict[str, str], columns: Sequence[str]) -> Row:
    for name in columns:
        if not row[name].strip():
            raise ValueError(say("blank", line=line, name=name))
    return line, row
