"""Files that somebody edited, forged or damaged: what they must not do. Found by trials/inputs.py."""

import base64
import io
import json
import math
import zipfile

import pytest
import torch

from engine import bundles, checkpoints, tokenizers
from engine.checkpoint_files import JSON, MODEL, hash_json, sealed
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.compact import unpack
from engine.config import ModelConfig, TrainConfig
from engine.hub_plan import look
from engine.model import Transformer
from engine.pair_files import read_pairs
from engine.reading import curves, number, smooth, table
from engine.records import read_lines, read_records
from engine.run_shape import run_fits
from engine.runs import RunStore
from engine.setting_checks import is_number
from engine.tokenizers import byte_tokenizer, has_known_pattern, tokenizer_from_json, train_bpe
from tests import hub_folders
from tests.engine.small_runs import spec, train_here
from tests.engine.test_bundles import changed_json, unzipped, zipped

HUGE = 10**400  # valid JSON, too large for a float


@pytest.mark.parametrize("value", [HUGE, -HUGE, math.nan, math.inf, True, None, "1"])
def test_what_no_float_holds_is_no_number(value):
    assert not is_number(value) and math.isnan(number(value))
    with pytest.raises(ValueError, match="learning_rate must be a number"):
        TrainConfig(learning_rate=value)


def test_settings_that_are_no_table_are_refused_in_a_sentence():
    for odd in (None, [], 3, "x"):
        with pytest.raises(ValueError, match="ModelConfig needs a table of settings by name"):
            ModelConfig.from_json(odd)


def test_a_sentence_shows_only_the_start_of_a_long_value():
    with pytest.raises(ValueError, match="steps must be a whole number") as refusal:
        TrainConfig(steps=["a"] * 2000)
    assert len(str(refusal.value)) < 250


# ---- records of a run


def test_records_that_run_backwards_are_smoothed_without_an_overflow():
    assert smooth([4.0, 1.0], 1, [10**9, 0]).tolist() == [4.0, 2.5]  # as if both were of one step


def test_lines_that_are_no_records_are_passed_over(tmp_path):
    file = tmp_path / "metrics.jsonl"
    good = {"kind": "notice", "step": 1, "message": "x"}
    odd = [
        None, [], 3, {"kind": "eval"}, {"step": 1}, {"kind": "x", "step": "1"}, {"kind": "x", "step": HUGE},
        {"kind": "x", "step": -1}, {"kind": "step", "step": 1, "loss": "1"}, {"kind": "sample", "step": 1},
        {"kind": "eval", "step": 1, "also": 3}, {"kind": "baseline", "step": 1, "bits_per_byte": "x"},
        {"kind": "step", "step": 1, "loss": HUGE},
    ]  # fmt: skip
    file.write_text(
        "".join(json.dumps(line) + "\n" for line in [*odd, good]) + "rubbish\n" + "[" * 9000 + "\n"
    )
    assert read_records(file)[0] == [good]
    assert len(read_lines(file)[0]) == len(odd) + 1


def test_a_number_that_is_missing_or_not_finite_is_null(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_text(
        '{"kind": "step", "step": 2, "loss": NaN}\n{"kind": "eval", "step": 2, "train_loss": 1e999}\n'
    )
    records = read_records(file)[0]
    assert records[0]["loss"] is None and records[0]["seconds"] == 0.0
    assert records[1]["val_loss"] is None and records[1]["train_loss"] is None
    assert curves(records).steps.tolist() == [2] and table(records)["step"] == [2]


def test_the_mark_of_a_run_that_begins_anew_is_kept(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"kind": "resume", "step": -1}\n')
    assert read_records(file)[0] == [{"kind": "resume", "step": -1}]


# ---- folders of runs


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("run.json", {"created": None}),
        ("run.json", {"created": HUGE}),
        ("run.json", {"name": ["x"]}),
        ("run.json", {"name": "\ud800"}),
        ("run.json", {"owner": 3}),
        ("run.json", {"owner": "ä"}),
        ("run.json", {"corpus": {}}),
        ("run.json", {"group": None}),
        ("run.json", {"also_scored": [1]}),
        ("status.json", {"step": None}),
        ("status.json", {"updated": "x"}),
        ("status.json", {"eta_s": []}),
        ("status.json", {"state": 3}),
    ],
)
def test_an_odd_entry_of_one_run_does_not_take_the_list_of_all_down(store, file, changes):
    good, odd = (store.create(spec(name=name), "me") for name in ("good", "odd"))
    path = store.root / odd / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    assert [info.id for info in RunStore(store.home).list()] == [good]
    assert odd in RunStore(store.home).unreadable()


