"""Runs that start from a model: its copy, the first numbers, going on, zips, and starts that are gone."""

import io
import json
import math
import shutil
import zipfile
from dataclasses import replace

import pytest
import torch

from engine import run_session, tuning_size, tuning_start
from engine.board import standings
from engine.bundles import export_run, import_run
from engine.checkpoint_list import list_checkpoints
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.corpus import own_text, split
from engine.events import EvalEvent
from engine.folders import read_json, write_json
from engine.hub import load_folder
from engine.model import Transformer
from engine.one_step import step_of_run
from engine.pair_files import Pair, Preference, as_lines
from engine.reading import read
from engine.records import read_records
from engine.repeats import more_seeds
from engine.run_sets import differences, same_but_seed, settings, shared_axis
from engine.run_setup import first_model, set_up
from engine.run_spec import spec_hash
from engine.tokenizers import char_tokenizer
from engine.training import TrainConfig
from engine.tuning_data import REFERENCE, pairs_corpus
from engine.tuning_start import check_start, describe, open_start, start_of_run
from engine.verdict import verdict
from engine.worker import run_folder
from tests.engine.conftest import rough
from tests.engine.small_runs import TEXT, losses, of_kind, same_weights, spec, train_here
from tests.hub_folders import write_bert, write_llama

ANIMALS, PLACES = ("cat", "dog", "hen"), ("mat", "log", "hat", "dot")
PAIRS = [Pair(f"the {a} sat", f"on the {p}.") for a in ANIMALS for p in PLACES]
PREFERENCES = [Preference(f"the {a} sat", f"on the {p}.", f"on a {p}.") for a in ANIMALS for p in PLACES]
LETTERS = char_tokenizer(TEXT + "hen")


@pytest.fixture
def start(tmp_path):
    """A small trained-looking model as a checkpoint folder."""
    made = spec(tokenizer=LETTERS, context=32)
    model = rough(Transformer(made.model, torch.Generator().manual_seed(5)), 0.1)
    save_checkpoint(tmp_path / "parent", Checkpoint(model, LETTERS, step=70, info={"name": "parent"}))
    return describe(tmp_path / "parent", "checkpoint", "parent")


def corpus_of(aim):
    if aim == "text":
        return own_text(TEXT)
    return pairs_corpus(as_lines(PAIRS if aim == "answers" else PREFERENCES), aim, name="Sat")


def tuned(found, aim="text", **changes):
    """A run from a start; settings of TrainConfig as in `small_runs.spec`."""
    made = spec(text=corpus_of(aim), tokenizer=found.tokenizer, aim=aim, name="Tuned", **changes)
    return replace(made, model=found.model, start=found.start, val_share=0.25)


def evals(store, run_id):
    return of_kind(store.history(run_id), "eval")


AIMS = pytest.mark.parametrize("aim", ["text", "answers", "preferences"])


@AIMS
def test_a_run_begins_as_its_start_and_keeps_it(store, start, aim):
    run_id = store.create(tuned(start, aim, moments=3), "me")
    folder = train_here(store, run_id).folder
    before = open_start(start.start).model
    for kept in (start_of_run(folder, read_json(folder / "run.json")), load_checkpoint(folder / "start")):
        assert all(
            torch.equal(a, b) for a, b in zip(kept.model.parameters(), before.parameters(), strict=True)
        )
    first = load_checkpoint(list_checkpoints(folder)[0][1])  # by now in 8 bits
    apart = (first.model.embedding.weight - before.embedding.weight).abs().max()
    assert first.step == 0 and apart < 0.01 * before.embedding.weight.abs().max()
    info = store.info(run_id)
    assert (info.state, info.start, info.measure) == ("finished", "parent", "clm" if aim == "text" else aim)
    assert info.n_choices == (2 if aim == "preferences" else LETTERS.vocab_size)


