"""A matrix times one vector: reading it ahead changes no number, and is used where it is faster."""

import gc
import weakref

import pytest
import torch
from torch import nn

from engine import vector_products
from engine.cache import KVCache
from engine.decoding import Decoder
from engine.eight_bits import Rounded
from engine.model import Transformer
from engine.vector_products import (
    Exact,
    Measured,
    ReadAhead,
    flat,
    least_seconds,
    line_of,
    pieces,
    reading_ahead_pays,
)
from tests.engine.small_training import tiny

SHAPES = [(1536, 384), (384, 1536), (1000, 400), (7, 30_000), (1, 500_000), (3, 5)]


def some(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    """The same up to the order in which a product adds, which no processor promises for some of the rows."""
    torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-4)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[int, Measured]:
    """What was measured in this process is forgotten."""
    known: dict[int, Measured] = {}
    monkeypatch.setattr(vector_products, "_known", known)
    return known


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("biased", [False, True])
def test_reading_ahead_gives_the_same_numbers(shape: tuple[int, int], biased: bool) -> None:
    weight, x, stream = some(*shape), some(shape[1]), some(shape[0])
    bias = some(shape[0]) if biased else None
    exact, ahead = Exact(weight, bias), ReadAhead(weight, bias)
    out = [torch.empty(shape[0]) for _ in range(2)]
    for line, place in zip((exact, ahead), out, strict=True):
        line.into(line.ready(x), place)
    close(*out)
    close(exact.of(exact.ready(x)), ahead.of(ahead.ready(x)))
    close(exact.added(stream, x), ahead.added(stream, x))
    torch.testing.assert_close(out[0], weight @ x + (0 if bias is None else bias), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_pieces_are_all_rows_once_and_fit_a_cache(shape: tuple[int, int]) -> None:
    cut = list(pieces(torch.empty(shape)))
    assert [row for rows in cut for row in range(rows.start, rows.stop)] == list(range(shape[0]))
    least = vector_products.ROWS * shape[1] * 4  # rows that products take together are not parted
    assert all(
        (rows.stop - rows.start) * shape[1] * 4 <= max(2 * vector_products.PIECE, least) for rows in cut
    )
    assert all(rows.start % vector_products.ROWS == 0 for rows in cut)


def test_weights_may_change_between_two_tokens() -> None:
    weight, x = some(1536, 384), some(384)
    line = ReadAhead(weight, None)
    weight.mul_(2)
    close(line.of(x), torch.mv(weight, x))


def test_bytes_are_read_in_eights() -> None:
    matrix = torch.arange(-64, 64, dtype=torch.int8).view(4, 32)
    assert flat(matrix).dtype == torch.int64 and flat(matrix).numel() == 16
    assert flat(matrix[:, :3].contiguous()).dtype == torch.int8  # 12 bytes
    assert flat(some(3, 5)).dtype == torch.float32


def test_eight_bits_read_ahead_are_the_same() -> None:
    linear = nn.Linear(1536, 2048, bias=True).requires_grad_(False)
    rounded, x, stream = Rounded(linear), some(1536), some(2048)
    before = [rounded.of(rounded.ready(x)), rounded.added(stream, x)]
    rounded.read_ahead()
    assert len(list(pieces(rounded.whole))) > 1
    for a, b in zip(before, [rounded.of(rounded.ready(x)), rounded.added(stream, x)], strict=True):
        close(a, b)


def test_a_small_model_is_not_measured(measured: dict[int, Measured]) -> None:
    assert not reading_ahead_pays([some(384, 384)])
    assert not measured


@pytest.mark.parametrize(
    ("seconds", "pays", "times"), [([1.0, 0.5], True, 1), ([1.0, 0.95], True, 1), ([0.5, 1.0], False, 3)]
)
def test_it_is_measured_once_and_a_no_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
    measured: dict[int, Measured],
    seconds: list[float],
    pays: bool,
    times: int,
) -> None:
    asked = []

    def told(works: object, turns: int) -> list[float]:
        asked.append(turns)
        return seconds

    monkeypatch.setattr(vector_products, "LARGE", 1000)
    monkeypatch.setattr(vector_products, "least_seconds", told)
    assert [reading_ahead_pays([some(384, 384)]) for _ in range(5)] == [pays] * 5
    assert len(asked) == times and list(measured) == [torch.get_num_threads()]


