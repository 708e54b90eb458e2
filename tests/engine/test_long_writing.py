"""Writing with published models: transformers' greedy text, past the context, many at once, cached rows."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine import infill, row_reading, sampling, search
from engine.config import ModelConfig
from engine.hub import load_folder
from engine.metrics import log_softmax
from engine.model import Transformer
from engine.sampling import Continuation, Held, Step, generate, next_logits
from engine.search import beam_search, largest, look_ahead
from engine.stages import _likeliest, before_and_after, sampling_stages
from engine.view import first_seen
from tests import hub_folders

LIMIT, JUMP = 32, 8


@pytest.fixture(scope="module")
def model() -> Transformer:
    config = ModelConfig(
        vocab_size=61, context_length=LIMIT, n_layer=2, n_head=4, n_kv_head=2, d_model=32, positions="rotary",
        norm="rmsnorm", activation="swiglu",
    )  # fmt: skip
    made = Transformer(config, torch.Generator().manual_seed(3))
    with torch.no_grad():
        for weights in made.parameters():
            weights.mul_(4)
    return made.eval().requires_grad_(False)


def of(steps: Any) -> list[int]:
    return [step.id for step in steps]


def test_greedy_text_is_that_of_transformers_also_past_control_tokens(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = hub_folders.write_llama(tmp_path / "llama", context_length=128)
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder).eval()
    checkpoint = load_folder(folder)
    met = set()
    for seed in range(6):
        prompt = torch.randint(3, 300, (1, 5 + seed), generator=torch.Generator().manual_seed(seed))
        prompt[0, 2] = seed % 3  # a control token within the prompt
        how: dict[str, Any] = {"max_new_tokens": 50, "do_sample": False, "pad_token_id": 0}
        how["attention_mask"] = torch.ones_like(prompt)
        expected = theirs.generate(prompt, eos_token_id=None, **how)[0, prompt.shape[1] :].tolist()
        write = partial(generate, checkpoint.model, prompt[0].tolist(), n_tokens=50, temperature=0)
        ours = of(write())
        assert ours == expected and len(ours) == 50
        met |= set(ours)
        stop = ours[20]
        ended = theirs.generate(prompt, eos_token_id=stop, **how)[0, prompt.shape[1] :].tolist()
        assert of(write(stop_ids={stop})) == ended
        assert ended[-1] == stop and len(ended) < 50, "the end comes, and nothing after it"
    assert len(met) > 20


@pytest.mark.parametrize("jump", [1, JUMP])
def test_past_the_context_every_token_is_a_reading_of_what_is_seen(jump: int, model: Transformer) -> None:
    steps = list(generate(model, [1, 2, 3], n_tokens=90, temperature=1.3, seed=4, jump=jump))
    ids = [1, 2, 3]
    for step in steps:
        begin = first_seen(len(ids), LIMIT, jump)
        expected = np.exp(log_softmax(model(torch.tensor([ids[begin:]]))[0, -1].numpy()))
        np.testing.assert_allclose(step.model_probs, expected, atol=1e-5)
        assert step.context == len(ids) - begin <= LIMIT
        ids.append(step.id)
    if jump > 1:
        assert {step.context for step in steps[LIMIT:]} == set(range(LIMIT - JUMP + 1, LIMIT + 1))


def test_what_was_read_is_of_use_to_a_longer_a_shorter_and_another_text(model: Transformer) -> None:
    held, dice = Held(model), np.random.default_rng(1)
    ids = dice.integers(0, 61, 30).tolist()
    for now in (
        ids[:20],
        ids[:21],
        ids[:7],
        ids[:25],
        [*ids[:10], 5, 6, 7],
        ids,
        ids,
        [9],
        [*ids, 3, 4, 5, 6],
    ):
        row = Continuation(model, now, held=held, jump=JUMP)
        begin = first_seen(len(now), LIMIT, JUMP)
        expected = model(torch.tensor([now[begin:]]))[0, -1]
        assert (row.logits() - expected).abs().max() < 1e-4
        assert held.cache.length == len(held.ids)


def test_who_stops_a_reader_leaves_no_logits_of_another_text(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logits after the text of before stayed, as if they came after what both begin with."""

    def stop(done: int, n: int) -> None:
        raise InterruptedError

    held, ids = Held(model), list(range(12))
    Continuation(model, ids, held=held).logits()
    monkeypatch.setattr(sampling, "READ_AT_ONCE", 3)
    with pytest.raises(InterruptedError):
        Continuation(model, [*ids[:5], *ids], held=held).logits(stop)
    assert held.ids == ids[:5] and held.cache.length == 5
    found = Continuation(model, ids[:5], held=held).logits()
    assert (found - model(torch.tensor([ids[:5]]))[0, -1]).abs().max() < 1e-4
    assert held.cache.length == 5