@AIMS
def test_the_moment_at_step_0_is_the_start_and_the_first_number_is_its_own(store, start, aim):
    run_id = store.create(tuned(start, aim, moments=3), "me")
    folder = store.claim(run_id)
    ready = set_up(folder, read_json(folder / "run.json"), print)
    training = ready.training()
    first = next(e for e in training if isinstance(e, EvalEvent))
    state = next(training).state
    training.close()
    before = open_start(start.start).model
    assert all(torch.equal(state["model"][name], p) for name, p in before.named_parameters())
    if aim == "preferences":
        assert first.val_loss == pytest.approx(math.log(2), abs=1e-6)
        return
    batch, total, n = training.val_batch, 0.0, 0
    with torch.no_grad():
        log_probs = torch.log_softmax(before(batch.inputs), -1)
    for row, targets in zip(log_probs, batch.targets.tolist(), strict=True):
        for at, target in enumerate(targets):
            if target != -100:
                total, n = total - row[at, target].item(), n + 1
    assert first.val_loss == pytest.approx(total / n, rel=1e-5)


@AIMS
@pytest.mark.parametrize("last_blocks", [None, 1])
def test_stopped_and_resumed_is_the_same_as_in_one_go(store, start, aim, last_blocks):
    whole, parts = (
        store.create(replace(tuned(start, aim, last_blocks=last_blocks), name=name), "me") for name in "ab"
    )
    train_here(store, whole)
    folder = store.claim(parts)
    run = run_session.Run(folder, lambda text: None, run_session.ALONE)
    run.stop_asked = lambda: _step_of(folder) >= 14
    run.train()
    run.release()
    assert store.info(parts).state == "stopped" and 14 <= store.info(parts).step < 30
    shutil.rmtree(start.start.folder)  # its copy in the run is enough
    train_here(store, parts)
    assert losses(store, whole) == losses(store, parts)
    assert same_weights(store, whole, parts)


def _step_of(folder):
    steps = of_kind(read_records(folder / "metrics.jsonl")[0], "step")
    return steps[-1]["step"] if steps else 0


@AIMS
def test_a_zip_carries_all_that_is_needed_to_compare_and_to_go_on(store, start, aim):
    run_id = store.create(tuned(start, aim, steps=20), "me")
    train_here(store, run_id)
    data = export_run(store, run_id)
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert {"start/checkpoint.json", "start/model.safetensors"} <= set(names)
    assert (REFERENCE in names) == (aim == "preferences")
    told = json.loads(zipfile.ZipFile(io.BytesIO(data)).read("run.json"))["start"]
    assert told == {"kind": "checkpoint", "name": "parent", "identity": start.start.identity}
    shutil.rmtree(start.start.folder)
    copy = import_run(store, data, "you")
    assert store.info(copy).start == "parent"
    one, other = (store.info(r).folder for r in (run_id, copy))
    for file in ("start/model.safetensors", *([REFERENCE] if aim == "preferences" else [])):
        assert (one / file).read_bytes() == (other / file).read_bytes()
    for each, owner in ((run_id, "me"), (copy, "you")):
        run = read_json(store.info(each).folder / "run.json")
        run["train"]["steps"] = 26
        write_json(store.info(each).folder / "run.json", run)
        train_here(store, each)
        assert store.info(each).owned_by(owner)
    assert losses(store, run_id) == losses(store, copy)


def test_a_zip_whose_start_is_of_another_shape_is_refused(store, start):
    run_id = store.create(tuned(start), "me")
    folder = store.info(run_id).folder
    other = spec(d_model=32, tokenizer=LETTERS)
    save_checkpoint(folder / "start", Checkpoint(Transformer(other.model), LETTERS))
    with pytest.raises(ValueError, match="the model that its run started from"):
        import_run(store, export_run(store, run_id), "you")


# ---- what is refused


def test_a_start_that_has_changed_or_does_not_fit_is_refused_before_anything_is_written(store, start):
    made = tuned(start)
    with pytest.raises(ValueError, match="shape and the vocabulary of parent"):
        store.create(replace(made, model=replace(made.model, n_layer=2)), "me")
    with pytest.raises(ValueError, match="needs"):
        store.create(replace(made, tokenizer=char_tokenizer("abc")), "me")
    model = rough(Transformer(made.model))
    save_checkpoint(start.start.folder, Checkpoint(model, LETTERS))
    with pytest.raises(ValueError, match="parent has changed"):
        store.create(made, "me")
    assert store.list() == [] and not list(store.root.glob(".*"))


