"""Run folders of the oldest version still open and go on; those of a newer one are refused in a sentence.

`oldest_run` was made by the first version of Loupe that trained runs: the numbers below are what that version
itself computed from it.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch

from engine import new_runs
from engine.bundles import export_run, import_run
from engine.checkpoints import load_checkpoint
from engine.run_format import FORMAT
from engine.runs import RunStore
from tests.engine.small_runs import of_kind, spec, train_here

OLDEST, ID = Path(__file__).parent / "oldest_run", "20261130-105545-9ab5bf"
OWNER = "a" * 32
LOGITS = [  # after "the cat ", as the oldest version gave them
    0.04690831899642944, 0.1381402313709259, 0.09096359461545944, 0.032612528651952744, 0.0537874661386013,
    -0.04207904636859894, -0.011899817734956741, -0.02287539653480053, -0.020084628835320473,
    0.05587467923760414, -0.05031615495681763, -0.21323934197425842, -0.04424303025007248,
    0.019266176968812943, 0.1010623350739479, 0.13776083290576935,
]  # fmt: skip
GOES_ON = {5: 2.7168967723846436, 6: 2.694131374359131}  # its losses of the steps after the checkpoint
IN_THE_END = 2.7152915000915527  # its validation loss at step 6


@pytest.fixture
def oldest(store: RunStore) -> str:
    shutil.copytree(OLDEST, store.root / ID)
    return ID


def rewrite(store: RunStore, run_id: str, **changes: object) -> None:
    path = store.root / run_id / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_new_run_says_its_format_and_holds_what_format_1_has_held_from_the_start(store: RunStore) -> None:
    """Who adds a name that older versions would misread takes the next number, see `engine.run_format`."""
    folder = store.root / store.create(spec(), "me")
    run, old = json.loads((folder / "run.json").read_text()), json.loads((OLDEST / "run.json").read_text())
    assert run["format"] == FORMAT == 1 == old["format"]
    assert set(old) <= set(run) and set(run) - set(old) == {"language", "group", "label", "also_scored"}
    for part in ("corpus", "tokenizer"):
        assert set(old[part]) <= set(run[part])
    assert {p.name for p in folder.iterdir()} <= {
        "run.json", "status.json", "corpus.txt", "tokenizer.json", "also",
    }  # fmt: skip


def test_the_oldest_run_is_read_as_it_was_written(store: RunStore, oldest: str) -> None:
    (info,) = store.list(OWNER)
    assert (info.id, info.name, info.state, info.step, info.steps) == (ID, "Oldest cats", "stopped", 4, 6)
    assert info.has_checkpoint and info.can_resume and not info.kept and not info.stopped_by_teacher
    assert [r["step"] for r in of_kind(store.history(oldest), "step")] == [1, 2, 3, 4]
    checkpoint = load_checkpoint(store.latest_checkpoint(oldest))
    checkpoint.model.eval()
    ids = checkpoint.tokenizer.encode("the cat ")
    with torch.no_grad():
        logits = checkpoint.model(torch.tensor([ids]))[0, -1].tolist()
    assert checkpoint.step == 4 and logits == pytest.approx(LOGITS, abs=1e-5)


def test_the_oldest_run_goes_on_to_its_end(store: RunStore, oldest: str) -> None:
    assert train_here(store, oldest).state == "finished"
    steps = {r["step"]: r["loss"] for r in of_kind(store.history(oldest), "step")}
    assert {step: steps[step] for step in GOES_ON} == pytest.approx(GOES_ON, abs=1e-4)
    assert of_kind(store.history(oldest), "eval")[-1]["val_loss"] == pytest.approx(IN_THE_END, abs=1e-4)


def test_the_oldest_run_can_be_taken_away_brought_in_renamed_kept_and_deleted(
    store: RunStore, oldest: str
) -> None:
    twin = import_run(store, export_run(store, oldest), "me")
    assert store.info(twin).step == 4
    store.rename(oldest, OWNER, "Old")
    store.keep(oldest, OWNER, True)
    assert (store.info(oldest).name, store.info(oldest).kept) == ("Old", True)
    store.delete(oldest, OWNER)
    assert [info.id for info in store.list()] == [twin]


def test_a_newer_run_is_refused_with_both_numbers_and_the_way_out_and_left_as_it_is(
    store: RunStore, oldest: str
) -> None:
    rewrite(store, oldest, format=FORMAT + 1, model={"something": "new"})
    before = {p: p.read_bytes() for p in (store.root / oldest).rglob("*") if p.is_file()}
    says = f"format {FORMAT + 1}.*up to {FORMAT}.*newer Loupe, or update"
    asked = [
        lambda: store.info(oldest),
        lambda: store.history(oldest),
        lambda: store.stop(oldest, OWNER),
        lambda: store.resume(oldest, OWNER),
        lambda: store.step(oldest, OWNER),
        lambda: store.delete(oldest, OWNER),
        lambda: store.delete_for_teacher(oldest),
        lambda: store.rename(oldest, OWNER, "mine"),
        lambda: store.claim(oldest),
        lambda: export_run(store, oldest),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match=says):
            ask()
    store.stop_for_teacher(oldest)
    assert store.list() == [] and store.unreadable() == [oldest]
    assert before == {p: p.read_bytes() for p in (store.root / oldest).rglob("*") if p.is_file()}


def test_a_newer_run_that_waits_is_not_begun_by_an_older_version(store: RunStore, oldest: str) -> None:
    rewrite(store, oldest, format=2)
    status = store.root / oldest / "status.json"
    status.write_text(json.dumps({"state": "queued", "queued_at": 1.0, "step": 4}))
    assert new_runs.may_begin(store.home)
    store.pump()
    assert json.loads(status.read_text())["state"] == "queued"


@pytest.mark.parametrize("found", [None, "2", True, 0, -1])
def test_a_number_that_is_none_is_no_newer_format(store: RunStore, oldest: str, found: object) -> None:
    rewrite(store, oldest, format=found)
    assert store.info(oldest).step == 4


def test_a_zip_with_a_newer_run_is_refused(store: RunStore, oldest: str, monkeypatch) -> None:
    packed = export_run(store, oldest)
    monkeypatch.setattr("engine.run_format.FORMAT", 0)
    with pytest.raises(ValueError, match="format 1, which a newer Loupe wrote"):
        import_run(store, packed, "me")
    assert [p.name for p in store.root.iterdir()] == [oldest]