def test_a_busy_moment_does_not_decide_for_good() -> None:
    said = iter([False, True])
    faster = Measured(lambda: next(said))
    assert [faster() for _ in range(4)] == [False, True, True, True]
    slow = Measured(lambda: False)
    assert not any(slow() for _ in range(5))
    assert len(slow.said) == 3, "and where it is slower it is not measured for ever"


def test_measuring_keeps_no_weights_alive(
    monkeypatch: pytest.MonkeyPatch, measured: dict[int, Measured]
) -> None:
    monkeypatch.setattr(vector_products, "LARGE", 1000)
    matrix = some(384, 384)
    gone = weakref.ref(matrix)
    reading_ahead_pays([matrix])
    del matrix
    gc.collect()
    assert gone() is None


def test_a_model_that_diverged_decides_nothing_for_others(
    monkeypatch: pytest.MonkeyPatch, measured: dict[int, Measured]
) -> None:
    monkeypatch.setattr(vector_products, "LARGE", 1000)
    monkeypatch.setattr(vector_products, "least_seconds", lambda works, turns: [1.0, 0.5])
    assert reading_ahead_pays([some(384, 384).fill_(torch.nan)])


def test_weights_that_do_not_lie_in_a_line_are_multiplied_as_they_are(
    monkeypatch: pytest.MonkeyPatch, measured: dict[int, Measured]
) -> None:
    linear, x = nn.Linear(384, 1536, bias=False).requires_grad_(False), some(384)
    linear.weight = nn.Parameter(some(384, 1536).t(), requires_grad=False)
    monkeypatch.setattr(vector_products, "LARGE", 1000)
    assert not reading_ahead_pays([linear.weight])
    assert torch.equal(line_of(linear, True).of(x), torch.mv(linear.weight, x))


def test_where_the_numbers_would_differ_it_is_not_used(
    monkeypatch: pytest.MonkeyPatch, measured: dict[int, Measured]
) -> None:
    monkeypatch.setattr(vector_products, "LARGE", 1000)
    monkeypatch.setattr(vector_products, "least_seconds", lambda works, turns: [1.0, 0.1])
    monkeypatch.setattr(ReadAhead, "of", lambda self, x: x + 1)
    assert not reading_ahead_pays([some(384, 384)])


def test_a_model_writes_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(20, bias=True)
    logits = []
    for pays in (False, True):
        monkeypatch.setattr("engine.decoding.reading_ahead_pays", lambda matrices, pays=pays: pays)
        decoder, cache = Decoder(model), KVCache(model.config)
        assert isinstance(decoder.head, ReadAhead) == pays
        logits.append(torch.stack([decoder.next_logits(i, cache) for i in (3, 1, 4, 1, 5)]))
    torch.testing.assert_close(*logits, rtol=1e-5, atol=1e-5)


def test_each_work_has_its_turn() -> None:
    order: list[str] = []
    works = [lambda: order.append("a"), lambda: order.append("b")]
    assert all(0 <= seconds < 1 for seconds in least_seconds(works, 3))
    assert order == ["a", "b"] * 3


def test_other_modules_are_lines_themselves() -> None:
    rounded = Rounded(nn.Linear(32, 16).requires_grad_(False))
    assert line_of(rounded, True) is rounded
    model = Transformer(tiny(20).config)
    assert isinstance(line_of(model.head, True), ReadAhead) and isinstance(line_of(model.head, False), Exact)