def test_what_needs_more_memory_than_there_is_is_refused_before_anything_is_written(
    store, start, monkeypatch
):
    monkeypatch.setattr(tuning_size, "memory", lambda: type("Little", (), {"bound": 1000})())
    with pytest.raises(ValueError, match="GB of memory"):
        store.create(tuned(start), "me")
    assert store.list() == [] and not list(store.root.glob(".*"))


def test_pairs_need_their_aim_a_causal_model_and_preferences_a_start(store, start):
    with pytest.raises(ValueError, match="answers needs a file of such pairs"):
        store.create(replace(tuned(start, "answers"), corpus=own_text(TEXT)), "me")
    with pytest.raises(ValueError, match="Choose a model to start from"):
        store.create(replace(tuned(start, "preferences"), start=None), "me")
    masked = spec(text=corpus_of("answers"), tokenizer=LETTERS, objective="mlm", aim="answers")
    with pytest.raises(ValueError, match="Only a causal model"):
        store.create(masked, "me")
    long = pairs_corpus(as_lines([Pair("the", "t" * 40)]), "answers", name="long")
    with pytest.raises(ValueError, match="line 1 doesn't fit"):
        store.create(replace(tuned(start, "answers"), corpus=long), "me")


def test_answers_can_be_learned_from_nothing(store):
    run_id = store.create(spec(text=corpus_of("answers"), tokenizer=LETTERS, aim="answers"), "me")
    info = train_here(store, run_id)
    assert info.state == "finished" and info.start == ""
    first, *_, last = evals(store, run_id)
    assert last["val_loss"] < first["val_loss"]


# ---- what it tells


def test_preferences_tell_margin_and_accuracy_and_no_perplexity(store, start):
    run_id = store.create(tuned(start, "preferences", learning_rate=1e-2), "me")
    train_here(store, run_id)
    first, *_, last = evals(store, run_id)
    assert first["perplexity"] is None and first["bits_per_byte"] is None and last["perplexity"] is None
    assert first["margin"] == pytest.approx(0, abs=1e-5) and last["margin"] > 0 and last["accuracy"] > 0.5
    about = read_json(store.info(run_id).folder / "run.json")["corpus"]
    assert (about["pairs"], about["val_pairs"]) == (9, 3)
    sample = of_kind(store.history(run_id), "sample")[-1]
    assert sample["prompt"] == PREFERENCES[9].prompt + "\n" and "\n" not in sample["text"]


def test_a_cut_prompt_and_a_frozen_head_are_told(store, start):
    pairs = [Pair("the cat sat, the dog sat on the cat", "on the mat."), *PAIRS]
    made = tuned(start, "answers", last_blocks=1)
    run_id = store.create(replace(made, corpus=pairs_corpus(as_lines(pairs), "answers", name="x")), "me")
    train_here(store, run_id)
    told = " ".join(r["message"] for r in of_kind(store.history(run_id), "notice"))
    assert "1 of 13 prompts was too long" in told
    assert "shares its matrix with the embedding" in told


def test_pairs_are_split_between_lines():
    found = split(corpus_of("answers"), 0.25)
    assert [text.count("\n") for text in found] == [9, 3] and "".join(found) == as_lines(PAIRS)


def test_the_hash_of_a_run_knows_the_weights_of_its_start_and_not_its_name(start):
    made = tuned(start)
    named = replace(made, start=replace(start.start, name="other", folder="/elsewhere"))
    assert spec_hash(made) == spec_hash(named)
    assert spec_hash(made) != spec_hash(replace(made, start=replace(start.start, identity="0" * 16)))
    assert spec_hash(made) != spec_hash(replace(made, start=None))


