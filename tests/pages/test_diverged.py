"""A model whose training ran away: its weights are finite, but e to the power of its logits is not."""

import shutil
from pathlib import Path

import pytest
import torch

from engine.checkpoints import save_checkpoint
from tests.pages.conftest import OpenPage
from tests.pages.tiny import save_tiny

PAGES = ("home", "next_token", "attention", "embeddings", "inside", "generation", "masking", "compare")


def save_loud(shelf: Path, name: str, factor: float, objective: str) -> None:
    checkpoint = save_tiny(shelf, name, context_length=64, objective=objective)
    with torch.no_grad():
        for weights in checkpoint.model.parameters():
            weights.mul_(factor if weights.ndim > 1 else factor**0.5)
    shutil.rmtree(shelf / name)
    save_checkpoint(shelf / name, checkpoint)


@pytest.mark.parametrize("factor", [30.0, 300_000.0])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_for_logits_beyond_a_float(
    open_page: OpenPage, shelf: Path, name: str, factor: float
) -> None:
    save_loud(shelf, "tiny-clm", factor, "clm")
    save_loud(shelf, "tiny-mlm", factor, "mlm")
    assert not open_page(name, text="The cat sat on the mat.").exception


def test_a_row_of_huge_scores_says_what_was_subtracted(open_page: OpenPage, shelf: Path) -> None:
    save_loud(shelf, "tiny-clm", 30.0, "clm")
    for view in ("weight", "row"):
        at = open_page("attention", text="The cat sat on the mat.", attention_arithmetic=view)
        assert not at.exception
        assert any("is taken from all of them first" in caption.value for caption in at.caption)