def test_a_run_of_the_first_version_fits():
    from pathlib import Path

    assert run_fits(json.loads((Path(__file__).parent / "oldest_run" / "run.json").read_text()))


def test_a_link_to_nothing_does_not_break_an_export(store):
    run_id = store.create(spec(), "me")
    train_here(store, run_id)
    weights = next((store.root / run_id).glob(f"checkpoints/*/{MODEL}"))
    weights.unlink()
    weights.symlink_to(weights)
    names = zipfile.ZipFile(io.BytesIO(bundles.export_run(store, run_id))).namelist()
    assert f"checkpoints/{weights.parent.name}/{MODEL}" not in names and "run.json" in names


# ---- zips


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("home"))
    run_id = store.create(spec(), "me")
    train_here(store, run_id)
    return bundles.export_run(store, run_id)


def test_a_zip_that_lacks_its_first_byte_is_refused_in_a_sentence(store, packed):
    with pytest.raises(ValueError, match="damaged"):
        bundles.import_run(store, packed[1:], "you")


def test_a_zip_whose_vocabulary_cuts_by_an_unknown_rule_is_refused(store, packed):
    """A regular expression of a stranger may take years, and holds all of the server meanwhile."""
    files = unzipped(packed)
    evil = {**train_bpe("the cat", 260).to_json(), "pattern": r"(\w+\s?)*\d|[\s\S]"}
    files["tokenizer.json"] = json.dumps(evil).encode()
    with pytest.raises(ValueError, match="by a rule that Loupe doesn't know"):
        bundles.import_run(store, zipped(files), "you")


def test_own_vocabularies_cut_by_a_known_rule():
    assert has_known_pattern(train_bpe("the cat sat", 260)) and has_known_pattern(byte_tokenizer())
    assert has_known_pattern(train_bpe("aaa", 257, pattern=r"[\s\S]+"))
    assert not has_known_pattern(train_bpe("aaa b", 257, pattern=r"\w+"))


def test_a_record_of_a_zip_that_is_no_number_is_refused(store, packed):
    files = unzipped(packed)
    files["metrics.jsonl"] += b'{"kind": "eval", "step": 5, "val_loss": 1' + b"0" * 400 + b"}\n"
    with pytest.raises(ValueError, match="metrics"):
        bundles.import_run(store, zipped(files), "you")


def test_a_zip_with_a_huge_time_is_refused(store, packed):
    with pytest.raises(ValueError, match=r"run\.json"):
        bundles.import_run(store, zipped(changed_json(unzipped(packed), "run.json", created=HUGE)), "you")


# ---- vocabularies


@pytest.mark.parametrize(
    "changes",
    [
        {"merged": None},
        {"merged": [3]},
        {"merged": ["jl\x161"]},
        {"merged": ["YQ=="]},
        {"merged": [""]},
        {"merged": [base64.b64encode(b"th").decode()] * 2},
        {"pattern": 3},
        {"pattern": "("},
        {"pattern": ""},
        {"pattern": r"(?=a)|[\s\S]"},
        {"pattern": "a"},
    ],
)
def test_a_forged_bpe_is_refused_without_pythons_words(changes):
    """An empty match would panic in tiktoken, which no `except Exception` catches."""
    with pytest.raises(ValueError, match="description of this") as refusal:
        tokenizer_from_json({**train_bpe("the cat", 258).to_json(), **changes})
    assert type(refusal.value) is ValueError and "Error" not in str(refusal.value)


def test_a_rule_that_fails_on_some_text_is_a_sentence_and_no_panic():
    """tiktoken panics at an empty match; a panic is no `Exception`."""
    tokenizer = tokenizers._own("odd", {bytes([b]): b for b in range(256)}, r"(?=a)", {})
    with pytest.raises(ValueError, match="it fails on this text"):
        tokenizer.encode("ba")


@pytest.mark.parametrize("alphabet", [["a"], "aa", "\ud800", 3, None])
def test_a_forged_alphabet_is_refused(alphabet):
    with pytest.raises(ValueError, match="another kind than it should be"):
        tokenizer_from_json({"kind": "characters", "alphabet": alphabet})


def test_a_missing_entry_is_named():
    with pytest.raises(ValueError, match="it has no entry 'merged'"):
        tokenizer_from_json({"kind": "bpe", "pattern": "x"})
    for odd in ([], None, {"kind": ["bpe"]}):
        with pytest.raises(ValueError, match="is unknown"):
            tokenizer_from_json(odd)


# ---- checkpoints


