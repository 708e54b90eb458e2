"""The tree and the beam against brute force, and the yardsticks of the strategies by hand."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.metrics import log_softmax
from engine.model import Transformer
from engine.sampling import generate, next_logits
from engine.search import MOST_NODES, beam_search, look_ahead
from engine.strategies import STRATEGIES, distinct, write

V = 7


@pytest.fixture(scope="module")
def model() -> Transformer:
    config = ModelConfig(vocab_size=V, context_length=12, n_layer=2, n_head=2, d_model=16)
    model = Transformer(config, torch.Generator().manual_seed(3)).eval()
    dice = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=dice))
    return model


def log_prob(model: Transformer, prompt: list[int], ids: tuple[int, ...]) -> float:
    """One token after the other, from the logits alone."""
    total = 0.0
    for i, token in enumerate(ids):
        total += float(log_softmax(next_logits(model, prompt + list(ids[:i])).astype(np.float64))[token])
    return total


def test_a_beam_wide_enough_finds_the_very_best_of_all(model: Transformer) -> None:
    prompt = [1, 2, 3]
    everything = {ids: log_prob(model, prompt, ids) for ids in product(range(V), repeat=3)}
    ranked = sorted(everything.items(), key=lambda item: -item[1])
    beams = beam_search(model, prompt, n_tokens=3, width=V**3)
    assert [beam.ids for beam in beams[:20]] == [ids for ids, _ in ranked[:20]]
    assert [beam.log_prob for beam in beams] == pytest.approx([p for _, p in ranked], abs=1e-5)
    assert math.fsum(math.exp(beam.log_prob) for beam in beams) == pytest.approx(1, abs=1e-6)


def test_a_beam_of_one_is_greedy(model: Transformer) -> None:
    greedy = tuple(step.id for step in generate(model, [4], n_tokens=20, temperature=0))  # past the context
    assert beam_search(model, [4], n_tokens=20, width=1)[0].ids == greedy


def test_a_narrow_beam_states_the_probability_that_its_text_has(model: Transformer) -> None:
    for beam in beam_search(model, [5, 0], n_tokens=6, width=4):
        assert beam.log_prob == pytest.approx(log_prob(model, [5, 0], beam.ids), abs=1e-5)


def test_a_beam_ends_at_a_stop_token_and_keeps_it(model: Transformer) -> None:
    free = beam_search(model, [1], n_tokens=5, width=V**2)
    stop = free[0].ids[1]
    beams = beam_search(model, [1], n_tokens=5, width=V**2, stop_ids={stop})
    for beam in beams:
        assert beam.ended == (beam.ids[-1] == stop) and stop not in beam.ids[:-1]
        assert beam.ended or len(beam.ids) == 5
    assert any(beam.ended and len(beam.ids) < 5 for beam in beams)
    assert [beam.log_prob for beam in beams] == sorted((beam.log_prob for beam in beams), reverse=True)


def test_every_node_of_the_tree_has_the_probability_of_its_path(model: Transformer) -> None:
    prompt = [2, 2]
    root = look_ahead(model, prompt, breadth=3, depth=3)
    nodes = root.walk()[1:]
    assert len(nodes) == 3 + 9 + 27
    for node in nodes:
        assert node.log_prob == pytest.approx(log_prob(model, prompt, node.path), abs=1e-5)
        assert node.id == node.path[-1]
    for node in root.walk():
        if node.children:
            own = np.exp(log_softmax(next_logits(model, prompt + list(node.path)).astype(np.float64)))
            best = np.argsort(-own, kind="stable")[:3]
            assert [child.id for child in node.children] == best.tolist()
            assert node.rest == pytest.approx(1 - own[best].sum(), abs=1e-6)
        else:
            assert node.rest == 1


def test_a_tree_with_all_tokens_leaves_no_rest(model: Transformer) -> None:
    root = look_ahead(model, [3], breadth=V + 5, depth=1)
    assert len(root.children) == V and root.rest == pytest.approx(0, abs=1e-9)


def test_nothing_grows_below_a_stop_token(model: Transformer) -> None:
    first = look_ahead(model, [3], breadth=2, depth=1).children[0].id
    root = look_ahead(model, [3], breadth=2, depth=3, stop_ids={first})
    stopped = [node for node in root.walk() if node.id == first]
    assert stopped and not any(node.children for node in stopped)
    everywhere = look_ahead(model, [3], breadth=V, depth=2, stop_ids=range(V))
    assert len(everywhere.walk()) == 1 + V


def test_a_node_that_is_expanded_has_what_a_deeper_tree_has_there(model: Transformer) -> None:
    deep = look_ahead(model, [3, 1], breadth=2, depth=4)
    a = look_ahead(model, [3, 1], breadth=2, depth=2).walk()[-1].path  # a leaf
    below = deep.find(a).children[1].path
    root = look_ahead(model, [3, 1], breadth=2, depth=2, grown=[below, a, (99, 1)])  # in any order
    assert len(root.walk()) == 1 + 2 + 4 + 2 + 2
    for path in (a, below):
        got, wanted = root.find(path).children, deep.find(path).children
        assert [node.path for node in got] == [node.path for node in wanted]
        assert [node.log_prob for node in got] == pytest.approx([node.log_prob for node in wanted], abs=1e-5)
    assert root.find((99,)) is None and root.find(()) is root
    with pytest.raises(ValueError, match=f"at most {MOST_NODES}"):
        look_ahead(model, [1], breadth=2, depth=1, grown=[(i,) for i in range(300)])


def test_what_can_not_be_grown_is_refused_with_the_way_out(model: Transformer) -> None:
    with pytest.raises(ValueError, match=f"breadth 8 and depth 4 has 4,680 nodes; at most {MOST_NODES}"):
        look_ahead(model, [1], breadth=8, depth=4)
    with pytest.raises(ValueError, match="at least 1, not 0 and 2"):
        look_ahead(model, [1], breadth=0, depth=2)
    with pytest.raises(ValueError, match="width of at least 1, not 0"):
        beam_search(model, [1], n_tokens=2, width=0)
    with pytest.raises(ValueError, match="Type a prompt"):
        look_ahead(model, [], breadth=2, depth=1)
    masked = Transformer(ModelConfig(vocab_size=V, context_length=8, d_model=16, objective="mlm"))
    with pytest.raises(ValueError, match="Choose a causal model"):
        beam_search(masked, [1], n_tokens=2, width=2)


def test_distinct_by_hand() -> None:
    assert distinct([1, 2, 1, 2, 1], 1) == 2 / 5
    assert distinct([1, 2, 1, 2, 1], 2) == 2 / 4
    assert distinct([7] * 10, 4) == pytest.approx(1 / 7)
    assert distinct([1, 2, 3], 3) == 1.0
    assert math.isnan(distinct([1], 2))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_a_strategy_is_scored_by_the_model_s_own_probabilities(model: Transformer, strategy) -> None:
    once = write(model, [1, 4], strategy, n_tokens=8, seed=5)
    assert once == write(model, [1, 4], strategy, n_tokens=8, seed=5)
    assert len(once.ids) == 8
    assert once.log_prob == pytest.approx(log_prob(model, [1, 4], once.ids), abs=1e-4)
    assert once.per_token == pytest.approx(once.log_prob / 8)


def test_greedy_is_the_first_step_of_no_better_text_than_the_beam(model: Transformer) -> None:
    greedy, beam = (write(model, [1], s, n_tokens=6, seed=0) for s in STRATEGIES[:2])
    assert beam.log_prob >= greedy.log_prob - 1e-6
