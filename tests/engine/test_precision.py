"""16 bits for matrix products, 32 for everything that adds up."""

import pytest
import torch

from engine.muon import orthogonal
from engine.precision import chosen_precision, computing_in, has_units
from engine.training import CheckpointEvent, EvalEvent, NoticeEvent, train
from tests.engine.small_training import evals_of, settings, some_ids, steps_of, tiny

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("wanted", "device", "can", "precision", "notice"),
    [
        ("auto", CPU, False, "float32", ""),
        ("auto", CPU, True, "float32", ""),
        ("float32", CPU, True, "float32", ""),
        ("bfloat16", CPU, True, "bfloat16", ""),
        ("bfloat16", CPU, False, "bfloat16", "slower than float32"),
        ("auto", GPU, True, "bfloat16", ""),
        ("auto", GPU, False, "float32", ""),
        ("float32", GPU, True, "float32", ""),
        ("bfloat16", GPU, True, "bfloat16", ""),
        ("bfloat16", GPU, False, "float32", "no units for bfloat16"),
    ],
)
def test_what_is_chosen(monkeypatch, wanted, device, can, precision, notice):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: can)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": can})
    chosen, said = chosen_precision(wanted, device)
    assert chosen == precision
    assert (notice in said) if notice else said == ""


@pytest.mark.parametrize(
    ("told", "can"),
    [({"avx512_bf16": True}, True), ({"amx_bf16": True}, True), ({"avx512_f": True}, False), ({}, False)],
)
def test_a_processor_tells_what_it_has(monkeypatch, told, can):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: told)
    assert has_units(CPU) == can


def test_attention_is_in_float32_between_its_products(monkeypatch):
    seen = []
    attention = torch.nn.functional.scaled_dot_product_attention

    def watched(q, k, v, **more):
        seen.append((q.dtype, k.dtype, v.dtype, torch.is_autocast_enabled("cpu")))
        return attention(q, k, v, **more)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    model, ids = tiny(20, positions="rotary", qk_norm=True), torch.arange(6)[None]
    with computing_in("bfloat16", CPU):
        logits = model(ids)
    assert logits.dtype == torch.bfloat16
    assert seen == [(torch.float32,) * 3 + (False,)] * model.config.n_layer
    seen.clear()
    model.to(torch.bfloat16)(ids)  # a model of 16 bits as a whole stays one
    assert {kind[0] for kind in seen} == {torch.bfloat16}


def test_two_threads_in_16_bits_give_the_bits_of_one(monkeypatch):
    monkeypatch.setattr("engine.parts.LEAST_WORK", 1)
    ids, found = some_ids(), []
    for threads in (1, 2):
        model = tiny(20)
        config = settings(steps=8, precision="bfloat16", optimizer="muon", learning_rate=1e-2)
        list(train(model, ids, [], config, threads=threads))
        found.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*found)


def some_matrices():
    dice = torch.Generator().manual_seed(0)
    line = torch.randn(4, 128, 1, generator=dice) @ torch.randn(4, 1, 96, generator=dice)
    return {"any": torch.randn(2, 24, 48, generator=dice), "of rank 1": line}


@pytest.mark.parametrize("which", ["any", "of rank 1"])
@pytest.mark.parametrize(
    ("n", "most"), [(3, 1.87), (5, 1.13)]
)  # what these polynomials leave, see orthogonal
def test_muon_orthogonalises_in_16_bits_as_well(which, n, most):
    matrices = some_matrices()[which]
    with computing_in("bfloat16", CPU):
        rounded = orthogonal(matrices, n)
    assert rounded.dtype == torch.float32
    values = torch.linalg.svdvals(rounded)
    assert float(values.max()) < 1.05 * most  # without SAFETY 45 for a matrix of rank 1
    assert not torch.equal(rounded, orthogonal(matrices, n))
    if which == "any":
        assert float(values.min()) > {3: 0.12, 5: 0.83}[n]


def test_matrix_products_are_in_16_bits_and_weights_stay_as_they_are():
    x, layer = torch.randn(3, 8), torch.nn.Linear(8, 8)
    with computing_in("bfloat16", CPU):
        assert layer(x).dtype == torch.bfloat16
    with computing_in("float32", CPU):
        assert layer(x).dtype == torch.float32
    assert layer.weight.dtype == torch.float32


@pytest.mark.parametrize(("objective", "optimizer"), [("clm", "adamw"), ("mlm", "muon")])
def test_a_run_in_bfloat16_learns_as_well_in_weights_of_float32(monkeypatch, objective, optimizer):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    ids, vocab = some_ids(), 20 + (objective == "mlm")
    shape = {"objective": objective, "positions": "rotary", "activation": "swiglu", "qk_norm": True}

    def run(precision):
        model = tiny(vocab, **shape)
        config = settings(steps=60, precision=precision, optimizer=optimizer, learning_rate=1e-2)
        training = train(model, ids[:1800], ids[1800:], config)
        assert training.precision == precision
        return model, list(training)

    (_, events), (model, rounded) = run("float32"), run("bfloat16")
    assert isinstance(rounded[0], NoticeEvent) and "slower than float32" in rounded[0].message
    assert isinstance(events[0], EvalEvent)
    first, last = evals_of(rounded)[0], evals_of(rounded)[-1]
    assert first == evals_of(events)[0]  # scored in float32, whatever training computes in
    assert last.val_loss < first.val_loss - 0.05  # 0.09 masked, 1.3 causal in float32
    assert last.val_loss == pytest.approx(evals_of(events)[-1].val_loss, abs=0.04)
    a, b = steps_of(events)[0].loss, steps_of(rounded)[0].loss
    assert a != b and b == pytest.approx(a, rel=2**-8)  # 8 bits of precision
    assert all(p.dtype == torch.float32 for p in model.parameters())
    state = next(e.state for e in reversed(rounded) if isinstance(e, CheckpointEvent))
    assert {t.dtype for t in [*state["model"].values(), *state["optimizer"].values()]} == {torch.float32}


def test_gradients_of_a_bfloat16_step_are_float32():
    model = tiny()
    run = train(model, some_ids(), [], settings(precision="bfloat16"))
    loss, _ = run.gradients(run.draw())
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}
    assert isinstance(loss, float)


def test_a_bfloat16_run_is_resumed_bit_for_bit():
    config = settings(steps=20, checkpoint_every=8, precision="bfloat16")
    events = list(train(tiny(), some_ids(), [], config))
    state = next(e.state for e in events if isinstance(e, CheckpointEvent))
    later = list(train(tiny(), some_ids(), [], config, resume=state))
    assert [e.loss for e in steps_of(later)] == [e.loss for e in steps_of(events) if e.step > 8]
