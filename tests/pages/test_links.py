"""Links that bring settings and hide controls: whole, checked, harmless."""

import ast
import importlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from engine.runs import RunStore
from tests.pages.conftest import ROOT
from ui import link_hidden, link_kinds, link_settings, nav

PAGES = [info.name for info in nav.PAGES]
STORY = "Once upon a time, there was a dog called Max. He"


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunStore, "warm", lambda self: None)  # no worker need stand by


INPUTS = {
    "slider", "select_slider", "selectbox", "multiselect", "segmented_control", "pills", "radio", "toggle",
    "checkbox", "number_input", "text_input", "text_area", "file_uploader",
}  # fmt: skip
SELECTIONS = {"token_strip", "head_grid", "token_tree", "token_table", "merge_chips", "stage_bars", "moments"}

# Inputs that a link does not bring along, and why.
NOT_SHARED = {
    r"(no_)?model|text|lang|projector": "of the frame: they stand in the address, or belong to a person",
    r"link_.*|\*_qr_large_on": "the panel that makes the link",
    r"class_link_.*|people_.*|teacher_.*": "about a person or a class, not about a page",
    r"\*_(pick|sure|answer|order)": "bets and answers are each student's own",
    r".*_file|.*_upload": "a file lies on one computer",
    r"(training|merges)_encoding|pair_.*(text|paste|encoding)": "belongs to a file, or starts a training",
    r"training_(all|compare)|runs_(chosen|one|first_.*|second_.*|name_.*)": "names runs of one browser",
    r"class_.*": "names runs of one server",
    r"tuning_run_.*": "names runs of one browser",
    r"tuning_encoding": "belongs to a file",
    r"tuning_strip_.*": "only looked at",
    r"experiments_guess_.*": "a prediction is each student's own",
    r"training_delete_.*|training_use_.*": "an act, not a setting",
    r"generation_branch": "names what one person wrote",
    r"(exercise|exercises|guess|lesson|lessons|glossary)_.*": "answers are each student's own",
    r"tokens_(other|table)|merges_(chips|strip)": "another look at a place that is shared",
    r"generation_(strip|framed|dice|tree|waterfall|stages|draws)|.*_dice": "what was drawn, not what was set",
    r"masking_(strip|fill_strip|paid_.*|batch)|limits_.*|masking_sentence.*": "follow from the gaps",
    r"next_token_long_strip|step_batch_.*|tokens_head_.*|tokens_sentence_.*": "only looked at",
    r"time_machine|step_losses|step_place": "the parts of it are shared one by one",
    r"inside_pos|home_tokens": "stands in the address",
}


ANSWERS = ("exercise", "guess")  # files of pages on which every input is a student's own answer


def unshared(key: str) -> bool:
    return any(re.fullmatch(pattern, key) for pattern in NOT_SHARED)


def registered(key: str) -> bool:
    """Whether some page's link holds a key; an `*` in it stands for what is known only later."""
    patterns = [pattern for settings in link_settings.SETTINGS.values() for pattern in settings]
    tried = key.replace("*", "x1")
    return any(pattern == key or link_settings._matches(pattern, tried) for pattern in patterns)


def written_key(node: ast.expr, names: dict[str, Any]) -> str | None:
    """A session key as it stands in the code, with `*` for what is put in later; None if it is not there."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.Constant) else "*" for v in node.values]
        return "".join(map(str, parts))
    if isinstance(node, ast.Name):
        found = names.get(node.id)
        return found if isinstance(found, str) else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        found = getattr(names.get(node.value.id), node.attr, None)
        return found if isinstance(found, str) else None
    return None


@cache
def keyed_calls(path: Path) -> list[tuple[str, str, int]]:
    """Calls that give a session key, in a file: what is called, the key, and the line."""
    tree = ast.parse(path.read_text("utf-8"))
    found: list[tuple[str, str, int]] = []
    if path.parent.name == "pages":  # a page runs when it is imported
        names = {
            target.id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
    else:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names = vars(importlib.import_module(module))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        keys = [word.value for word in node.keywords if word.arg == "key"]
        bound = any(word.arg == "bind" for word in node.keywords)
        if keys and not bound and (key := written_key(keys[0], names)) is not None:
            found.append((name, key, node.lineno))
    return found


def keyed(path: Path, kinds: set[str]) -> Iterator[tuple[str, int]]:
    """Session keys of widgets of these kinds that stand in a file, and the lines."""
    return ((key, line) for name, key, line in keyed_calls(path) if name in kinds)


@pytest.mark.parametrize(
    "path", sorted([*(ROOT / "pages").glob("*.py"), *(ROOT / "ui").glob("*.py")]), ids=lambda p: p.stem
)
def test_every_input_stands_in_a_link_or_is_said_not_to(path: Path) -> None:
    if path.stem.startswith(ANSWERS):
        return
    for key, line in keyed(path, INPUTS | SELECTIONS):
        assert registered(key) or unshared(key), (
            f"{path.name} line {line}: put {key!r} into ui/link_settings.py, or say here why not"
        )


BUTTONS = {"button", "download_button", "popover", "expander", "form_submit_button", "copy_text"}


@pytest.mark.parametrize("path", sorted((ROOT / "ui").glob("*.py")), ids=lambda p: p.stem)
def test_no_link_presses_a_button(path: Path) -> None:
    for key, line in keyed(path, BUTTONS):
        kept_back = key.startswith("example_")  # the page takes them from the link itself, by `take_field`
        assert not registered(key) or unshared(key) or kept_back, f"{path.name} line {line}: {key!r}"


def inputs_on(at: AppTest) -> list[str]:
    kinds = ("slider", "select_slider", "selectbox", "multiselect", "button_group", "radio", "toggle",
             "checkbox", "number_input", "text_input", "text_area")  # fmt: skip
    return [element.key for kind in kinds for element in getattr(at.main, kind) if element.key]


VIEWS = {
    "tokens": "view", "embeddings": "vectors", "inside": "inside", "training": "watch", "masking": "hide",
    "generation": "lab", "next_token": "look", "tuning": "tune",
}  # fmt: skip


class Seen(NamedTuple):
    """What a page drew in one of its views."""

    view: str
    inputs: list[str]
    choices: set[str]
    session: set[str]


_SEEN: dict[str, list[Seen]] = {}


def straight(name: str, **query: str) -> AppTest:
    """A page as the first of a session, as a student's browser opens a link; `open_page` comes from home."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at.session_state["text"] = STORY
    for key, value in query.items():
        at.query_params[key] = value
    return at.switch_page(f"pages/{name}.py").run()


