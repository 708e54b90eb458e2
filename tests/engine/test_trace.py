import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.metrics import IGNORED, softmax
from engine.tokenizers import byte_tokenizer
from engine.trace import trace

BYTES = byte_tokenizer()
TEXT = "the cat the mat"


@pytest.fixture(params=["clm", "mlm"])
def model(request, small_model):
    return small_model(objective=request.param, vocab_size=257)


def last_layer_norm(model, x):
    norm = model.final_norm
    return F.layer_norm(torch.from_numpy(x), (32,), norm.weight, norm.bias, 1e-5)


def test_shapes_and_types(model):
    traced = trace(model, BYTES, TEXT)
    n = len(TEXT)
    assert traced.logits.shape == (n, 257) and traced.attentions.shape == (2, 4, n, n)
    assert traced.q.shape == traced.k.shape == traced.v.shape == traced.heads.shape == (2, 4, n, 8)
    assert traced.residual.shape == (3, n, 32) and traced.attention_out.shape == traced.mlp_out.shape == (
        2,
        n,
        32,
    )
    assert {a.dtype for a in (traced.logits, traced.attentions, traced.residual)} == {np.dtype("float32")}
    assert [t.text for t in traced.tokens] == list(TEXT) and traced.ids.tolist() == list(TEXT.encode())


def test_a04_rows_are_queries_and_a_causal_model_looks_back(small_model):
    weights = trace(small_model(), BYTES, "abcdefg").attentions
    assert weights.sum(axis=-1) == pytest.approx(np.ones((2, 4, 7)), abs=1e-5)
    assert (np.triu(weights, k=1) == 0).all()
    assert (weights[:, :, 0] == [1, 0, 0, 0, 0, 0, 0]).all()
    assert abs(weights.sum(axis=-2) - 1).max() > 0.1  # columns are not distributions


def test_a04_a_masked_model_looks_both_ways(small_model):
    weights = trace(small_model(objective="mlm", vocab_size=257), BYTES, "abcdefg").attentions
    assert (weights > 0).all() and weights.sum(axis=-1) == pytest.approx(np.ones((2, 4, 7)), abs=1e-5)


@pytest.mark.parametrize("text", ["a", "abc", "abcdefg"])
def test_a06_the_picture_is_as_large_as_the_text_and_has_no_gaps(model, text):
    traced = trace(model, BYTES, text)
    assert traced.attentions.shape[-2:] == (len(text), len(text))
    assert all(np.isfinite(a).all() for a in (traced.attentions, traced.logits, traced.residual))


def test_a07_weights_times_values_is_what_the_output_matrix_gets(model):
    traced = trace(model, BYTES, TEXT)
    assert traced.heads == pytest.approx(traced.attentions @ traced.v, abs=1e-5)
    for layer, block in enumerate(model.blocks):
        joined = torch.from_numpy(traced.heads[layer]).transpose(0, 1).flatten(1)
        assert traced.attention_out[layer] == pytest.approx(
            block.attention.out(joined).detach().numpy(), abs=1e-5
        )


def test_a07_the_traced_logits_are_those_of_the_fast_path(model):
    with torch.no_grad():
        fast = model(torch.tensor([list(TEXT.encode())]))[0].numpy()
    assert trace(model, BYTES, TEXT).logits == pytest.approx(fast, abs=1e-4)


def test_the_residual_stream_is_the_sum_of_its_parts(model):
    traced = trace(model, BYTES, TEXT)
    parts = traced.residual[0] + (traced.attention_out + traced.mlp_out).cumsum(axis=0)
    assert traced.residual[1:] == pytest.approx(parts, abs=1e-4)
    embedded = model.embedding.weight[traced.ids] + model.position.weight[: len(TEXT)]
    assert traced.residual[0] == pytest.approx(embedded.detach().numpy(), abs=1e-6)
    logits = last_layer_norm(model, traced.residual[-1]) @ model.head.weight.T
    assert traced.logits == pytest.approx(logits.detach().numpy(), abs=1e-3)
    assert traced.probs().sum(axis=-1) == pytest.approx(np.ones(len(TEXT)))


