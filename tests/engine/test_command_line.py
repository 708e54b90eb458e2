"""`python -m engine.training`: its options, the run they make, and its one-sentence errors."""

from dataclasses import fields

import pytest

from engine import command_line
from engine.checkpoints import load_checkpoint
from engine.config import BORROWED, ModelConfig, TrainConfig
from engine.corpus import stories
from engine.folders import read_json
from engine.parallel import Processes
from engine.run_options import MODEL_SETTINGS, TRAIN_SETTINGS, make_spec, parser, read_options
from engine.runs import RunStore
from engine.training import moment_steps
from tests.engine.small_runs import spec, train_here

TEXT = "the cat sat on the mat, the dog sat on the log.\n" * 60


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "cats.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LOUPE_HOME", str(tmp_path / "elsewhere"))  # and put back what --home changes
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    return tmp_path / "home"


def described(*arguments):
    return make_spec(read_options(list(map(str, arguments))))[0]


def test_every_setting_has_an_option_with_help():
    assert {*MODEL_SETTINGS, "vocab_size"} == {f.name for f in fields(ModelConfig)} - set(BORROWED)
    assert set(TRAIN_SETTINGS) == {f.name for f in fields(TrainConfig)}
    help_text = parser().format_help()
    for name in (*MODEL_SETTINGS, *TRAIN_SETTINGS):
        assert f"--{name.replace('_', '-')}" in help_text


def test_settings_reach_the_run(text_file):
    made = described(
        "--text", text_file, "--tokenizer", "characters", "--size", "nano", "--n-layer", 1,
        "--norm", "rmsnorm", "--no-bias", "--qk-norm", "--dropout", 0.25, "--objective", "mlm", "--steps", 70,
        "--batch-size", 3,
        "--learning-rate", "1e-3", "--optimizer", "muon", "--seed", 7, "--moments", 5, "--mask-prob", 0.3,
        "--precision", "float32", "--name", "Mine", "--device", "cpu", "--val-share", 0.2,
    )  # fmt: skip
    assert (made.name, made.device, made.corpus.name, made.val_share) == ("Mine", "cpu", "cats.txt", 0.2)
    assert made.corpus.text == TEXT
    model, train = made.model, made.train
    assert (model.n_layer, model.n_head, model.d_model, model.context_length) == (1, 2, 64, 64)  # nano's
    assert (model.norm, model.bias, model.qk_norm, model.dropout) == ("rmsnorm", False, True, 0.25)
    assert model.objective == "mlm" and model.vocab_size == len(set(TEXT)) + 1  # and the mask
    assert (train.steps, train.batch_size, train.learning_rate, train.optimizer) == (70, 3, 1e-3, "muon")
    assert (train.seed, train.moments, train.mask_prob, train.precision) == (7, 5, 0.3, "float32")


def test_what_is_not_said_is_as_on_the_training_page(text_file):
    made = described("--text", text_file)
    assert (made.model.n_layer, made.model.d_model, made.model.positions) == (3, 96, "rotary")
    train = made.train
    assert (train.steps, train.moments, train.aligned_share) == (600, 24, 0.0)
    assert (train.optimizer, train.learning_rate) == ("muon", 1e-2)
    assert (train.eval_every, train.checkpoint_every) == (25, 120)
    assert described("--text", text_file, "--optimizer", "adamw").train.learning_rate == 4e-3
    about_stories = described("--steps", 30)
    assert about_stories.corpus == stories() and about_stories.train.aligned_share == 0.5
    assert about_stories.sample_prompt.startswith("Once upon a time")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Name a run's folder, or a text with --text, or a model with --start."),
        (["--lerning-rate", "3"], "There is no setting --lerning-rate. Did you mean --learning-rate?"),
        (["--step", "3"], "There is no setting --step. Did you mean --steps?"),
        (["--wholly-unknown"], "There is no setting --wholly-unknown. python"),
        (["--steps", "many"], "Argument --steps: invalid int value: 'many'."),
        (["--size", "huge"], "Argument --size: invalid choice: 'huge'"),
        (["somewhere", "--seed", "1", "--n-layer", "2"], "already: leave out --n-layer, --seed."),
    ],
)
def test_what_it_does_not_understand_is_one_sentence(arguments, sentence):
    with pytest.raises(SystemExit) as caught:
        read_options(arguments)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).endswith("--help lists all settings.")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--text", "nowhere.txt"], "There is no text file nowhere.txt."),
        (["--tokenizer", "gpt9"], "No tokenizer is called gpt9. Known: bpe, characters, bytes, gpt2"),
        (["--tokenizer", "bytes", "--vocab-size", "300"], "--vocab-size is for bpe"),
        (["--vocab-size", "0"], "0"),
        (["--steps", "0"], "steps must be a whole number of at least 1, not 0."),
        (["--n-head", "5"], "d_model 96 is not divisible by n_head 5."),
    ],
)
def test_what_can_not_be_is_one_sentence(home, arguments, sentence):
    with pytest.raises(SystemExit) as caught:
        command_line.main(["--home", str(home), *arguments])
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert RunStore(home).list() == []