def seen(name: str) -> list[Seen]:
    """The page in each of its views, one after the other in one session; looked at once."""
    if name not in _SEEN:
        at, key = straight(name), VIEWS.get(name, "")
        found = [look(at, "")]
        for view in list(at.session_state["_choices"].get(key, ("", {}))[1])[1:]:
            at.query_params[key] = view
            found.append(look(at.run(), view))
            assert at.session_state[key] == view
        _SEEN[name] = found
    return _SEEN[name]


def look(at: AppTest, view: str) -> Seen:
    assert not at.exception, (view, at.exception[0].value)
    state = at.session_state
    return Seen(view, inputs_on(at), set(state["_choices"]), set(map(str, state)))


@pytest.mark.parametrize("name", PAGES)
def test_every_input_that_a_page_draws_is_known(name: str) -> None:
    for drawn in seen(name):
        in_address = drawn.choices | BOUND
        unknown = [
            key
            for key in drawn.inputs
            if not (link_settings.setting(name, key) or unshared(key) or key in in_address)
        ]
        assert not unknown, f"put them into ui/link_settings.py, under {name}"


BOUND = {  # in the address by Streamlit itself
    "temperature", "top_k", "top_p", "min_p", "penalty", "seed", "tokens", "partner", "other", "class_large",
    "study", "measure", "real", "bars", "vectors", "view", "hide",
}  # fmt: skip

# For each kind of setting a value of its type that no page has.
ODD: dict[int, Any] = {
    id(link_kinds.FLAG): True,
    id(link_kinds.WORD): "nonsense <script>alert(1)</script>",
    id(link_kinds.OPTION): 987_654,
    id(link_kinds.FIELD): "<b>nonsense</b>",
    id(link_kinds.SOME): ["nonsense"],
    id(link_kinds.SEED): 2**31,
    id(link_kinds.PLACE): 99_999,
    id(link_kinds.HEAD): [99_999, 99_999],
    id(link_kinds.GAPS): [0, 3, 99_999],
}


CLOSED = ("mlm", "muon", "bits", "joint", "last", "cuda")  # where a page takes nothing else, its last option


def odd_value(kind: link_kinds.Setting) -> Any:
    if id(kind) in ODD:
        return ODD[id(kind)]
    numbers = (
        10**7,
        10**6,
        10**5,
        10**4,
        8192,
        1000,
        768,
        512,
        500,
        256,
        200,
        100,
        64,
        20,
        12,
        8,
        3,
        1,
        0.9,
        0.5,
    )
    return next(value for value in (*numbers, "<b>nonsense</b>", *CLOSED) if kind.fits(value))


@pytest.mark.parametrize("name", [name for name in PAGES if name in link_settings.SETTINGS])
def test_values_that_no_page_has_break_nothing(name: str) -> None:
    """The right type and within the widest range, but not on this page: the page answers with its own."""
    patterns = link_settings.SETTINGS[name]
    views = seen(name)
    known = set().union(*(drawn.session for drawn in views))
    odd = {
        key: odd_value(kind)
        for pattern in patterns
        for key in ([k for k in known if link_settings._matches(pattern, k)] if "*" in pattern else [pattern])
        if (kind := link_settings.setting(name, key))
    }
    for drawn in views:
        view = {VIEWS[name]: drawn.view} if drawn.view else {}
        at = straight(name, set=link_settings.written(odd), **view)
        assert not at.exception, (at.exception[0].value, at.exception[0].stack_trace)
        assert at.title
    half = {key: odd[key] for key in sorted(odd)[::2]}  # what one setting makes harmless, may hide another
    assert not straight(name, set=link_settings.written(half)).exception


