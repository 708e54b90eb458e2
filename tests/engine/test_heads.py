import itertools

import numpy as np
import pytest
import torch

from engine.heads import (
    attention_cell,
    best_example,
    best_head,
    head_measures,
    head_output,
    row_entropies,
)
from engine.tokenizers import byte_tokenizer
from engine.trace import trace

BYTES = byte_tokenizer()
TEXT = "the cat the mat"


@pytest.fixture(params=["clm", "mlm"])
def model(request, small_model):
    return small_model(objective=request.param, vocab_size=257)


def by_hand(traced, rule):
    """Mean over the queries that can, of the weight on the keys that the rule names: two plain loops."""
    ids, n = traced.ids, len(traced.ids)
    causal = traced.objective == "clm"
    names = {
        "previous": lambda q, k: k == q - 1,
        "next": lambda q, k: k == q + 1,
        "first": lambda q, k: k == 0 and q > 0,
        "same": lambda q, k: k != q and ids[k] == ids[q],
        "induction": lambda q, k: k != q and k > 0 and k - 1 != q and ids[k - 1] == ids[q],
    }
    shares = []
    for q in range(n):
        keys = [k for k in range(n) if names[rule](q, k) and (k < q or not causal)]
        if keys:
            shares.append(traced.attentions[:, :, q, keys].sum(axis=-1))
    return np.mean(shares, axis=0) if shares else np.full(traced.attentions.shape[:2], np.nan)


@pytest.mark.parametrize("rule", ["previous", "next", "first", "same", "induction"])
@pytest.mark.parametrize("text", ["abab", "aab", "abcabc", "abc", "aaaa"])
def test_rules_by_hand(model, rule, text):
    traced = trace(model, BYTES, text)
    assert head_measures(traced)[rule] == pytest.approx(by_hand(traced, rule), abs=1e-6, nan_ok=True)


def test_the_induction_head_of_a_text_that_repeats_looks_after_the_earlier_one(small_model):
    """In "abab" the second a (2) has an earlier a at 0: what came after it is at 1; the second b has none."""
    traced = trace(small_model(), BYTES, "abab")
    second_b = traced.attentions[:, :, 3, 2]  # after the first b comes the second a
    expected = (traced.attentions[:, :, 2, 1] + second_b) / 2
    assert head_measures(traced)["induction"] == pytest.approx(expected)


def test_entropy_and_distance_by_hand(model):
    traced = trace(model, BYTES, TEXT)
    weights = traced.attentions.astype(np.float64)
    first = 1 if traced.objective == "clm" else 0
    rows = range(first, len(TEXT))
    terms = [-sum(w * np.log(w) for w in weights[1, 2, q] if w > 0) for q in rows]
    away = [sum(w * abs(q - k) for k, w in enumerate(weights[1, 2, q])) for q in rows]
    found = head_measures(traced)
    assert found["entropy"][1, 2] == pytest.approx(np.mean(terms), rel=1e-5)
    assert found["distance"][1, 2] == pytest.approx(np.mean(away), rel=1e-5)
    assert (found["entropy"] <= np.log(len(TEXT)) + 1e-6).all()


def test_the_entropy_of_weights_that_may_only_be_read():
    """As a page's are; PyTorch warns of them once in a program, and warnings are errors in tests."""
    weights = np.array([[[1.0, 0.0], [0.5, 0.5]]], np.float32)
    weights.setflags(write=False)
    warns = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        np.testing.assert_allclose(row_entropies(weights), [[0.0, np.log(2)]], atol=1e-7)
    finally:
        torch.set_warn_always(warns)
    assert weights.tolist() == [[[1.0, 0.0], [0.5, 0.5]]]


def test_what_a_text_cannot_show_is_not_a_number(model):
    one = head_measures(trace(model, BYTES, "a"))
    assert all(np.isnan(values).all() for values in one.values())
    distinct = head_measures(trace(model, BYTES, "abc"))
    assert np.isnan(distinct["same"]).all() and np.isnan(distinct["induction"]).all()
    assert np.isfinite(distinct["previous"]).all()


def test_only_a_masked_model_looks_ahead(small_model):
    assert np.isnan(head_measures(trace(small_model(), BYTES, TEXT))["next"]).all()
    masked = trace(small_model(objective="mlm", vocab_size=257), BYTES, TEXT)
    assert (head_measures(masked)["next"] > 0).all()


