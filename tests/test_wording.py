"""The text files: each language whole, nothing said outside them, every place filled."""

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wording

ROOT = Path(__file__).parent.parent
OTHERS = [name for name in wording.LANGUAGES if name != wording.SOURCE]
ROOMS = ("pages", "ui", "viz", "engine", "pretrained")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def leaves(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and sentence (or its plural forms) of everything in a table."""
    for key, value in table.items():
        if isinstance(value, dict) and not set(value) <= {"one", "other"}:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def sentences(language: str) -> dict[str, Any]:
    return {
        f"{area}:{key}": value
        for area, table in wording.texts(language).items()
        for key, value in leaves(table)
    }


def forms(value: Any) -> list[str]:
    return list(value.values()) if isinstance(value, dict) else [value]


def places(text: str) -> set[str]:
    """Names and formats of the places of a template; none if it is not one."""
    try:
        return {f"{name}:{spec}" for _, name, spec, _ in string.Formatter().parse(text) if name}
    except ValueError:  # a formula with braces of its own, said without values
        return set()


def test_every_language_has_the_same_files() -> None:
    names = {path.name for path in (ROOT / "wording" / wording.SOURCE).glob("*.toml")}
    for language in OTHERS:
        assert {path.name for path in (ROOT / "wording" / language).glob("*.toml")} == names


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_is_missing_in_a_language_and_nothing_is_left_over(language: str) -> None:
    assert sorted(sentences(language)) == sorted(sentences(wording.SOURCE))


@pytest.mark.parametrize("language", OTHERS)
def test_a_sentence_has_the_same_places_in_every_language(language: str) -> None:
    theirs = sentences(language)
    for key, value in sentences(wording.SOURCE).items():
        mine, other = forms(value), forms(theirs[key])
        wanted, found = set().union(*map(places, mine)), set().union(*map(places, other))
        assert found == wanted, key
        assert isinstance(value, dict) == isinstance(theirs[key], dict), key


def said(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Area and call of each `say(...)` in a file; a file may have several areas under several names."""
    tree = ast.parse(path.read_text("utf-8"))
    areas = {
        node.targets[0].id: node.value.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "words"
        and isinstance(node.value.args[0], ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            if isinstance(name, ast.Name) and name.id in areas:
                yield areas[name.id], node


def starts_of(key: ast.expr) -> list[tuple[str, bool]]:
    """The written part of each key that this may be, and whether it is all of it."""
    if isinstance(key, ast.IfExp):
        return starts_of(key.body) + starts_of(key.orelse)
    if isinstance(key, ast.Constant):
        return [(str(key.value), True)]
    if isinstance(key, ast.JoinedStr) and isinstance(key.values[0], ast.Constant):
        return [(str(key.values[0].value), False)]
    if isinstance(key, ast.BinOp) and isinstance(key.left, ast.Constant):
        return [(str(key.left.value), False)]
    return [("", False)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_said_stands_in_the_files(path: Path) -> None:
    for area, call, key, whole in [
        (*one, *start) for one in said(path) for start in starts_of(one[1].args[0])
    ]:
        where = f"{path.name} line {call.lineno}"
        if not whole:
            assert key.endswith("."), f"{where}: begin a computed key with the name of its table and a dot"
            assert isinstance(wording.find(area, key.rstrip("."), wording.SOURCE), dict), where
            continue
        found = wording.find(area, key, wording.SOURCE)
        if isinstance(call.func, ast.Attribute) or any(word.arg is None for word in call.keywords):
            continue
        given = {word.arg for word in call.keywords}
        wanted = {place.split(":")[0] for form in forms(found) for place in places(form)} if given else set()
        needs = wanted | ({"n"} if isinstance(found, dict) else set())
        assert needs <= given, f"{where}: {key} needs {needs - given}"


def test_nothing_stands_in_the_files_that_nobody_says() -> None:
    used: set[str] = set()
    for path in FILES:
        for area, call in said(path):
            used |= {f"{area}:{key if whole else key.rstrip('.')}" for key, whole in starts_of(call.args[0])}
    left = [
        key
        for key in sentences(wording.SOURCE)
        if not any(key == one or key.startswith(f"{one}.") for one in used)
    ]
    assert not left


COMMAND_LINE = {"command_line", "run_options", "start_options"}  # help and errors in English, in the code
SENTENCE = re.compile(r"[^\W\d_]{2,}[,;:.]? +[^\W\d_]")  # two words


@pytest.mark.parametrize("path", sorted((ROOT / "engine").glob("*.py")), ids=lambda path: path.stem)
def test_an_error_of_the_engine_is_said_from_the_files(path: Path) -> None:
    """A page shows it as it is."""
    if path.stem in COMMAND_LINE:
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Raise) and node.exc:
            parts = [node.exc]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__":
            parts = node.args
        for inner in (inner for part in parts for inner in ast.walk(part)):
            text = inner.value if isinstance(inner, ast.Constant) else None
            assert not (isinstance(text, str) and SENTENCE.search(text)), (
                f"{path.name} line {node.lineno}: {text!r} belongs into wording/*/engine.toml"
            )


def test_without_a_screen_the_process_says_which_language(monkeypatch: pytest.MonkeyPatch) -> None:
    say = wording.words("ui.language")
    monkeypatch.setenv("LOUPE_LANGUAGE", "es")
    assert wording.language() == "es" and say("label") == "Idioma"
    monkeypatch.setenv("LOUPE_LANGUAGE", "xx")
    assert wording.language() == "en" and say("label") == "Language"


def test_a_plural_takes_the_form_of_its_number() -> None:
    say = wording.words("ui.words")
    assert [say("noun.token", n=n) for n in (0, 1, 2, 1200)] == [
        "0 tokens",
        "1 token",
        "2 tokens",
        "1,200 tokens",
    ]


SAME = {"GPU", "broke", "more", "más", "million", "of", "de"}  # after a number: the same for one and for many


@pytest.mark.parametrize("language", wording.LANGUAGES)
def test_one_and_none_and_many_are_said_right(language: str) -> None:
    """What follows the number agrees with it; 0 is said like 2."""
    tables = {name: value for name, value in sentences(language).items() if isinstance(value, dict)}
    assert len(tables) > 50
    for name, value in tables.items():
        area, key = name.split(":")
        names = {place.split(":")[0] for form in forms(value) for place in places(form)}
        said = [
            wording.words(area).written(key, language, **{**dict.fromkeys(names, 777), "n": n})
            for n in (0, 1, 2)
        ]
        assert set(value) == {"one", "other"}, name
        assert re.sub(r"(?<!\d)0(?!\d)", "2", said[0]) == said[2], name
        nouns = [re.findall(rf"(?<![\d.,]){n} ([^\W\d_]+(?: [^\W\d_]+)?)", said[n]) for n in (1, 2)]
        for one, many in zip(*nouns, strict=False):
            assert one != many or one.split()[0] in SAME, f"{name}: {said[1]}"
        assert said[1] != said[2], name


def test_an_unknown_key_says_where_to_add_it() -> None:
    with pytest.raises(KeyError, match=r"no 'nonsense' under \[ui.words\]"):
        wording.words("ui.words")("nonsense")


def test_text_of_a_value_is_never_read_as_a_template() -> None:
    say = wording.words("ui.words")
    with pytest.raises(KeyError):
        say("noun.token", m=1)
    assert re.fullmatch(r"\d+ tokens?", say("noun.token", n=5))