@pytest.mark.parametrize(
    "raw", ["", "null", "[]", "7", "{", '{"attention_dim": "3"}', '{"attention_dim": 1e400}', "[" * 3000,
            '{"__class__": 1}', '{"_owner": {"token": "x"}}', '{"text": "x"}', '{"attention_dim": true}',
            '{"attention_part": "' + "x" * 5000 + '"}', '{"attention_heads": [0, -1]}',
            '{"attention_part": "a\\u0000b"}',
            '{"attention_dim": ' + "9" * 4500 + "}"],
)  # fmt: skip
def test_hostile_settings_are_one_sentence(raw: str) -> None:
    at = straight("attention", set=raw)
    assert not at.exception and at.title[0].value == "Attention"
    said = [
        caption.value
        for caption in at.main.caption
        if "does not fit" in caption.value or "do not fit" in caption.value
    ]
    assert len(said) == 1
    assert at.session_state["text"] == STORY


def test_settings_are_there_when_the_page_is_drawn_and_then_theirs() -> None:
    wanted = {
        "attention_heads": [1, 2],
        "attention_query": 3,
        "attention_arithmetic": "output",
        "attention_dim": 7,
    }
    at = straight("attention", set=json.dumps(wanted))
    assert not at.exception
    assert (
        at.query_params["layer"] == "2" and at.query_params["head"] == "3" and at.query_params["pos"] == "3"
    )
    assert at.number_input(key="attention_dim").value == 7
    at.number_input(key="attention_dim").set_value(5).run()
    assert at.number_input(key="attention_dim").value == 5, "the link holds once, then the person"
    assert not [c for c in at.main.caption if "not fit" in c.value]


def test_what_is_read_is_what_was_written() -> None:
    at = straight("inside", set=json.dumps({"inside_off_1": ["MLP"], "inside_layer": 2}))
    assert not at.exception
    assert at.session_state["inside_layer"] == 2


def test_what_a_page_resets_at_another_place_is_kept_as_the_link_says() -> None:
    wanted = {"inside_token": 526, "inside_against": 409}  # the first of both is neither
    at = straight("inside", inside="contributions", pos="13", set=json.dumps(wanted))
    assert not at.exception and not [c for c in at.main.caption if "not fit" in c.value]
    assert {key: at.selectbox(key=key).value for key in wanted} == wanted


def hides(at: AppTest) -> str:
    """The style that hides, or ""."""
    return "".join(
        str(e.proto.body) for e in at.get("html") if "display: none !important" in str(e.proto.body)
    )


def test_hidden_views_are_not_offered_and_controls_not_drawn() -> None:
    at = straight("next_token", hidden="model.menu.look--table.next_token_strip")
    assert ".st-key-model" in hides(at) and "stTopNav" in hides(at)
    label, options = at.session_state["_choices"]["look"]
    look = next(group for group in at.main.button_group if group.key == "look")
    assert len(look.options) == len(options) - ("table" in options)
    at.button(key="link_show").click().run()
    assert not hides(at)
    at.button(key="link_hide").click().run()
    assert ".st-key-model" in hides(at)


def test_a_locked_view_offers_no_way_out() -> None:
    at = straight("tokens", hidden="model.locked")
    assert not [button for button in at.button if button.key == "link_show"]
    assert any("teacher set up" in caption.value for caption in at.main.caption)


def test_hostile_names_hide_nothing_and_say_so() -> None:
    raw = "x{}</style><script>.link_notice._owner." + "y" * 200 + ".people_kept"
    at = straight("tokens", hidden=raw)
    assert not at.exception
    assert not hides(at)
    assert any("not known here" in caption.value for caption in at.main.caption)


def test_names_in_a_link_are_slugs_only() -> None:
    for name in ("a b", "a{", "a,b", "a}b", "*", "a:hover", "<b>", "_x", "link_x", "", "é"):
        assert link_hidden.read(name)[0] == [], name
    assert len(link_hidden.read(".".join(f"k{i}" for i in range(200)))[0]) == link_hidden.MOST


def test_a_parameter_of_settings_survives_the_address() -> None:
    from urllib.parse import parse_qs, urlsplit

    from ui.link_address import link

    settings = {"tokens_translation": "más & «50 %» + #x\n日本 👋🏽", "tokens_special": True}
    raw = link_settings.written(settings)
    query = parse_qs(urlsplit(link("http://h:1", "tokens", {"set": raw, "text": "a=b&c"})).query)
    assert json.loads(query["set"][0]) == settings and query["text"] == ["a=b&c"]
    assert link_settings.read(query["set"][0], "tokens") == (settings, 0)


def test_a_number_in_a_link_that_no_float_holds_is_ignored() -> None:
    huge = "1" + "0" * 400
    assert link_settings.read(f'{{"training_learning_rate": {huge}}}', "training") == ({}, 1)
    assert link_settings.read(f'{{"example_x": -{huge}}}', "examples") == ({}, 1)
