import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.ablation import each_alone, effect, loss, most_lost
from engine.tokenizers import byte_tokenizer
from engine.trace import trace

BYTES = byte_tokenizer()
TEXT = "the cat the mat"


@pytest.fixture
def causal(small_model):
    return small_model()


@pytest.fixture
def masked(small_model):
    return small_model(objective="mlm", vocab_size=257)


def test_the_loss_is_the_cross_entropy(causal, masked):
    traced = trace(causal, BYTES, TEXT)
    true = torch.tensor(list(TEXT.encode()))
    expected = F.cross_entropy(torch.from_numpy(traced.logits[:-1]), true[1:]).item()
    assert loss(traced) == pytest.approx(expected, rel=1e-5)
    hidden = trace(masked, BYTES, TEXT, hidden=[3, 8])
    places = torch.tensor([3, 8])
    expected = F.cross_entropy(torch.from_numpy(hidden.logits)[places], true[places]).item()
    assert loss(hidden) == pytest.approx(expected, rel=1e-5)


def test_without_something_to_predict_there_is_no_loss(causal, masked):
    assert math.isnan(loss(trace(causal, BYTES, "a"))) and math.isnan(loss(trace(masked, BYTES, TEXT)))
    for model, text in ((causal, "a"), (masked, TEXT)):
        with pytest.raises(ValueError, match="Nothing is predicted"):
            list(each_alone(model, trace(model, BYTES, text)))


def test_the_effect_of_a_cut_by_hand(causal):
    whole, cut = trace(causal, BYTES, TEXT), trace(causal, BYTES, TEXT, ablate=[(0, 1)])
    found = effect(whole, cut)
    p = torch.from_numpy(whole.logits).double().log_softmax(-1)
    q = torch.from_numpy(cut.logits).double().log_softmax(-1)
    expected = F.kl_div(q, p, log_target=True, reduction="none").sum(-1)
    assert found.divergence == pytest.approx(expected.numpy(), abs=1e-9)
    assert found.change == pytest.approx(loss(cut) - loss(whole)) and abs(found.change) > 1e-3


def test_switching_nothing_off_has_no_effect(causal):
    whole = trace(causal, BYTES, TEXT)
    found = effect(whole, trace(causal, BYTES, TEXT, ablate=(), ablate_parts=()))
    assert found.change == 0 and (found.divergence == 0).all()


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_each_alone_is_the_trace_without_it(small_model, objective):
    model = small_model(objective=objective, vocab_size=257)
    hidden = (4, 9) if objective == "mlm" else ()
    whole = trace(model, BYTES, TEXT, hidden=hidden)
    found = {(a.kind, a.layer, a.head): a.change for a in each_alone(model, whole)}
    assert len(found) == 2 * 4 + 2 * 2
    for (kind, layer, head), change in found.items():
        cuts = {"ablate": [(layer, head)]} if kind == "head" else {"ablate_parts": [(kind, layer)]}
        assert change == pytest.approx(
            loss(trace(model, BYTES, TEXT, hidden=hidden, **cuts)) - loss(whole), abs=1e-4
        )
    assert len(set(found.values())) > 6


def test_each_alone_reads_a_bounded_piece(small_model):
    causal = small_model()
    long, short = trace(causal, BYTES, TEXT), trace(causal, BYTES, TEXT[:6])
    piece = [a.change for a in each_alone(causal, long, most=6)]
    assert piece == pytest.approx([a.change for a in each_alone(causal, short)], abs=1e-5)
    masked = small_model(objective="mlm", vocab_size=257)
    far = trace(masked, BYTES, TEXT, hidden=[13])  # must lie in what is read
    near = trace(masked, BYTES, TEXT[13 - 3 :], hidden=[3])
    piece = [a.change for a in each_alone(masked, far, most=6)]
    assert piece == pytest.approx([a.change for a in each_alone(masked, near)], abs=1e-5)
    assert np.isfinite(piece).all()


def test_most_is_lost_where_the_surprise_grows_most(causal, masked):
    whole, cut = (trace(causal, BYTES, TEXT, ablate=off) for off in ([], [(0, 1)]))
    true = list(TEXT.encode())
    grown = [
        F.cross_entropy(torch.from_numpy(cut.logits[t]), torch.tensor(true[t + 1])).item()
        - F.cross_entropy(torch.from_numpy(whole.logits[t]), torch.tensor(true[t + 1])).item()
        for t in range(len(true) - 1)
    ]
    assert most_lost(whole, cut) == int(np.argmax(grown))
    hidden = [trace(masked, BYTES, TEXT, ablate=off, hidden=(6,)) for off in ([], [(0, 1)])]
    assert most_lost(*hidden) == 6
    with pytest.raises(ValueError, match="Nothing is predicted"):
        most_lost(trace(causal, BYTES, "a"), trace(causal, BYTES, "a"))
