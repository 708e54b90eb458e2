"""`python -m engine.training --start`: which run it makes, and what it refuses."""

import json

import pytest

from engine.command_line import main
from engine.run_options import make_spec, read_options
from engine.runs import RunStore
from engine.start_options import PRETRAINED, find_start
from engine.tuning_plan import N_HELD_OUT, N_PAIRS, RATES
from tests.hub_folders import write_llama


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LOUPE_HOME", str(tmp_path))
    return tmp_path


def spec_of(*options):
    return make_spec(read_options(options))[0]


def test_a_run_on_a_text_file_from_a_shipped_model(home):
    file = home / "mine.txt"
    file.write_text("A text of my own, line by line.\n" * 60)
    made = spec_of("--start", "stories-clm", "--text", str(file), "--last-blocks", "2", "--row-length", "32")
    assert (made.start.name, made.start.kind) == ("stories-clm", "checkpoint")
    assert made.start.folder == str(PRETRAINED / "stories-clm")
    assert (made.train.aim, made.train.last_blocks, made.train.row_length) == ("text", 2, 32)
    assert made.train.learning_rate == RATES["text"] and made.model.d_model == 128
    assert made.corpus.name == "mine.txt" and made.val_share == 0.1


@pytest.mark.parametrize("aim", ["answers", "preferences"])
def test_built_in_pairs(home, aim):
    made = spec_of("--start", "stories-clm", "--aim", aim, "--steps", "7", "--beta", "0.3")
    texts = made.corpus.text, made.corpus.val_text
    assert [text.count("\n") for text in texts] == [N_PAIRS[aim], N_HELD_OUT]
    assert (made.train.aim, made.train.steps, made.train.beta) == (aim, 7, 0.3)
    made.check()


def test_pairs_from_a_file_and_the_whole_way(home, capsys):
    file = home / "pairs.csv"
    file.write_text("prompt,answer\n" + "".join(f"Say {c}.,{c}!\n" for c in "abcdefghij"))
    model = write_llama(home / "models" / "Tiny")
    options = ["--start", "Tiny", "--aim", "answers", "--pairs", str(file), "--framing", "chat"]
    main([*options, "--steps", "2", "--eval-rows", "2", "--batch-size", "2", "--home", str(home)])
    (info,) = RunStore(home).list()
    assert (info.state, info.start, info.measure) == ("finished", "Tiny", "answers"), capsys.readouterr().out
    about = json.loads((info.folder / "run.json").read_text())
    assert about["start"]["folder"] == str(model) and about["corpus"]["pairs"] == 9
    again = find_start(str(info.folder))  # a run is a start, too: its newest checkpoint
    assert again.start.folder.endswith("0000002")


@pytest.mark.parametrize(
    "options, why",
    [
        (["--start", "nothing"], "There is no model nothing. Give a shipped one (english-clm, stories-clm"),
        (
            ["--start", "stories-clm", "--n-layer", "2", "--size", "nano"],
            "leave out --size, --n-layer",
        ),
        (["--text", "stories", "--pairs", "x"], "--pairs needs --aim answers"),
        (["--start", "stories-clm", "--aim", "answers", "--text", "stories"], "leave out --text"),
        (["--aim", "preferences"], "needs a model to --start from"),
        (["--start", "stories-clm", "--aim", "answers", "--pairs", "nowhere"], "There is no file nowhere"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_sentence(home, options, why):
    with pytest.raises(ValueError) as caught:
        make_spec(read_options(options))
    assert why in str(caught.value)


def test_a_damaged_line_is_named(home):
    file = home / "pairs.jsonl"
    file.write_text('{"prompt": "a", "answer": "b"}\n{"prompt": "a"\n')
    with pytest.raises(ValueError, match="Line 2 is not valid JSON"):
        spec_of("--start", "stories-clm", "--aim", "answers", "--pairs", str(file))