def test_silencing_nothing_changes_nothing(model):
    whole, same = trace(model, BYTES, TEXT), trace(model, BYTES, TEXT, ablate=(), ablate_parts=())
    for name in ("logits", "attentions", "heads", "residual", "middle", "attention_out", "mlp_out"):
        assert np.array_equal(getattr(whole, name), getattr(same, name)), name


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (0, 3), (1, 2)])
def test_silencing_a_head_removes_exactly_that_head(model, layer, head):
    whole, cut = trace(model, BYTES, TEXT), trace(model, BYTES, TEXT, ablate=[(layer, head)])
    out = model.blocks[layer].attention.out.weight[:, head * 8 : head * 8 + 8].detach().numpy()
    removed = whole.heads[layer, head] @ out.T
    assert whole.attention_out[layer] - cut.attention_out[layer] == pytest.approx(removed, abs=1e-4)
    assert abs(removed).max() > 0.01
    assert (cut.heads[layer, head] == 0).all()
    others = [h for h in range(4) if h != head]
    assert np.array_equal(cut.heads[layer, others], whole.heads[layer, others])
    assert np.array_equal(cut.attentions[: layer + 1], whole.attentions[: layer + 1])
    assert np.array_equal(trace(model, BYTES, TEXT).logits, whole.logits)  # the model itself is as before


def test_silencing_all_heads_leaves_the_bias(model):
    every = list(itertools.product(range(2), range(4)))
    traced = trace(model, BYTES, TEXT, ablate=every)
    for layer, block in enumerate(model.blocks):
        bias = np.broadcast_to(block.attention.out.bias.detach().numpy(), (len(TEXT), 32))
        assert traced.attention_out[layer] == pytest.approx(bias, abs=1e-6)


@pytest.mark.parametrize("norm_place", ["pre", "post"])
@pytest.mark.parametrize("part", ["attention", "mlp"])
@pytest.mark.parametrize("layer", [0, 1])
def test_a_silenced_half_adds_nothing_not_even_its_bias(small_model, norm_place, part, layer):
    model = small_model(norm_place=norm_place)
    whole, cut = trace(model, BYTES, TEXT), trace(model, BYTES, TEXT, ablate_parts=[(part, layer)])
    assert (getattr(cut, f"{part}_out")[layer] == 0).all()
    assert abs(getattr(whole, f"{part}_out")[layer]).max() > 0.01
    assert np.array_equal(cut.residual[: layer + 1], whole.residual[: layer + 1])
    assert not np.allclose(cut.residual[layer + 1], whole.residual[layer + 1])
    if norm_place == "pre":  # what is added to nothing stays
        kept = {"attention": cut.mlp_out, "mlp": whole.attention_out}[part][layer]
        assert cut.residual[layer + 1] == pytest.approx(whole.residual[layer] + kept, abs=1e-5)
    assert np.array_equal(trace(model, BYTES, TEXT).logits, whole.logits)


def test_without_all_halves_the_stream_is_the_embedding(small_model):
    every = list(itertools.product(("attention", "mlp"), (0, 1)))
    cut = trace(small_model(), BYTES, TEXT, ablate_parts=every)
    assert all(np.array_equal(stream, cut.residual[0]) for stream in cut.residual)
    assert (cut.heads == 0).all()


def test_the_middle_of_a_block_is_what_the_mlp_is_added_to(small_model):
    model = small_model()
    traced = trace(model, BYTES, TEXT)
    assert traced.middle == pytest.approx(traced.residual[:-1] + traced.attention_out, abs=1e-5)
    post = trace(small_model(norm_place="post"), BYTES, TEXT)
    norms = [block.mlp_norm for block in small_model(norm_place="post").blocks]
    for layer, norm in enumerate(norms):
        total = torch.from_numpy(post.middle[layer] + post.mlp_out[layer])
        after = F.layer_norm(total, (32,), norm.weight, norm.bias, 1e-5).detach().numpy()
        assert post.residual[layer + 1] == pytest.approx(after, abs=1e-4)


