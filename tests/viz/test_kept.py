"""A figure that was drawn before is the same figure; whatever is another picture is drawn anew."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import pytest

import viz.kept as module
import wording
from viz import distribution_bars
from viz.kept import MOST, forget, kept, key_of
from viz.projector import enlarge


@dataclass
class Spot:
    name: str
    at: float


@pytest.fixture
def drawn():
    """A function that draws, and the list of what it was asked for."""
    asked = []
    forget()

    @kept
    def draw(values, *, name=""):
        asked.append((values, name))
        return go.Figure(go.Bar(y=list(values)), layout={"meta": {"alt": f"{name} {wording.language()}"}})

    yield draw, asked
    forget()


def test_the_same_arguments_are_drawn_once(drawn):
    draw, asked = drawn
    first = draw(np.array([0.25, 0.75]), name="p")
    assert draw(np.array([0.25, 0.75]), name="p") is first and len(asked) == 1
    assert draw(np.array([0.25, 0.7500001]), name="p") is not first
    assert draw(np.array([0.25, 0.75], dtype=np.float32), name="p") is not first
    assert draw(np.array([[0.25, 0.75]])[0], name="q") is not first
    assert len(asked) == 4


def test_gaps_are_looked_up_too_and_a_key_takes_little_memory(drawn):
    """NaN is equal to nothing, not even to itself; and the names of a vocabulary are 50,000."""
    draw, asked = drawn
    assert draw([float("nan"), 1.0]) is draw([np.nan, 1.0]) and len(asked) == 1
    draw([0], name=[f"token {i}" for i in range(50_000)])
    assert all(len(key) == 16 for key in module._figures)


def test_zero_and_minus_zero_are_two_numbers_as_they_are_written(drawn):
    draw, asked = drawn
    assert draw([0.0]) is not draw([-0.0])


def test_another_language_is_another_figure(drawn, monkeypatch):
    draw, asked = drawn
    english = draw([1], name="p")
    monkeypatch.setattr(wording, "_current", lambda: "es")
    spanish = draw([1], name="p")
    assert (english.layout.meta["alt"], spanish.layout.meta["alt"]) == ("p en", "p es")
    monkeypatch.undo()
    assert draw([1], name="p") is english and len(asked) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True), (1, 1.0), (1, "1"), (None, "None"), ([1, [2]], [[1], 2]), (["ab", "c"], ["a", "bc"]),
        (np.zeros((2, 3)), np.zeros((3, 2))), (np.array([0, 1], "<i4"), np.array([0, 1], "<i8")),
        (np.array(["a", "bc"], dtype=object), np.array(["ab", "c"], dtype=object)),
        ({"a": 1, "b": 2}, {"b": 1, "a": 2}), (Spot("a", 1.0), Spot("a", 2.0)), (b"a", "a"),
    ],
)  # fmt: skip
def test_what_looks_different_has_another_key(one, other):
    assert key_of(one) != key_of(other)
    assert key_of(one) == key_of(one) and hash(key_of(one)) == hash(key_of(one))


def test_what_does_not_say_what_it_holds_is_refused():
    with pytest.raises(TypeError, match="function has no key"):
        key_of(lambda: 1)


def test_only_so_many_are_kept_and_the_oldest_goes_first(drawn):
    draw, asked = drawn
    first = draw([0])
    for n in range(1, MOST):
        draw([n])
    assert draw([0]) is first  # and is now the newest
    draw([MOST])
    assert draw([0]) is first and len(asked) == MOST + 1
    draw([1])
    assert len(asked) == MOST + 2


def test_a_drawing_that_fails_is_not_kept():
    forget()
    for _ in range(2):
        with pytest.raises(ValueError):
            distribution_bars(["a"], [0.2], tail=0.1, n_tail=3)


def test_many_at_once_get_whole_figures_and_a_copy_leaves_them_alone(drawn):
    draw, _ = drawn
    with ThreadPoolExecutor(8) as people:
        figures = list(people.map(lambda n: draw([n % 5] * 3), range(200)))
    assert [list(figure.data[0].y) for figure in figures] == [[n % 5] * 3 for n in range(200)]
    kept_one = draw([4] * 3)
    before = kept_one.to_json()
    enlarge(kept_one)
    assert kept_one.to_json() == before
