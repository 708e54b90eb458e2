"""The same numbers on a GPU as on the CPU. Without a GPU these are skipped."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.cache import KVCache
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.config import TrainConfig
from engine.devices import AUTO, CPU, devices, place
from engine.hub import load_folder
from engine.metrics import score
from engine.model import Transformer
from engine.sampling import generate
from engine.tokenizers import byte_tokenizer
from engine.trace import trace
from engine.training import CheckpointEvent, EvalEvent, StepEvent, train
from tests.hub_folders import write_llama, write_roberta

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

Build = Callable[..., Transformer]
TEXT = "ab ba abc "


def test_logits_traces_and_scores_are_those_of_the_cpu(small_model: Build) -> None:
    for positions in ("learned", "sinusoidal", "rotary"):
        here, there = (small_model(positions=positions, qk_norm=True, n_kv_head=2) for _ in range(2))
        there.to("cuda")
        a, b = (trace(model, byte_tokenizer(), TEXT) for model in (here, there))
        for name in ("logits", "attentions", "residual", "q", "heads"):
            assert np.allclose(getattr(a, name), getattr(b, name), atol=2e-3), (positions, name)
        ids = byte_tokenizer().encode(TEXT * 5)
        assert np.allclose(score(here, ids).log_probs, score(there, ids).log_probs, atol=2e-3)


def test_k01_the_cache_gives_the_same_logits(small_model: Build) -> None:
    model = small_model().to("cuda").eval()
    ids = torch.arange(16, device="cuda")[None]
    cache = KVCache(model.config, device="cuda")
    with torch.no_grad():
        parts = [model(ids[:, a:b], cache=cache) for a, b in pairwise((0, 7, 8, 16))]
        assert torch.allclose(torch.cat(parts, dim=1), model(ids), atol=1e-3)


def test_s14_a_seed_repeats_and_greedy_writing_is_that_of_the_cpu(small_model: Build) -> None:
    here, there = small_model(), small_model().to("cuda")

    def written(model: Transformer, **how: float) -> list[int]:
        return [step.id for step in generate(model, [1, 2], n_tokens=12, **how)]  # type: ignore[arg-type]

    assert written(there, seed=42) == written(there, seed=42)
    assert written(there, temperature=0) == written(here, temperature=0)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_training_learns_and_resumes(
    small_model: Build, tmp_path: Path, optimizer: str, objective: str
) -> None:
    config = TrainConfig(
        steps=30,
        batch_size=8,
        eval_every=15,
        eval_rows=4,
        checkpoint_every=15,
        optimizer=optimizer,
        learning_rate=2e-2,
        warmup_steps=3,
    )
    ids = (torch.arange(3000) % 7).tolist()
    model = small_model(vocab_size=256 + (objective == "mlm"), objective=objective, dropout=0.1).to("cuda")
    events = list(train(model, ids, ids, config))
    losses = [e.val_loss for e in events if isinstance(e, EvalEvent) and e.val_loss is not None]
    assert losses[-1] < losses[0] / 2
    middle = next(e.state for e in events if isinstance(e, CheckpointEvent))
    again = small_model(vocab_size=256 + (objective == "mlm"), objective=objective, dropout=0.1).to("cuda")
    rest = [e.loss for e in train(again, ids, ids, config, resume=middle) if isinstance(e, StepEvent)]
    whole = [e.loss for e in events if isinstance(e, StepEvent)]
    assert np.allclose(rest, whole[15:], rtol=2e-2)  # sums on a GPU come in no fixed order
    save_checkpoint(tmp_path / "kept", Checkpoint(again, byte_tokenizer(), step=30))
    loaded = load_checkpoint(tmp_path / "kept", "cuda").model
    assert loaded.device.type == "cuda"
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_mixed_precision_learns_as_well_as_float32(small_model: Build, objective: str) -> None:
    ids, vocab = (torch.arange(3000) % 7).tolist(), 256 + (objective == "mlm")

    def run(precision: str) -> tuple[str, list[float]]:
        model = small_model(vocab_size=vocab, objective=objective, positions="rotary").to("cuda")
        config = TrainConfig(
            steps=40, batch_size=8, eval_every=20, eval_rows=8, warmup_steps=3, precision=precision
        )
        training = train(model, ids, ids, config)
        losses = [e.val_loss for e in training if isinstance(e, EvalEvent) and e.val_loss is not None]
        assert all(p.dtype == torch.float32 for p in model.parameters())
        return training.precision, losses

    (_, exact), (chosen, rounded) = run("float32"), run("auto")
    assert chosen == ("bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32")
    assert rounded[0] == pytest.approx(exact[0], abs=1e-3)  # evaluations are always in float32
    assert rounded[-1] < rounded[0] / 2 and rounded[-1] == pytest.approx(exact[-1], abs=0.1)


def test_r11_after_too_large_a_batch_the_next_one_works(small_model: Build) -> None:
    model = small_model(context_length=16).to("cuda")
    free = torch.cuda.mem_get_info()[0]
    rows = free // (16 * 256 * 4) + 1  # their logits alone are more than there is
    with pytest.raises(torch.OutOfMemoryError):
        model(torch.zeros(rows, 16, dtype=torch.int64, device="cuda"))
    assert model(torch.zeros(2, 16, dtype=torch.int64, device="cuda")).isfinite().all()


@pytest.fixture(params=[write_llama, write_roberta], ids=["llama", "roberta"])
def published(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Checkpoint, Checkpoint]:
    """A tiny published model twice: on the CPU, and where "auto" puts it."""
    folder = request.param(tmp_path / "published")
    here, there = load_folder(folder), load_folder(folder)
    for checkpoint in (here, there):
        checkpoint.model.eval().requires_grad_(False)
    placed = place(there.model, AUTO)
    assert placed.device in devices() and placed.device.label.startswith("GPU · ") and placed.reason == ""
    assert there.model.device.type == "cuda" and here.model.device.type == "cpu"
    return here, there


def test_a_published_model_computes_as_on_the_cpu(published: tuple[Checkpoint, Checkpoint]) -> None:
    here, there = published
    a, b = (trace(one.model, one.tokenizer, "Once upon a time") for one in published)
    for name in ("logits", "attentions", "residual", "q", "heads"):
        scale = np.abs(getattr(a, name)).max()
        assert np.abs(getattr(a, name) - getattr(b, name)).max() <= 1e-3 * scale, name
    if here.config.objective == "clm":
        ids = here.tokenizer.encode("Once upon")
        texts = [
            [step.id for step in generate(one.model, ids, n_tokens=20, temperature=0)] for one in published
        ]
        assert texts[0] == texts[1]


def test_a_published_model_moves_there_and_back(published: tuple[Checkpoint, Checkpoint]) -> None:
    here, there = published
    there.model.to(CPU)
    assert all(
        torch.equal(a, b) for a, b in zip(here.model.parameters(), there.model.parameters(), strict=True)
    )
    ids = torch.tensor([here.tokenizer.encode("Once upon a time")])
    with torch.no_grad():
        assert torch.equal(here.model(ids), there.model(ids))
    assert place(there.model, AUTO).device.id == "cuda:0"


def test_bf16_gives_nearly_the_same_logits(published: tuple[Checkpoint, Checkpoint]) -> None:
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        pytest.skip("this GPU has no bf16")
    here, there = published
    ids = torch.tensor([here.tokenizer.encode("Once upon a time")])
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        rounded = there.model(ids.cuda()).float().cpu()
    with torch.no_grad():
        exact = here.model(ids)
    assert (rounded - exact).abs().max() <= 0.05 * exact.abs().max()  # bf16 keeps 8 bits of a number


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_a_published_model_learns_on(tmp_path: Path, precision: str) -> None:
    checkpoint = load_folder(write_llama(tmp_path / "published"))
    model, ids = checkpoint.model.to("cuda"), checkpoint.tokenizer.encode("Once upon a time " * 60)
    config = TrainConfig(
        steps=20, batch_size=4, eval_every=10, eval_rows=4, warmup_steps=2, precision=precision,
        learning_rate=1e-3,
    )  # fmt: skip
    losses = [e.loss for e in train(model, ids, ids, config) if isinstance(e, StepEvent)]
    assert losses[-1] < 0.8 * losses[0] and np.isfinite(losses).all()
    assert model.device.type == "cuda" and all(p.dtype == torch.float32 for p in model.parameters())


def test_what_does_not_fit_stays_on_the_cpu(small_model: Build) -> None:
    there = devices()
    full = [device if device.id == CPU else type(device)(device.id, device.name, 0) for device in there]
    placed = place(small_model(), AUTO, full)
    assert (placed.device.id, placed.why) == (CPU, "too_small")
