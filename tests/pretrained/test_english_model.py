"""The shipped model that writes English, on sentences that stand in no story that it read."""

import json
import random
import re

import pytest
import torch

import wording
from engine.batches import clm_rows
from engine.checkpoints import Checkpoint, load_checkpoint
from engine.metrics import cross_entropy
from pretrained.card import card as made_card
from pretrained.card import file_name
from pretrained.evaluate import FOLDER
from pretrained.make import MODELS, made_from
from pretrained.text_report import sample

NAME = "english-clm"
OURS = """Once upon a time, there was a little girl named Lily. She had a big red ball. One day, she went to
the park with her mom. She saw a dog. The dog was sad. Lily gave the ball to the dog, and they played
together. They were very happy.""".replace("\n", " ")
COMMON = """a all and around asked at away ball be big boy but came can could day dog down for friend friends
fun get girl go had happy he her him his home in is it like liked little looked loved mom named new not of
on once one out park play played playing said sad saw she so some something that the their them then
there they things time to toy toys up upon very wanted was went were what when with you your i i'm it's
my no yes tim lily tom"""


@pytest.fixture(scope="module")
def english() -> Checkpoint:
    return load_checkpoint(FOLDER / NAME)


def _loss(checkpoint: Checkpoint, text: str) -> float:
    ids = torch.tensor([checkpoint.tokenizer.encode(text)])
    inputs, targets = clm_rows(ids)
    with torch.no_grad():
        return float(cross_entropy(checkpoint.model(inputs), targets))


def test_it_reads_simple_english_far_better_than_the_same_words_in_another_order(english: Checkpoint) -> None:
    words = OURS.split()
    random.Random(1).shuffle(words)
    own, mixed = _loss(english, OURS), _loss(english, " ".join(words))
    assert own < 3 and mixed > own + 1.5


def test_it_writes_words_and_sentences(english: Checkpoint) -> None:
    texts = [
        sample(english.model, english.tokenizer, seed, "Once upon a time, there was") for seed in range(4)
    ]
    for text in texts:
        words = re.findall(r"[a-z']+", text.lower())
        assert sum(word in COMMON.split() for word in words) > 0.5 * len(words), text
        assert text.count(".") > 2, text
    assert len(set(texts)) == 4


def test_its_size(english: Checkpoint) -> None:
    assert 1_500_000 < english.model.n_parameters() < 4_000_000
    assert (FOLDER / NAME / "model.safetensors").stat().st_size < 8_000_000
    config, shape = english.model.config.to_json(), MODELS[NAME].shape
    assert {name: config[name] for name in shape} == shape


@pytest.mark.parametrize("language", wording.LANGUAGES)
def test_the_card_says_what_the_checkpoint_says(english: Checkpoint, language: str) -> None:
    card = (FOLDER / NAME / file_name(language)).read_text(encoding="utf-8")
    report = english.info["report"]
    assert f"{report['loss']:.4f}" in card and f"{report['trigram']:.4f}" in card and "CDLA-Sharing" in card
    assert report["loss"] < report["trigram"]
    assert card == made_card(english, made_from(NAME), language)


def test_its_curve_ends_where_the_card_says(english: Checkpoint) -> None:
    lines = (FOLDER / NAME / "metrics.jsonl").read_text("utf-8").splitlines()
    evals = [record for record in map(json.loads, lines) if record["kind"] == "eval"]
    assert evals[0]["step"] == 0 and evals[-1]["step"] == english.step
    assert evals[-1]["val_loss"] == pytest.approx(english.info["report"]["loss"], abs=0.25)