def test_the_best_head(small_model):
    traced = trace(small_model(), BYTES, "abab")
    share = by_hand(traced, "previous")
    assert best_head(traced, "previous") == np.unravel_index(share.argmax(), share.shape)
    assert best_head(trace(small_model(), BYTES, "abc"), "same") is None


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_one_attention_weight_can_be_worked_out_by_hand(small_model, positions):
    traced = trace(small_model(positions=positions), BYTES, TEXT)
    for layer, head, query in itertools.product((0, 1), (0, 3), (0, 4, 14)):
        cells = [attention_cell(traced, layer, head, query, key) for key in range(query + 1)]
        scores = np.array([c.products.sum() / np.sqrt(8) for c in cells])
        expected = np.exp(scores) / np.exp(scores).sum()
        assert [c.weight for c in cells] == pytest.approx(expected)
        assert traced.attentions[layer, head, query, : query + 1] == pytest.approx(expected, abs=1e-5)
        assert cells[0].row_total == pytest.approx(np.exp(scores).sum())
        assert cells[0].row_weights[: query + 1] == pytest.approx(expected)


def test_a_hidden_key_has_a_product_but_a_weight_of_exactly_0(small_model):
    traced = trace(small_model(), BYTES, TEXT)
    cell = attention_cell(traced, 1, 2, 4, 0)
    assert (cell.row_scores[5:] == -np.inf).all() and (cell.row_weights[5:] == 0).all()
    assert cell.dots[7] == pytest.approx(traced.q[1, 2, 4] @ traced.k[1, 2, 7], rel=1e-4)
    assert cell.row_weights.sum() == pytest.approx(1)


def test_a_masked_model_hides_no_key(small_model):
    cell = attention_cell(trace(small_model(objective="mlm", vocab_size=257), BYTES, TEXT), 0, 0, 2, 9)
    assert np.isfinite(cell.row_scores).all() and (cell.row_weights > 0).all()


@pytest.mark.parametrize("n_kv_head", [None, 2])
def test_a07_weights_times_values_is_the_output(small_model, n_kv_head):
    traced = trace(small_model(n_kv_head=n_kv_head), BYTES, TEXT)
    for layer, head, query, i in itertools.product((0, 1), (0, 3), (0, 9), (0, 7)):
        found = head_output(traced, layer, head, query, i)
        assert found.total == pytest.approx(traced.heads[layer, head, query, i], abs=1e-5)
        assert found.products.sum() == pytest.approx(found.total)
        assert (found.products[query + 1 :] == 0).all()


@pytest.mark.parametrize("rule", ["previous", "next", "first", "same"])
def test_the_best_example_is_the_best_row_of_the_best_head(model, rule):
    traced = trace(model, BYTES, TEXT)
    found = best_example(traced, rule)
    if rule == "next" and traced.objective == "clm":
        assert found is None
        return
    assert (found.layer, found.head) == best_head(traced, rule)
    assert found.mean == pytest.approx(by_hand(traced, rule)[found.layer, found.head], abs=1e-6)
    names = {
        "previous": lambda q, k: k == q - 1,
        "next": lambda q, k: k == q + 1,
        "first": lambda q, k: k == 0 and q > 0,
        "same": lambda q, k: k != q and TEXT[k] == TEXT[q],
    }
    rows = traced.attentions[found.layer, found.head]
    causal = traced.objective == "clm"
    shares = {
        q: sum(rows[q, k] for k in range(q if causal else len(TEXT)) if names[rule](q, k))
        for q in range(2, len(TEXT))
    }
    assert found.weight == pytest.approx(max(shares.values())) == pytest.approx(shares[found.query])
    assert names[rule](found.query, found.key)


def test_an_induction_example_is_the_largest_weight_after_the_first_layer(small_model):
    traced = trace(
        small_model(), BYTES, "xabyab"
    )  # position 4 is the second a: the b after the first is at 2
    found = best_example(traced, "induction")
    second_layer = traced.attentions[1]
    pairs = {(j, 4, 2): second_layer[j, 4, 2] for j in range(4)}
    pairs |= {(j, 5, 3): second_layer[j, 5, 3] for j in range(4)}  # the second b: after the first comes y
    best = max(pairs, key=lambda pair: pairs[pair])
    assert (found.layer, found.head, found.query, found.key) == (1, *best)
    assert found.weight == pytest.approx(pairs[best])
    assert found.mean == pytest.approx(by_hand(traced, "induction")[1, best[0]], abs=1e-6)
    assert best_example(trace(small_model(), BYTES, "abc"), "induction") is None
    assert best_example(trace(small_model(), BYTES, "a"), "previous") is None