def test_targets_are_the_next_tokens_or_the_tokens_themselves(small_model):
    causal = trace(small_model(), BYTES, "cat")
    assert causal.targets.tolist() == causal.scored.tolist() == [97, 116, IGNORED]
    masked = trace(small_model(objective="mlm", vocab_size=257), BYTES, "cat", hidden=[1])
    assert masked.targets.tolist() == [99, 97, 116]
    assert masked.scored.tolist() == [IGNORED, 97, IGNORED]


@pytest.mark.parametrize("pair", [("attention", 2), ("mlp", -1), ("block", 0)])
def test_a_part_that_does_not_exist_is_refused(model, pair):
    with pytest.raises(ValueError, match="has the parts attention and mlp|no layer"):
        trace(model, BYTES, TEXT, ablate_parts=[pair])


@pytest.mark.parametrize("pair", [(2, 0), (0, 4), (-1, 0), (0, -1)])
def test_a_head_that_does_not_exist_is_refused(model, pair):
    with pytest.raises(ValueError, match="no head"):
        trace(model, BYTES, TEXT, ablate=[pair])


def test_k03_of_a_long_text_the_last_tokens_are_read_and_the_rest_counted(small_model):
    model = small_model()
    traced = trace(model, BYTES, "x" * 484 + "sixteen letters!")
    assert traced.unused == 484 and "".join(t.text for t in traced.tokens) == "sixteen letters!"
    assert traced.tokens[0].start == 484
    assert np.array_equal(traced.logits, trace(model, BYTES, "sixteen letters!").logits)


def test_hidden_tokens_cannot_be_seen(small_model):
    model = small_model(objective="mlm", vocab_size=257)
    one, other = trace(model, BYTES, "cat", hidden=[1]), trace(model, BYTES, "cut", hidden=[1])
    assert np.array_equal(one.logits, other.logits)
    assert one.ids.tolist() == [99, 256, 116] and one.hidden == (1,)
    assert [t.text for t in one.tokens] == ["c", "a", "t"]


def test_what_cannot_be_hidden_is_refused(small_model):
    with pytest.raises(ValueError, match="Only a masked model"):
        trace(small_model(), BYTES, "cat", hidden=[1])
    for wrong in (3, -1):
        with pytest.raises(ValueError, match="between 0 and 2"):
            trace(small_model(objective="mlm", vocab_size=257), BYTES, "cat", hidden=[wrong])


def test_t16_an_empty_text_is_refused(model):
    with pytest.raises(ValueError, match="nothing to look at"):
        trace(model, BYTES, "")


def test_m06_a_tokenizer_of_another_model_is_refused(small_model):
    with pytest.raises(ValueError, match="ids run from 0 to 99, but the text has id 120"):
        trace(small_model(vocab_size=100), BYTES, "x")


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a10_a_half_precision_model_is_shown_in_float32(small_model, positions):
    exact = trace(small_model(positions=positions), BYTES, TEXT)
    traced = trace(small_model(positions=positions).to(torch.bfloat16), BYTES, TEXT)
    assert traced.attentions.dtype == traced.logits.dtype == np.float32
    assert traced.attentions == pytest.approx(exact.attentions, abs=0.1)


def test_two_sessions_on_one_model_get_their_own_numbers(small_model):
    """Thousands of traces in three threads; every result equals the one that was got alone."""
    model = small_model(n_layer=1)
    jobs = [
        ("the cat", {}),
        ("a dog ran", {"ablate": ((0, 1),), "ablate_parts": (("mlp", 0),)}),
        ("zz", {"ablate": ((0, 0), (0, 3))}),
    ]
    alone = [trace(model, BYTES, text, **cuts) for text, cuts in jobs]

    def session(which):
        text, cuts = jobs[which]
        for _ in range(700):
            traced = trace(model, BYTES, text, **cuts)
            for name in ("logits", "attentions", "residual", "heads", "mlp_out"):
                assert np.array_equal(getattr(traced, name), getattr(alone[which], name)), (which, name)
        return True

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(session, range(3))) == [True] * 3


def test_probabilities_are_over_the_full_vocabulary(model):
    traced = trace(model, BYTES, TEXT)
    assert traced.probs() == pytest.approx(softmax(traced.logits)) and traced.probs().shape[1] == 257
