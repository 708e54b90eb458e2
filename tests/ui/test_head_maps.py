"""How much of many heads is sent to a browser."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest

from tests import hub_folders
from ui import head_maps, model_refs
from ui.components.head_grid import pack


@pytest.mark.parametrize(
    ("heads", "causal", "drawn"),
    [((6, 6), True, 128), ((30, 9), True, 128), ((12, 12), False, 128), ((32, 32), True, 64)],
)
def test_fewer_tokens_of_more_heads(heads: tuple[int, int], causal: bool, drawn: int) -> None:
    assert head_maps.most_drawn(*heads, causal) == drawn


def test_a_deep_model_s_maps_are_less_than_a_megabyte() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 9, 128, 128)).astype(np.float32) * 2
    scores[:, :, *np.triu_indices(128, 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    sent = pack(weights, causal=True)
    assert (
        len(base64.b64decode(sent)) < 30 * 9 * 128 * 129 // 2 * 0.6
    )  # of random ones; real ones are sparser


def test_all_weights_as_arrays(loupe_home: Path) -> None:
    hub_folders.write_llama(loupe_home / "models" / "llama")
    ref = next(ref for ref in model_refs.hub_models() if ref.name == "llama")
    found = np.load(io.BytesIO(head_maps.arrays(ref, "Once upon a time")))
    assert found["weights"].shape == (2, 4, len(found["ids"]), len(found["ids"]))
    np.testing.assert_allclose(found["weights"].sum(-1), 1, atol=1e-5)
