"""The shipped models against the source that they learned from."""

import re

import pytest

from engine.checkpoints import Checkpoint, load_checkpoint
from engine.grammar import default_grammar
from engine.story_report import story_report
from pretrained.evaluate import FOLDER

NAMES = ["stories-clm", "stories-mlm"]


@pytest.fixture(scope="module", params=NAMES)
def shipped(request: pytest.FixtureRequest) -> Checkpoint:
    return load_checkpoint(FOLDER / request.param)


def test_about_a_million_parameters_and_a_file_under_three_megabytes(shipped: Checkpoint) -> None:
    assert 800_000 < shipped.model.n_parameters() < 1_200_000
    assert (FOLDER / shipped.info["name"] / "model.safetensors").stat().st_size < 3_000_000


def test_learned_from_the_grammar_that_is_shipped_with_it(shipped: Checkpoint) -> None:
    assert shipped.info["grammar"] == default_grammar().version


def test_the_causal_model_is_within_three_hundredths_of_a_nat_of_the_floor() -> None:
    checkpoint = load_checkpoint(FOLDER / "stories-clm")
    report = story_report(checkpoint.model, checkpoint.tokenizer, n_rows=24, seed=4321)
    assert report.gap < 0.03
    assert report.kl < 0.03
    # The mean of (loss - floor) estimates the mean KL: they may differ by the noise of 24 rows, not by more.
    assert report.kl == pytest.approx(report.gap, abs=0.01)
    assert report.gap > -0.01  # nothing beats the true source but by luck


def test_the_masked_model_is_scored_against_the_exact_posterior() -> None:
    checkpoint = load_checkpoint(FOLDER / "stories-mlm")
    report = story_report(checkpoint.model, checkpoint.tokenizer, n_rows=12, seed=4321)
    stated = checkpoint.info["report"]
    assert report.kl > 0
    assert report.gap == pytest.approx(stated["gap"], abs=0.1)


def test_both_models_share_one_vocabulary_and_one_shape() -> None:
    causal, masked = (load_checkpoint(FOLDER / name) for name in NAMES)
    assert causal.tokenizer.hash == masked.tokenizer.hash
    assert (
        masked.model.n_parameters() - causal.model.n_parameters() == masked.model.config.d_model
    )  # the mask's row


def test_the_card_says_what_the_checkpoint_says(shipped: Checkpoint) -> None:
    card = (FOLDER / shipped.info["name"] / "CARD.md").read_text(encoding="utf-8")
    report = shipped.info["report"]
    for value in (report["loss"], report["floor"], report["kl"]):
        assert f"{value:.4f}" in card
    assert re.search(r"seed \d", card) and f"{shipped.model.n_parameters():,}" in card