def test_reading_in_parts_is_told_and_gives_the_same(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(sampling, "READ_AT_ONCE", 7)
    told: list[tuple[int, int]] = []
    ids = list(range(30))
    logits = Continuation(model, ids).logits(lambda done, n: told.append((done, n)))
    assert (logits - model(torch.tensor([ids]))[0, -1]).abs().max() < 1e-4
    assert told == [(0, 30), (7, 30), (14, 30), (21, 30), (28, 30)]


def test_people_who_write_at_once_with_one_model_get_what_they_get_alone(model: Transformer) -> None:
    settings = [
        ({"seed": seed, "temperature": 0.5 + seed / 4, "top_p": 0.9}, [seed, 7, 9]) for seed in range(6)
    ]

    def written(how: dict[str, Any], prompt: list[int]) -> list[Step]:
        return list(generate(model, prompt, n_tokens=60, jump=JUMP, **how))

    alone = [written(*one) for one in settings]
    together: list[list[Step]] = [[] for _ in settings]

    def write(i: int) -> None:
        together[i] = written(*settings[i])

    threads = [threading.Thread(target=write, args=(i,)) for i in range(len(settings))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        assert of(one) == of(other)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.probs, b.probs, atol=1e-7)


@pytest.mark.parametrize("jump", [1, JUMP])
@pytest.mark.parametrize("n", [4, 28, 31, 40])
def test_beam_and_tree_near_the_end_of_the_context_score_what_is_seen(
    n: int, jump: int, model: Transformer
) -> None:
    prompt = np.random.default_rng(n).integers(0, 61, n).tolist()

    def log_prob(path: tuple[int, ...]) -> float:
        ids, total = list(prompt), 0.0
        for token in path:
            seen = ids[first_seen(len(ids), LIMIT, jump) :]
            total += float(log_softmax(next_logits(model, seen).astype(np.float64))[token])
            ids.append(token)
        return total

    for beam in beam_search(model, prompt, n_tokens=6, width=3, jump=jump):
        assert beam.log_prob == pytest.approx(log_prob(beam.ids), abs=1e-4)
    for node in look_ahead(model, prompt, breadth=2, depth=3, jump=jump).walk():
        assert node.log_prob == pytest.approx(log_prob(node.path), abs=1e-4)


def test_a_beam_tells_how_far_it_is(model: Transformer) -> None:
    told: list[tuple[int, int]] = []
    beam_search(model, [1, 2], n_tokens=4, width=2, tell=lambda done, n: told.append((done, n)))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4)]


def test_rescoring_in_little_memory_is_the_same_and_can_be_followed(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = list(range(20))
    whole = infill.rescore(model, ids, [5, 9], tried=40, kept=6)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(row_reading, "MOST_BYTES", 40_000)  # a few positions of a few rows at a time
    parts = infill.rescore(model, ids, [5, 9], tried=40, kept=6, tell=lambda done, n: told.append((done, n)))
    np.testing.assert_allclose(parts.log_probs, whole.log_probs, atol=1e-4)
    assert parts.fill.ids == whole.fill.ids
    assert told[0] == (0, 80) and told == sorted(told) and len(told) > 4


def test_the_largest_are_the_beginning_of_a_stable_sort() -> None:
    dice = np.random.default_rng(0)
    for n in (1, 2, 7, 40, 60):
        values = dice.integers(0, 9, 50).astype(float)  # many ties
        order = np.argsort(-values, kind="stable")
        assert largest(values.reshape(5, 10), n).tolist() == order[:n].tolist()
        assert _likeliest(values, n)[:n].tolist() == order[:n].tolist()


@pytest.mark.parametrize("top_p", [0.0, 0.3, 0.9, 0.999999, 1.0])
@pytest.mark.parametrize("spread", [0.01, 1.0, 6.0])
def test_of_a_large_vocabulary_the_same_tokens_are_kept_as_by_sorting_all(
    top_p: float, spread: float
) -> None:
    logits = np.random.default_rng(5).normal(0, spread, 49_152)
    how: dict[str, Any] = {"temperature": 0.8, "top_k": 9000, "top_p": top_p, "min_p": 1e-4}
    own, drawn = before_and_after(logits, **how)
    stages = sampling_stages(logits, **how)
    assert np.array_equal(own, stages[0].probs) and np.array_equal(drawn, stages[-1].probs)
    probs = stages[2].probs  # after top-k
    order = np.argsort(-probs, kind="stable")
    before = np.cumsum(probs[order]) - probs[order]
    if top_p < 1:
        expected = order[: max(1, int((before < top_p).sum()))]
        assert set(np.flatnonzero(stages[3].probs)) == {i for i in expected if probs[i] > 0}


def test_search_refuses_what_can_not_go_on(model: Transformer) -> None:
    with pytest.raises(ValueError, match="no token"):
        beam_search(model, [], n_tokens=3, width=2)
    with pytest.raises(ValueError, match="no token"):
        search.next_log_probs(model, [])