def forged(folder, **model):
    """A checkpoint whose settings were changed with all checksums right."""
    tokenizer = byte_tokenizer()
    config = ModelConfig(tokenizer.vocab_size, context_length=8, n_layer=1, n_head=1, d_model=8)
    save_checkpoint(folder, Checkpoint(Transformer(config), tokenizer))
    content = json.loads((folder / JSON).read_bytes())
    content["model"] |= model
    content["model_hash"] = hash_json(content["model"])
    (folder / JSON).write_bytes(sealed(content))
    return folder


@pytest.mark.parametrize(
    "model",
    [
        {"context_length": 1_000_000},
        {"d_model": 999_999, "n_head": 1},
        {"n_layer": 1000},
        {"d_ff": 1_000_000},
        {"context_length": 1_000_000, "d_model": 512, "positions": "sinusoidal"},
        {"context_length": 1_000_000, "d_model": 512, "positions": "rotary"},
    ],
)
def test_settings_that_ask_for_any_memory_are_refused_before_a_model_is_made(tmp_path, model, monkeypatch):
    folder = forged(tmp_path / "one", **model)
    made = []
    monkeypatch.setattr(checkpoints, "Transformer", lambda *a, **k: made.append(a))
    with pytest.raises(ValueError, match=r"fit|refused|can be at most"):
        load_checkpoint(folder)
    assert not made


def test_a_checkpoint_that_was_not_forged_opens(tmp_path):
    assert load_checkpoint(forged(tmp_path / "one")).config.d_model == 8


@pytest.mark.parametrize("changes", [{"generators": [1]}, {"step": None}, {"losses": [None]}, {"model": 3}])
def test_entries_of_another_kind_are_told_in_words(tmp_path, changes):
    folder = forged(tmp_path / "one")
    content = {**json.loads((folder / JSON).read_bytes()), **changes}
    (folder / JSON).write_bytes(sealed(content))
    with pytest.raises(ValueError, match="can't be opened") as refusal:
        load_checkpoint(folder)
    assert "object" not in str(refusal.value) and "Error" not in str(refusal.value)


def test_rounded_weights_of_one_row_do_not_fill_the_memory():
    """(N,) times a scale (N,1) would be N × N numbers."""
    with pytest.raises(ValueError, match="without a scale"):
        unpack({"x": torch.zeros(5, dtype=torch.int8), "x.scale": torch.ones(5, 1)})


# ---- other files


def test_a_first_line_longer_than_any_header_is_no_table():
    with pytest.raises(ValueError, match="Line 1"):
        read_pairs('"' * 200_001)


def test_a_link_to_itself_in_a_published_folder_is_refused(tmp_path):
    folder = hub_folders.write_llama(tmp_path / "llama")
    for name in ("config.json", "model.safetensors"):
        (folder / name).rename(folder / "aside")
        (folder / name).symlink_to(folder / name)
        with pytest.raises(ValueError, match=name):
            look(folder)
        (folder / name).unlink()
        (folder / "aside").rename(folder / name)
    assert look(folder).n_weights > 0


def test_a_published_number_that_no_float_holds_is_refused(tmp_path):
    folder = hub_folders.write_llama(tmp_path / "llama")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "rope_theta": HUGE}))
    with pytest.raises(ValueError, match="rope_theta"):
        look(folder)


def test_a_damaged_tokenizer_is_told_without_pythons_words(tmp_path):
    from engine.hub_tokenizer import load_tokenizer

    folder = hub_folders.write_llama(tmp_path / "llama")
    content = json.loads((folder / "tokenizer.json").read_text())
    for changes in ({"model": {}}, {"model": 3}, {"added_tokens": 1.5}, {"added_tokens": [3]}):
        (folder / "tokenizer.json").write_text(json.dumps({**content, **changes}))
        with pytest.raises(ValueError) as refusal:
            load_tokenizer(folder, 400)
        assert "Error" not in str(refusal.value) and "object" not in str(refusal.value)


@pytest.mark.parametrize("text", ["a\tb\n" * 100_001, "prompt,answer\n" + "a,b\n" * 100_001])
def test_more_pairs_than_can_be_learned_are_refused_before_they_are_read(text):
    with pytest.raises(ValueError, match="more than 100,000 rows"):
        read_pairs(text)
    assert len(read_pairs('prompt,answer\n"a\n\nb",c\n')) == 1  # lines within a text are no rows


def test_a_class_whose_owner_is_no_hash_is_none(tmp_path):
    from engine.classes import ClassStore

    store = ClassStore(tmp_path)
    code = store.create("me", "A class")
    path = tmp_path / "classes" / f"{code}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "owner_hash": "ä"}))
    assert ClassStore(tmp_path).get(code) is None and ClassStore(tmp_path).of("me") == []