def test_more_seeds_start_from_the_same_model_and_count_as_the_same_run(store, start):
    one = store.create(tuned(start, "answers"), "me")
    shutil.rmtree(start.start.folder)
    (again,) = more_seeds(store.info(one), [], 1)
    two = store.create(again, "me")
    three = store.create(replace(again, start=None), "me")
    found = [settings(store.info(run_id)) for run_id in (one, two, three)]
    assert same_but_seed(found) == [[0, 1], [2]]
    assert "start" in [row.name for row in differences(found)]
    train_here(store, two)
    assert evals(store, two)[0]["val_loss"] > 0


def test_a_run_can_start_from_a_checkpoint_of_another_run(store, start):
    one = store.create(tuned(start, "answers"), "me")
    train_here(store, one)
    found = describe(store.latest_checkpoint(one), "checkpoint", "Tuned")
    assert found.start.identity != start.start.identity
    two = store.create(tuned(found, "preferences"), "me")
    assert train_here(store, two).state == "finished"


# ---- published and large models


def test_a_published_model_is_a_start(store, tmp_path):
    found = describe(write_llama(tmp_path / "Tiny"), "hub", "Tiny")
    assert found.start.identity == load_folder(tmp_path / "Tiny").identity
    check_start(found.start, found.model, found.tokenizer)
    run_id = store.create(tuned(found, "answers", last_blocks=1, framing="chat", row_length=48), "me")
    folder = train_here(store, run_id).folder
    shutil.rmtree(tmp_path / "Tiny")
    before = start_of_run(folder, read_json(folder / "run.json"))
    after = load_checkpoint(store.latest_checkpoint(run_id))
    assert after.tokenizer.hash == found.tokenizer.hash == before.tokenizer.hash
    assert torch.equal(before.model.embedding.weight, after.model.embedding.weight)
    assert not torch.equal(before.model.blocks[1].mlp.up.weight, after.model.blocks[1].mlp.up.weight)
    assert evals(store, run_id)[-1]["train_loss"] < evals(store, run_id)[0]["train_loss"]


def test_a_published_masked_model_learns_a_text_on(store, tmp_path):
    found = describe(write_bert(tmp_path / "Bert"), "hub", "Bert")
    run_id = store.create(tuned(found, row_length=24), "me")
    assert train_here(store, run_id).state == "finished"
    assert store.info(run_id).measure == "mlm"


def test_a_published_masked_model_is_never_given_a_control_token_at_random(store, tmp_path):
    """M04: it has 5 of them among its ids; a random token is an ordinary one."""
    found = describe(write_bert(tmp_path / "Bert"), "hub", "Bert")
    run_id = store.create(tuned(found, row_length=24, batch_size=64, mask_prob=0.9), "me")
    folder = store.info(run_id).folder
    training = set_up(folder, read_json(folder / "run.json"), print).training()
    given = {i for _ in range(20) for i in training.draw().inputs.unique().tolist()}
    training.close()
    assert len(given) > 200
    assert given & found.tokenizer.control_ids == {found.tokenizer.mask_id}


def test_of_a_large_start_only_the_name_is_kept_and_of_its_checkpoints_two(store, start, monkeypatch):
    monkeypatch.setattr(tuning_start, "SMALL", 1000)
    run_id = store.create(tuned(start, "preferences", moments=5, steps=25, checkpoint_every=5), "me")
    folder = train_here(store, run_id).folder
    assert not (folder / "start").exists()
    assert [step for step, _ in list_checkpoints(folder)] == [20, 25]
    assert all(load_checkpoint(path).dtype == "float32" for _, path in list_checkpoints(folder))
    told = " ".join(r["message"] for r in of_kind(store.history(run_id), "notice"))
    assert "only the newest 2 checkpoints are kept" in told
    run = read_json(folder / "run.json")
    assert start_of_run(folder, run).identity == start.start.identity
    shutil.rmtree(start.start.folder)
    with pytest.raises(ValueError, match=r"starts from parent, .* is gone\. Put the model back"):
        start_of_run(folder, run)
    run["train"]["steps"] = 28  # what the start gave each answer was kept
    write_json(folder / "run.json", run)
    assert train_here(store, run_id).step == 28


