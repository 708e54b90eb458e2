"""The shipped models against the source that they learned from."""

import math
import re

import pytest
import torch

import wording
from engine.batches import clm_rows
from engine.checkpoint_list import list_checkpoints
from engine.checkpoints import Checkpoint, load_checkpoint, model_tensors
from engine.compact import pack, unpack
from engine.grammar import default_grammar
from engine.metrics import cross_entropy
from engine.records import read_records
from engine.story_report import story_report, story_rows
from engine.training import moment_steps
from pretrained.card import card as made_card
from pretrained.card import file_name
from pretrained.evaluate import FOLDER
from pretrained.make import MODELS, made_from

NAMES = ["stories-clm", "stories-mlm"]
MOMENTS = MODELS["stories-clm"].moments


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


@pytest.mark.parametrize("language", wording.LANGUAGES)
def test_the_card_says_what_the_checkpoint_says(shipped: Checkpoint, language: str) -> None:
    card = (FOLDER / shipped.info["name"] / file_name(language)).read_text(encoding="utf-8")
    report = shipped.info["report"]
    for value in (report["loss"], report["floor"], report["kl"]):
        assert f"{value:.4f}" in card
    assert re.search(r"(seed|semilla) \d", card) and f"{shipped.model.n_parameters():,}" in card
    assert card == made_card(shipped, made_from(shipped.info["name"]), language)


def test_the_cards_of_all_languages_have_the_same_numbers(shipped: Checkpoint) -> None:
    folder = FOLDER / shipped.info["name"]
    cards = [(folder / file_name(language)).read_text(encoding="utf-8") for language in wording.LANGUAGES]
    numbers = [re.findall(r"\d[\d.,]*\d|\d", card) for card in cards]
    assert len(set(cards)) == len(cards) and len(numbers[0]) > 20
    assert all(found == numbers[0] for found in numbers)


def test_the_history_has_24_moments_most_of_them_early_in_under_30_megabytes(shipped: Checkpoint) -> None:
    name = shipped.info["name"]
    kept = list_checkpoints(FOLDER / "history" / name)
    steps = [step for step, _ in kept]
    assert [*steps, shipped.step] == moment_steps(shipped.step, MOMENTS) and MOMENTS >= 24
    assert steps[0] == 0 and sum(step < shipped.step / 4 for step in steps) > len(steps) / 2
    files = [*(FOLDER / "history" / name).rglob("*"), *(FOLDER / name).rglob("*")]
    assert sum(file.stat().st_size for file in files if file.is_file()) < 30_000_000
    for step, path in kept:
        moment = load_checkpoint(path)
        assert moment.step == step and moment.tokenizer.hash == shipped.tokenizer.hash
        assert moment.model.config == shipped.model.config


def test_the_curve_is_that_of_the_kept_moments_from_ln_v_to_near_the_floor(shipped: Checkpoint) -> None:
    records, _ = read_records(FOLDER / shipped.info["name"] / "metrics.jsonl")
    floor, evals = records[0], records[1:]
    assert floor["kind"] == "floor"
    assert [record["step"] for record in evals] == moment_steps(shipped.step, MOMENTS)
    assert evals[0]["val_loss"] == pytest.approx(math.log(shipped.model.config.vocab_size), abs=0.2)
    assert floor["value"] < evals[-1]["val_loss"] < floor["value"] + 0.1
    assert evals[-1]["val_loss"] == min(record["val_loss"] for record in evals)


@torch.no_grad()
def test_8_bits_cost_a_moment_next_to_nothing() -> None:
    """The last model itself in 8 bits, on stories that it has not seen."""
    checkpoint = load_checkpoint(FOLDER / "stories-clm")
    batch = clm_rows(story_rows(checkpoint.tokenizer, 16, 193, seed=99))
    losses = [float(cross_entropy(checkpoint.model(batch.inputs), batch.targets))]
    checkpoint.model.load_state_dict(unpack(pack(model_tensors(checkpoint.model))), strict=False)
    losses.append(float(cross_entropy(checkpoint.model(batch.inputs), batch.targets)))
    assert losses[1] == pytest.approx(losses[0], abs=0.001)
