"""Where a model computes, tried on machines that aren't here; and the memory that it takes."""

import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import devices
from engine.config import ModelConfig
from engine.devices import AUTO, CPU, MPS, Device, choose, place
from engine.memory import Memory, free_disk, give_back, memory
from engine.model import Transformer
from engine.parameter_parts import PARTS, memory_bytes, parameter_count, parameter_parts
from engine.shelf import RESERVE, NotEnoughMemory, Shelf

Build = Callable[..., Transformer]
PROCESSOR = Device(CPU)
SMALL_GPU, GPU = Device("cuda:0", "Small GPU", 1_000_000), Device("cuda:1", "Large GPU", 10**10)
APPLE = Device(MPS, "Apple")
MB = 10**6


def test_here_there_is_a_processor() -> None:
    assert devices.devices()[0] == PROCESSOR and PROCESSOR.label == "CPU"


@pytest.mark.parametrize(
    ("wanted", "there", "found", "why"),
    [
        (AUTO, (PROCESSOR,), CPU, ""),
        (AUTO, (PROCESSOR, SMALL_GPU, GPU), "cuda:1", ""),
        (AUTO, (PROCESSOR, SMALL_GPU), CPU, "too_small"),
        (AUTO, (PROCESSOR, APPLE), CPU, ""),
        (CPU, (PROCESSOR, GPU), CPU, ""),
        ("cuda:1", (PROCESSOR, SMALL_GPU, GPU), "cuda:1", ""),
        ("cuda:0", (PROCESSOR, SMALL_GPU, GPU), CPU, "too_small"),
        ("cuda:0", (PROCESSOR,), CPU, "not_there"),
        (MPS, (PROCESSOR, APPLE), MPS, ""),
        (MPS, (PROCESSOR, GPU), CPU, "not_there"),
    ],
)
def test_the_wish_meets_the_machine(wanted: str, there: tuple[Device, ...], found: str, why: str) -> None:
    placed = choose(wanted, 5 * MB, there)
    assert (placed.device.id, placed.why) == (found, why)
    assert bool(placed.reason) == bool(why)


def test_what_is_too_small_says_the_numbers() -> None:
    reason = choose(AUTO, 500 * MB, (PROCESSOR, replace(GPU, free=400 * MB))).reason
    assert "Large GPU has 400 MB" in reason and "550 MB" in reason and "processor (CPU)" in reason


def test_a_gpu_gets_the_model(small_model: Build) -> None:
    asked: list[str] = []
    placed = place(small_model(), AUTO, (PROCESSOR, GPU), move=lambda model, device: asked.append(device))
    assert asked == ["cuda:1"] and placed.device == GPU and placed.device.label == "GPU · Large GPU"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), "out_of_memory"),
        (RuntimeError("CUDA error: no kernel image\nmore lines"), "failed"),
    ],
)
def test_what_fails_stays_on_the_processor_and_says_why(
    small_model: Build, error: Exception, why: str
) -> None:
    model = small_model()

    def refuse(_: Transformer, device: str) -> None:
        raise error

    placed = place(model, AUTO, (PROCESSOR, GPU), move=refuse)
    assert (placed.device, placed.why, model.device.type) == (PROCESSOR, why, "cpu")
    assert "Large GPU" in placed.reason and "more lines" not in placed.reason
    assert model(torch.tensor([[1, 2]])).isfinite().all()


def test_apple_s_gpu_is_refused_if_it_computes_something_else(small_model: Build) -> None:
    model, apart = small_model(tie_head=False), 0.02

    def wrong(moved: Transformer, device: str) -> None:
        with torch.no_grad():
            moved.head.weight.mul_(1 + apart)  # all logits grow by 2%, as if that device were wrong

    placed = place(model, MPS, (PROCESSOR, APPLE), move=wrong)
    assert (placed.device, placed.why) == (PROCESSOR, "disagrees")
    assert placed.details["apart"] == pytest.approx(apart, rel=0.01) and "0.02" in placed.reason


def test_apple_s_gpu_is_taken_if_it_agrees_within_the_bound(small_model: Build) -> None:
    def nearly(moved: Transformer, device: str) -> None:
        with torch.no_grad():
            moved.head.weight.mul_(1 + devices.AGREE / 2)

    def exploded(moved: Transformer, device: str) -> None:
        with torch.no_grad():
            moved.head.weight.fill_(torch.nan)

    assert place(small_model(tie_head=False), MPS, (PROCESSOR, APPLE), move=nearly).device == APPLE
    assert place(small_model(), MPS, (PROCESSOR, APPLE), move=exploded).why == "disagrees"