def test_a_run_from_the_shell(home, text_file, capsys):
    options = [
        "--tokenizer",
        "characters",
        "--size",
        "nano",
        "--n-layer",
        "1",
        "--steps",
        "12",
        "--moments",
        "3",
    ]
    command_line.main(["--text", str(text_file), "--home", str(home), *options])
    store = RunStore(home)
    (info,) = store.list()
    assert (info.state, info.step) == ("finished", 12)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Run folder: {info.folder}"
    assert f"/training?run={info.id}" in lines[1]
    assert lines[2].startswith("step 0/12: train ") and lines[-1] == "finished"
    assert [step for step, _ in store.checkpoints(info.id)] == moment_steps(12, 3) == [0, 2, 12]

    # And longer, in the same folder: the new total is that of run.json from then on.
    command_line.main([str(info.folder), "--steps", "15"])
    assert (store.info(info.id).step, store.info(info.id).steps) == (15, 15)
    assert load_checkpoint(store.latest_checkpoint(info.id)).step == 15
    with pytest.raises(SystemExit, match="has done 15 of 15 steps. Give more steps"):
        command_line.main([str(info.folder), "--steps", "15"])
    assert store.info(info.id).state == "finished"


def test_too_little_text_to_check_with_is_said(home, tmp_path, capsys):
    path = tmp_path / "short.txt"
    path.write_text("the cat sat on the mat, the dog sat on the log, and that was that.\n" * 2)
    options = ["--tokenizer", "characters", "--size", "nano", "--steps", "2"]
    command_line.main(["--text", str(path), "--home", str(home), *options])
    assert capsys.readouterr().out.startswith("No validation: the last 10% of this text is 13 tokens")


def test_the_folder_of_a_run_is_trained(tmp_path, capsys):
    store = RunStore(tmp_path / "home")
    one, two = store.create(spec(), "me"), store.create(spec(), "me")
    command_line.main([str(store.info(one).folder)])
    train_here(store, two)
    losses = [[r["loss"] for r in store.history(i) if r["kind"] == "step"] for i in (one, two)]
    assert losses[0] == losses[1] and len(losses[0]) == 30
    assert "follow it" not in capsys.readouterr().out


def test_a_longer_total_is_not_written_while_another_process_trains_it(tmp_path):
    store = RunStore(tmp_path / "home")
    run_id = store.create(spec(), "me")
    folder = store.claim(run_id)
    with pytest.raises(SystemExit, match="is being trained by another process"):
        command_line.main([str(folder), "--steps", "99"])
    assert read_json(folder / "run.json")["train"]["steps"] == 30


def test_of_several_processes_one_complains(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(SystemExit) as caught:
        command_line.main(["--unknown"])
    assert caught.value.code == 2 and capsys.readouterr().err == ""


def test_the_others_leave_when_process_0_could_not_make_the_run(monkeypatch):
    monkeypatch.setattr(Processes, "tell", lambda self, text="": "")
    monkeypatch.setattr(command_line, "set_up", lambda *a, **k: pytest.fail("there is nothing to train"))
    command_line.accompany(Processes(1, 2))
