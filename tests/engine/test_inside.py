import itertools

import numpy as np
import pytest
import torch

from engine.contributions import Part, contributions, head_terms
from engine.inside import lens, lens_logits, shift, stream
from engine.metrics import IGNORED, softmax
from engine.tokenizers import byte_tokenizer
from engine.trace import trace

BYTES = byte_tokenizer()
TEXT = "the cat the mat"
SHAPES = [
    {"norm_place": place, "norm": norm, "positions": positions, "objective": objective, **more}
    for place, norm, positions, objective, more in [
        ("pre", "layernorm", "learned", "clm", {}),
        ("pre", "layernorm", "rotary", "mlm", {"n_kv_head": 2, "qk_norm": True}),
        ("pre", "rmsnorm", "sinusoidal", "clm", {"activation": "swiglu"}),
        ("pre", "rmsnorm", "rotary", "clm", {"bias": False, "tie_head": False}),
        ("post", "layernorm", "sinusoidal", "clm", {}),
        ("post", "layernorm", "learned", "mlm", {"tie_head": False}),
        ("post", "rmsnorm", "rotary", "clm", {"activation": "relu2"}),
        ("post", "layernorm", "learned", "clm", {"bias": False}),
    ]
]


@pytest.fixture(params=SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))
def model(request, small_model):
    return small_model(vocab_size=257, **request.param)


def test_the_last_layer_of_the_lens_is_the_models_output(model):
    traced = trace(model, BYTES, TEXT)
    found = lens(model, traced, most=7)
    probs = softmax(traced.logits)
    assert found.ids.shape == found.probs.shape == (3, len(TEXT), 7)
    assert found.probs[-1] == pytest.approx(np.sort(probs)[:, ::-1][:, :7], abs=1e-5)
    assert np.take_along_axis(probs, found.ids[-1], axis=1) == pytest.approx(found.probs[-1], abs=1e-5)
    true = list(TEXT.encode())[1:] if traced.objective == "clm" else list(TEXT.encode())
    rows = np.arange(len(true))
    assert found.true_probs[-1, : len(true)] == pytest.approx(probs[rows, true], abs=1e-5)
    better = (
        probs > probs[rows, true][:, None]
        if len(true) == len(TEXT)
        else probs[:-1] > probs[rows, true][:, None]
    )
    assert found.ranks[-1, : len(true)].tolist() == (better.sum(axis=1) + 1).tolist()


def test_earlier_layers_are_read_through_the_final_norm_and_the_head(small_model):
    model = small_model()
    traced = trace(model, BYTES, TEXT)
    x = traced.residual[1].astype(np.float64)
    norm, head = model.final_norm, model.head.weight.detach().double().numpy()
    x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    x = x * norm.weight.detach().double().numpy() + norm.bias.detach().double().numpy()
    expected = x @ head.T
    for t in (0, 7, 14):
        assert lens_logits(model, traced, 1, t) == pytest.approx(expected[t], abs=1e-3)
    assert lens(model, traced).probs[1, :, 0] == pytest.approx(softmax(expected).max(axis=-1), abs=1e-4)
    assert np.array_equal(lens_logits(model, traced, 2, 3), traced.logits[3])


def test_a_model_without_a_final_norm_reads_the_stream_directly(small_model):
    model = small_model(norm_place="post")
    traced = trace(model, BYTES, TEXT)
    expected = traced.residual[1] @ model.head.weight.detach().numpy().T
    assert lens_logits(model, traced, 1, 4) == pytest.approx(expected[4], abs=1e-3)


def test_the_last_token_of_a_causal_text_has_no_truth(small_model):
    found = lens(small_model(), trace(small_model(), BYTES, TEXT))
    assert found.targets[-1] == IGNORED and (found.ranks[:, -1] == 0).all()
    assert np.isnan(found.true_probs[:, -1]).all() and np.isfinite(found.true_probs[:, :-1]).all()
    assert (found.ranks[:, :-1] >= 1).all()


def test_the_lens_reads_some_positions_and_in_pieces(small_model, monkeypatch):
    model = small_model()
    traced = trace(model, BYTES, TEXT)
    whole = lens(model, traced)
    monkeypatch.setattr("engine.inside.LARGEST", 600)  # two rows of 256 at once
    some = lens(model, traced, [2, 3, 9])
    assert some.positions.tolist() == [2, 3, 9]
    for name in ("ids", "ranks"):
        assert np.array_equal(getattr(some, name), getattr(whole, name)[:, [2, 3, 9]])
    assert some.probs == pytest.approx(whole.probs[:, [2, 3, 9]], abs=1e-6)


def test_a_large_vocabulary_is_never_held_for_all_layers(small_model):
    model = small_model(vocab_size=50_000, context_length=64)
    traced = trace(model, BYTES, TEXT * 3)
    found = lens(model, traced, most=3)
    held = sum(a.nbytes for a in (found.ids, found.probs, found.ranks, found.true_probs))
    assert held < 3 * 45 * 3 * 50  # and not 3 layers x 45 positions x 50,000 x 4 bytes


