"""The trial of strangers at its smallest size keeps every promise, and sees one that is broken."""

import re
from pathlib import Path

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from engine import config, teacher_secret
from engine.owners import owner_hash
from trials import strangers, strangers_guess, strangers_limits, strangers_wire, strangers_words
from trials.outcomes import Options
from trials.strangers_people import Listener, Spy, Things, changes, settle, state_of, strings

WORD = "0f" * 16


def message(**element: object) -> ForwardMsg:
    """What a server sends to draw something, such as markdown={"body": "x"}."""
    made = ForwardMsg()
    for kind, fields in element.items():
        target = getattr(made.delta.new_element, kind)
        for name, value in fields.items():  # type: ignore[attr-defined]
            setattr(target, name, value)
    return made


def heard(*messages: ForwardMsg) -> Spy:
    spy = Spy("http://nowhere")
    spy.listeners.append(Listener(spy, "", "", heard=list(messages)))
    return spy


def test_at_toy_size_every_promise_is_kept() -> None:
    part = strangers.trial(Options(toy=True))
    assert part.name == "strangers" and len(part.checks) >= 18
    assert part.kept, [f"{check.what}: {check.seen}" for check in part.checks if not check.kept]


# ---- what is broken is seen


def test_a_text_of_others_in_a_message_is_seen() -> None:
    things = Things(WORD, "20260101-000000-abcdef", "20260101-000000-abcdee", "v", "r", "t")
    assert strangers_guess.leaked(things, heard(message(text={"body": "a cat"})).said()) == []
    leak = heard(message(text={"body": "the plumfeather sang"}), message(markdown={"body": owner_hash(WORD)}))
    assert strangers_guess.leaked(things, leak.said()) == ["its fingerprint", "the text"]


@pytest.mark.parametrize("payload", strangers_words.PAYLOADS)
def test_a_text_that_is_not_escaped_is_seen(payload: str) -> None:
    escaped = re.sub(r"([\\`*_{}\[\]()#+\-.!|~<>$:&])", r"\\\1", payload)
    assert strangers_words.raw(heard(message(text={"body": payload}))) == (1, [])
    assert strangers_words.raw(heard(message(markdown={"body": f"The run {escaped} ended."}))) == (1, [])
    for kind, field in (("markdown", "body"), ("button", "label"), ("alert", "body"), ("text_input", "help")):
        n, bad = strangers_words.raw(heard(message(**{kind: {field: f"The run {payload} ended."}})))
        assert n == 1 and bad and field in bad[0]
    n, bad = strangers_words.raw(heard(message(html={"body": payload})))
    assert bool(bad) == ("<" in payload)


def test_a_script_that_writes_html_is_seen(tmp_path: Path) -> None:
    (tmp_path / "good.js").write_text("box.textContent = data.name\nbox.onclick = () => choose(1)")
    assert strangers_words.scripts(tmp_path).kept
    (tmp_path / "bad.js").write_text("box.innerHTML = data.name")
    assert not strangers_words.scripts(tmp_path).kept


def test_a_file_of_others_that_changes_is_seen(loupe_home: Path) -> None:
    things = settle(str(loupe_home), WORD)
    before = state_of(str(loupe_home), things)
    assert len(before) > 8 and changes(before, state_of(str(loupe_home), things)) == []
    (loupe_home / "runs" / things.run / "opened").touch()
    assert changes(before, state_of(str(loupe_home), things)) == [], "somebody looked at it"
    (loupe_home / "runs" / things.waits / "stop").touch()
    assert changes(before, state_of(str(loupe_home), things)) == [f"runs/{things.waits}/stop"]


def test_settings_without_a_bound_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "MOST_STEPS", 10**15)
    check = strangers_limits.settings()
    assert not check.kept and "steps" in check.seen


def test_a_guard_that_lets_all_guesses_through_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers_limits, "HOUR", 200.0)
    assert all(check.kept for check in strangers_limits.guesses(tmp_path / "a"))
    monkeypatch.setattr(teacher_secret, "PAUSE", 0.0)
    slowed, let_in = strangers_limits.guesses(tmp_path / "b")
    assert not slowed.kept and let_in.kept


def test_every_text_of_a_message_is_found_with_its_place() -> None:
    found = dict(strings(message(markdown={"body": "x", "allow_html": True})))
    assert found == {"delta.new_element.markdown.body": "x"}


def test_what_a_server_hands_out_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "teacher-secret").write_text("seven purple hats\n")
    answer = strangers_wire.Answer(404, {}, b"")
    monkeypatch.setattr(strangers_wire, "ask", lambda *_, **__: answer)
    assert strangers_wire.paths(Spy("http://nowhere"), str(tmp_path)).kept
    answer = strangers_wire.Answer(200, {"access-control-allow-origin": "*"}, b"it is seven purple hats")
    assert not strangers_wire.paths(Spy("http://nowhere"), str(tmp_path)).kept
    assert not strangers_wire.headers(Spy("http://nowhere")).kept