SHAPES = [
    {},
    {"positions": "rotary", "norm": "rmsnorm", "activation": "swiglu", "bias": False, "n_kv_head": 2},
    {"positions": "sinusoidal", "tie_head": False, "qk_norm": True, "mix_previous": True},
    dict(objective="mlm", norm_place="post", embedding_norm=True, head_transform=True, head_bias=True),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_parts_add_up_to_the_model(shape: dict[str, object]) -> None:
    config = ModelConfig(vocab_size=50, context_length=16, n_layer=3, n_head=4, d_model=16, **shape)  # type: ignore[arg-type]
    parts, model = parameter_parts(config), Transformer(config)
    assert tuple(parts) == PARTS and sum(parts.values()) == parameter_count(config) == model.n_parameters()
    inside = [(name, p.numel()) for name, p in model.named_parameters()]
    assert parts["attention"] == sum(n for name, n in inside if ".attention." in name and "norm" not in name)
    assert parts["mlp"] == sum(n for name, n in inside if ".mlp." in name)
    assert parts["norms"] == sum(n for name, n in inside if "norm" in name and not name.startswith("head"))
    assert parts["head"] == sum(n for name, n in inside if name.startswith("head"))
    assert memory_bytes(model.n_parameters()) == sum(p.nbytes for p in model.parameters())


def test_memory_is_what_the_system_says(tmp_path: Path) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       2000 kB\nMemFree:  5 kB\nMemAvailable:    1500 kB\nHugePages_Total: 0\n")
    assert memory(told, tmp_path) == Memory(2000 * 1024, 1500 * 1024)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("7\n")
    assert memory(told, tmp_path) == Memory(2000 * 1024, 1500 * 1024)
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 200000\n")
    assert memory(told, tmp_path) == Memory(1_000_000, 300_000)


def test_a_system_that_says_little_forbids_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = tmp_path / "nothing"
    found = memory(nothing, nothing)
    assert found.free is None and found.bound == found.total
    monkeypatch.setattr("engine.memory._physical", lambda: None)
    assert memory(nothing, nothing) == Memory(None, None)
    shelf: Shelf[str] = Shelf(1, lambda: None)
    assert shelf.get("a", lambda: "made", need=10**15) == "made"


def test_the_disk_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    assert 0 < free_disk(tmp_path / "a" / "b") < 10**18


def test_what_was_not_used_for_longest_makes_room() -> None:
    shelf: Shelf[str] = Shelf(2)
    for key in ("a", "b"):
        shelf.get(key, key.upper)
    shelf.get("a", lambda: "again")  # used, not made
    shelf.get("c", lambda: "C")
    assert dict(shelf.held()) == {"a": "A", "c": "C"}
    assert shelf.drop("a") and not shelf.drop("a") and dict(shelf.held()) == {"c": "C"}


def test_room_is_made_before_a_new_one_is_made() -> None:
    shelf: Shelf[str] = Shelf(2)
    most = []
    for key in "abcd":
        shelf.get(key, lambda key=key: (most.append(len(shelf.held())), key)[1])  # type: ignore[misc]
    assert most == [0, 1, 1, 1]


def test_the_memory_of_a_model_that_made_room_is_free(small_model: Build) -> None:
    shelf: Shelf[Transformer] = Shelf(1)
    seen = weakref.ref(shelf.get("a", small_model).embedding.weight)
    gc.collect()
    assert seen() is not None
    shelf.get("b", small_model)
    gc.collect()
    assert seen() is None
    seen = weakref.ref(shelf.get("b", small_model).embedding.weight)
    shelf.drop("b")
    gc.collect()
    assert seen() is None


def test_memory_that_is_not_used_can_be_given_back_at_any_time() -> None:
    kept = [bytes(1000) for _ in range(1000)]
    give_back()
    assert all(not any(piece) for piece in kept)


def test_two_who_ask_at_once_make_it_once() -> None:
    shelf: Shelf[object] = Shelf(2)
    made, found = [], []
    go, begun = threading.Event(), threading.Event()

    def slow() -> object:
        begun.set()
        go.wait(10)
        made.append(object())
        return made[-1]

    threads = [threading.Thread(target=lambda: found.append(shelf.get("a", slow))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    go.set()
    for thread in threads:
        thread.join(10)
    assert len(made) == 1 and found == [made[0]] * 4


def test_one_that_could_not_be_made_is_tried_again() -> None:
    shelf: Shelf[str] = Shelf(2)

    def fail() -> str:
        raise ValueError("damaged")

    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            shelf.get("a", fail)
    assert shelf.get("a", lambda: "A") == "A"


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    shelf: Shelf[str] = Shelf(3, lambda: RESERVE + (7 - len(shelf.held())) * 100 * MB)
    shelf.get("a", lambda: "A", need=100 * MB)
    with pytest.raises(
        NotEnoughMemory, match=r"big needs 701 MB of memory and 250 MB to work with, but only 850"
    ):
        shelf.get("b", lambda: "B", name="big", need=701 * MB)
    assert list(shelf.held()) == ["a"]  # what would have gone in vain stays
    shelf.get("b", lambda: "B", name="big", need=700 * MB)
    assert list(shelf.held()) == ["b"]


def test_others_make_room_when_memory_is_short() -> None:
    held: list[str] = []
    shelf: Shelf[str] = Shelf(5, lambda: RESERVE + (3 - len(shelf.held())) * 100 * MB)
    for key in "abc":
        held.append(shelf.get(key, lambda key=key: key, need=100 * MB))  # type: ignore[misc]
    shelf.get("d", lambda: "d", need=150 * MB)
    assert list(shelf.held()) == ["c", "d"]


def test_together_they_weigh_no_more_than_they_may() -> None:
    shelf: Shelf[str] = Shelf(10, most_bytes=100 * MB)
    for key, need in {"a": 40, "b": 40, "c": 20}.items():
        shelf.get(key, key.upper, need=need * MB)
    assert list(shelf.held()) == ["a", "b", "c"]
    shelf.get("d", lambda: "D", need=1)
    assert list(shelf.held()) == ["b", "c", "d"]
    shelf.get("e", lambda: "E", need=101 * MB)
    assert list(shelf.held()) == ["e"]  # too heavy even alone, but somebody asked for it
    shelf.get("f", lambda: "F", need=1)
    assert list(shelf.held()) == ["f"]


def test_who_used_it_lately_is_known() -> None:
    shelf: Shelf[str] = Shelf(2)
    shelf.get("a", lambda: "A", user="Ann")
    shelf.get("a", lambda: "A", user="Ben")
    shelf.peek("a")
    assert shelf.users("a", 60) == {"Ann", "Ben"} and shelf.users("a", -1) == set()
    shelf.drop("a")
    assert shelf.users("a", 60) == set()