def test_a10_half_precision_is_read_in_float32(small_model):
    model = small_model().to(torch.bfloat16)
    found = lens(model, trace(model, BYTES, TEXT))
    assert found.probs.dtype == np.float32 and np.isfinite(found.probs).all()


def test_contributions_and_biases_sum_to_the_logit(model):
    traced = trace(model, BYTES, TEXT)
    for position, token_id in itertools.product((0, 6, 14), (0, 101, 255)):
        found = contributions(model, traced, position, token_id)
        assert found.total == pytest.approx(float(traced.logits[position, token_id]))
        scale = max(abs(found.total), abs(found.values).sum() / 10)
        assert found.values.sum() == pytest.approx(found.total, abs=1e-4 * scale)


def test_contributions_to_a_difference_are_differences(model):
    traced = trace(model, BYTES, TEXT)
    one, other = (contributions(model, traced, 5, token_id) for token_id in (97, 32))
    found = contributions(model, traced, 5, 97, against=32)
    assert found.parts == one.parts
    assert found.values == pytest.approx(one.values - other.values, abs=1e-9)
    assert found.total == pytest.approx(float(traced.logits[5, 97] - traced.logits[5, 32]), abs=1e-5)


def test_the_parts_are_named_in_the_order_of_the_model(small_model):
    model = small_model()
    parts = contributions(model, trace(model, BYTES, TEXT), 3, 0).parts
    block = [
        [*(Part("head", n, h) for h in range(4)), Part("attention bias", n), Part("mlp", n)] for n in (0, 1)
    ]
    assert list(parts) == [Part("token"), Part("position"), *block[0], *block[1], Part("norm bias")]


def test_one_contribution_by_hand(small_model):
    """The MLP of block 1 to the logit of "c": taken through the final norm with its divisor held."""
    model = small_model()
    traced = trace(model, BYTES, TEXT)
    x, part = (a[9].astype(np.float64) for a in (traced.residual[-1], traced.mlp_out[0]))
    divisor = np.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)
    weight, head = (w.detach().double().numpy() for w in (model.final_norm.weight, model.head.weight[99]))
    expected = ((part - part.mean()) / divisor * weight) @ head
    found = contributions(model, traced, 9, 99)
    assert found.of("mlp", 0) == pytest.approx(expected)
    assert found.divisors == pytest.approx([divisor])


def test_heads_and_bias_are_what_attention_adds(model):
    traced = trace(model, BYTES, TEXT)
    for layer, block in enumerate(model.blocks):
        terms = head_terms(model, traced, layer, 8)
        bias = 0 if block.attention.out.bias is None else block.attention.out.bias.detach().numpy()
        assert terms.sum(axis=0) + bias == pytest.approx(traced.attention_out[layer, 8], abs=1e-4)
        cut = trace(model, BYTES, TEXT, ablate=[(layer, 2)])
        missing = traced.attention_out[layer, 8] - cut.attention_out[layer, 8]
        assert missing == pytest.approx(terms[2], abs=1e-4) and abs(terms[2]).max() > 0.01


def test_the_stream_by_hand(model):
    traced = trace(model, BYTES, TEXT)
    found = stream(traced)
    length = lambda x: np.sqrt((x.astype(np.float64) ** 2).sum())  # noqa: E731
    a, m, before, middle = (
        x[1, 6] for x in (traced.attention_out, traced.mlp_out, traced.residual, traced.middle)
    )
    assert found.lengths[2, 6] == pytest.approx(length(traced.residual[2, 6]))
    assert found.attention[1, 6] == pytest.approx(length(a)) and found.mlp[1, 6] == pytest.approx(length(m))
    assert found.mlp_share[1, 6] == pytest.approx(length(m) / (length(a) + length(m)))
    assert found.attention_cosine[1, 6] == pytest.approx(a @ before / length(a) / length(before), abs=1e-5)
    assert found.mlp_cosine[1, 6] == pytest.approx(m @ middle / length(m) / length(middle), abs=1e-5)
    assert (abs(found.mlp_cosine) <= 1 + 1e-9).all()


def test_where_nothing_is_added_there_is_no_share_and_no_angle(small_model):
    cut = trace(small_model(), BYTES, TEXT, ablate_parts=[("attention", 0), ("mlp", 0)])
    found = stream(cut)
    assert np.isnan(found.mlp_share[0]).all() and np.isnan(found.attention_cosine[0]).all()
    assert np.isfinite(found.mlp_share[1]).all()


def test_a_shift_names_what_rose_and_what_fell():
    before, after = np.log([0.5, 0.2, 0.2, 0.1]), np.log([0.1, 0.2, 0.3, 0.4])
    found = shift(before, after)
    assert found.promoted.tolist() == [3, 2] and found.suppressed.tolist() == [0]
    assert found.before == pytest.approx([0.5, 0.2, 0.2, 0.1]) and found.after[3] == pytest.approx(0.4)


def test_no_shift_between_equals():
    found = shift(np.zeros(9), np.zeros(9))
    assert not len(found.promoted) and not len(found.suppressed)
