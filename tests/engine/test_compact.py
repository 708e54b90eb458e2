"""Weights in 8 bits: how far each number may be off, and that a damaged file is noticed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoint_files import read_embedding
from engine.checkpoints import Checkpoint, load_checkpoint, model_tensors, save_checkpoint
from engine.compact import SCALE, pack, unpack
from engine.model import Transformer
from engine.tokenizers import byte_tokenizer

Build = Callable[..., Transformer]


def test_worked_by_hand() -> None:
    packed = pack({"w": torch.tensor([[0.5, -1.27, 0.004], [0.0, 0.0, 0.0]])})
    assert packed["w"].tolist() == [[50, -127, 0], [0, 0, 0]]  # 0.004 / 0.01 rounds to 0
    assert packed["w" + SCALE].flatten().tolist() == pytest.approx([0.01, 1.0])
    assert torch.allclose(unpack(packed)["w"], torch.tensor([[0.5, -1.27, 0.0], [0.0, 0.0, 0.0]]))


def test_every_number_is_off_by_at_most_half_a_step_of_its_row() -> None:
    dice = torch.Generator().manual_seed(5)
    weights = torch.randn(40, 30, generator=dice) * torch.logspace(-6, 3, 40)[:, None]
    off = (unpack(pack({"w": weights}))["w"] - weights).abs()
    step = weights.abs().amax(dim=1, keepdim=True) / 127
    assert (off <= step * 0.5001).all()
    assert off.max() > 0  # it does round


def test_vectors_are_kept_exactly() -> None:
    vector = torch.tensor([1e-7, 3.14159274, -2.0])
    assert torch.equal(unpack(pack({"norm.weight": vector}))["norm.weight"], vector)


def test_a_matrix_without_its_scales_is_refused() -> None:
    packed = pack({"w": torch.ones(2, 2)})
    for broken in ({"w": packed["w"]}, {**packed, "w" + SCALE: torch.ones(1, 1)}):
        with pytest.raises(ValueError, match="w is stored in 8 bits without a scale"):
            unpack(broken)


@pytest.mark.parametrize("tied", [True, False])
def test_a_checkpoint_in_8_bits_loads_as_float32_and_is_a_quarter_of_the_size(
    small_model: Build, tmp_path: Path, tied: bool
) -> None:
    model = small_model(d_model=64, tie_head=tied)
    for dtype in ("float32", "int8"):
        save_checkpoint(tmp_path / dtype, Checkpoint(model, byte_tokenizer()), dtype=dtype)  # type: ignore[arg-type]
    loaded = load_checkpoint(tmp_path / "int8").model
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    assert (loaded.head.weight is loaded.embedding.weight) == tied
    for name, value in model_tensors(model).items():
        step = value.abs().amax(dim=-1, keepdim=True) / 127
        assert ((loaded.state_dict()[name] - value).abs() <= 0.5001 * step).all()
    sizes = [(tmp_path / dtype / "model.safetensors").stat().st_size for dtype in ("int8", "float32")]
    assert sizes[0] < 0.32 * sizes[1]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_the_embedding_is_read_without_the_model(small_model: Build, tmp_path: Path, dtype: str) -> None:
    save_checkpoint(tmp_path / "kept", Checkpoint(small_model(), byte_tokenizer()), dtype=dtype)  # type: ignore[arg-type]
    vectors = read_embedding(tmp_path / "kept")
    assert vectors.dtype == np.float32
    expected = load_checkpoint(tmp_path / "kept").model.embedding.weight.detach().numpy()
    assert np.array_equal(vectors, expected)


def test_a_damaged_embedding_is_refused_in_a_sentence(small_model: Build, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "kept", Checkpoint(small_model(), byte_tokenizer()), dtype="int8")
    file = tmp_path / "kept" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\x00")
    with pytest.raises(ValueError, match="kept is damaged"):
        read_embedding(tmp_path / "kept")