def test_a_large_run_that_does_not_fit_the_disk_is_refused(store, start, monkeypatch):
    monkeypatch.setattr(tuning_start, "SMALL", 1000)
    monkeypatch.setattr(tuning_size, "free_disk", lambda folder: 1000)
    with pytest.raises(ValueError, match="GB of disk"):
        store.create(tuned(start), "me")
    assert store.list() == []


def test_without_any_checkpoint_and_without_its_start_a_run_says_so(store, start, monkeypatch):
    monkeypatch.setattr(tuning_start, "SMALL", 1000)
    run_id = store.create(tuned(start), "me")
    shutil.rmtree(start.start.folder)
    with pytest.raises(ValueError, match="Put the model back"):
        run_folder(store.claim(run_id), report=lambda text: None)
    assert "Put the model back" in store.info(run_id).message


def test_a_run_without_a_start_begins_with_new_weights(store):
    run_id = store.create(spec(), "me")
    info = store.info(run_id)
    run = read_json(info.folder / "run.json")
    assert "start" not in run and start_of_run(info.folder, run) is None
    model = first_model(info.folder, run, info.model, TrainConfig.from_json(run["train"]))
    again = Transformer(info.model, torch.Generator().manual_seed(0))
    assert torch.equal(model.embedding.weight, again.embedding.weight)


# ---- other pages


def test_what_a_preference_run_says_is_measured_against_not_knowing(store, start):
    run_id = store.create(tuned(start, "preferences", learning_rate=1e-2), "me")
    train_here(store, run_id)
    info, records = store.info(run_id), store.history(run_id)
    now = read(records, info.n_choices)
    assert now.start == pytest.approx(math.log(2)) and now.accuracy == evals(store, run_id)[-1]["accuracy"]
    said = verdict(now, info.n_choices, done=True, objective=info.measure, start=info.start)
    assert said.kind in ("learning", "plateau") and "not knowing costs ln 2" in said.words
    first = verdict(read(records, 2, 0), 2, objective="preferences")
    assert first.kind == "start" and "its own reference" in first.words


def test_before_its_first_step_a_run_is_its_start(store, start):
    run_id = store.create(tuned(start), "me")
    train_here(store, run_id)
    now = read(store.history(run_id), LETTERS.vocab_size, 0)
    said = verdict(now, LETTERS.vocab_size, start=store.info(run_id).start)
    assert (
        said.words
        == f"Before the first step this is parent itself: its own loss here is {now.loss:.3f} nats."
    )


def test_a_run_with_a_start_is_on_no_board(store, start):
    for made in (tuned(start), replace(tuned(start), start=None)):
        train_here(store, store.create(made, "me"))
    (board,) = standings(store)
    assert len(board.rows) == 1


def test_losses_of_several_aims_never_share_an_axis(store, start):
    ids = [store.create(tuned(start, aim), "me") for aim in ("text", "answers", "preferences")]
    text, answers, preferences = (settings(store.info(run_id)) for run_id in ids)
    for pair in ((text, answers), (answers, preferences)):
        with pytest.raises(ValueError, match="never share"):
            shared_axis(pair, "val_loss")
    alone = shared_axis([preferences], "bits_per_byte")
    assert alone.quantity == "val_loss" and "Bits per byte needs every token" in alone.reasons[0]


@pytest.mark.parametrize("aim", ["answers", "preferences"])
def test_steps_on_pairs_are_not_taken_apart_as_if_they_were_a_text(store, start, aim):
    run_id = store.create(tuned(start, aim), "me")
    train_here(store, run_id)
    with pytest.raises(ValueError, match="learns from pairs"):
        step_of_run(store.latest_checkpoint(run_id))


def test_one_step_of_the_last_block_moves_only_that(store, start):
    run_id = store.create(tuned(start, last_blocks=1, steps=12, moments=2), "me")
    train_here(store, run_id)
    taken = step_of_run(store.latest_checkpoint(run_id)).take()
    changes = {part.name: part.update for part in taken.parts}
    assert changes["embedding"] == 0 and changes["mlp 1"] > 0
