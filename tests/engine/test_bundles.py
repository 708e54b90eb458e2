"""A run as a zip and back: the same numbers, and nothing that a stranger's zip could do."""

import hashlib
import io
import json
import stat
import time
import zipfile
from dataclasses import replace

import pytest

from engine import bundle_zip, run_session
from engine.bundle_zip import CONTENTS, read_bundle
from engine.bundles import export_run, import_run
from engine.checkpoints import load_checkpoint
from engine.runs import RunStore
from tests.engine.small_runs import TEXT, losses, of_kind, same_weights, spec, train_here


def half_way(store):
    """A run of 50 steps that was stopped at step 33; more than two moments are kept."""
    one = spec(steps=50, moments=5)
    run_id = store.create(replace(one, also_scored={"other": TEXT[:300]}, group="g", label="l"), "me")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_session.Run, "stop_asked", lambda run: run._training.step >= 33)
        train_here(store, run_id)
    return run_id


@pytest.fixture
def half(store):
    return half_way(store)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The zip of such a run."""
    store = RunStore(tmp_path_factory.mktemp("home"))
    return export_run(store, half_way(store))


@pytest.fixture
def files(data):
    return unzipped(data)


def unzipped(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(files, seal=True, links=(), how=zipfile.ZIP_DEFLATED):
    """A zip of these files; with `seal` its list of contents is made to fit."""
    files = dict(files)
    if seal:
        contents = json.loads(files[CONTENTS])
        contents["files"] = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in files.items()
            if name != CONTENTS
        }
        files[CONTENTS] = json.dumps(contents).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", how) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = how
            if name in links:
                entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, data)
    return packed.getvalue()


def changed_json(files, name, /, **changes):
    return {**files, name: json.dumps({**json.loads(files[name]), **changes}).encode()}


def test_the_imported_run_goes_on_to_the_same_losses(store, half):
    data = export_run(store, half)
    copy = import_run(store, data, "you")
    assert copy != half
    before = store.info(copy)
    assert (before.state, before.step, before.steps, before.name) == ("stopped", 33, 50, "Cats")
    assert before.owned_by("you") and not before.owned_by("me") and before.imported
    assert (before.group, before.label, before.also_scored) == ("g", "l", ("other",))
    assert before.message == "Imported at step 33. It can go on from there."
    assert store.history(copy) == store.history(half)
    moments = [[(s, load_checkpoint(p).dtype) for s, p in store.checkpoints(i)] for i in (half, copy)]
    assert (
        moments[0] == moments[1] and [dtype for _, dtype in moments[0]].count("int8") == len(moments[0]) - 2
    )
    for run_id in (half, copy):
        train_here(store, run_id)
    assert losses(store, copy) == losses(store, half)
    assert (
        of_kind(store.history(copy), "eval")[-1]["also"] == of_kind(store.history(half), "eval")[-1]["also"]
    )
    assert same_weights(store, copy, half)
    again = import_run(store, data, "you")  # never onto another
    assert len({again, copy, half}) == 3 and store.info(half).owned_by("me")


def test_nothing_tells_whose_it_is(store, half):
    data = export_run(store, half)
    files = unzipped(data)
    assert store.info(half).owner_hash.encode() not in b"".join(files.values())
    assert set(json.loads(files["run.json"])) & {"owner", "spec_hash"} == set()
    assert b"50 steps" in files["README.txt"]
    assert not any(name.startswith(("worker", "status")) for name in files)


def test_a_run_can_be_exported_while_it_trains(store):
    """Between two steps, again and again: each zip can be imported and goes on to the same end."""
    run_id, taken = store.create(spec(moments=8), "me"), []
    real = run_session.Run._take

    def take(self, event):
        real(self, event)
        if event.step % 7 == 0:
            taken.append(export_run(store, run_id))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_session.Run, "_take", take)
        train_here(store, run_id)
    for data in taken[::3]:
        copy = import_run(store, data, "you")
        if store.info(copy).step < 30:
            train_here(store, copy)
        assert losses(store, copy) == losses(store, run_id)


def test_half_a_record_is_not_exported(store, half):
    with open(store.root / half / "metrics.jsonl", "a") as file:
        file.write('{"kind": "step", "ste')
    assert unzipped(export_run(store, half))["metrics.jsonl"].endswith(b"}\n")


def test_a_damaged_checkpoint_is_left_out(store, half):
    step, path = store.checkpoints(half)[0]
    weights = path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    copy = import_run(store, export_run(store, half), "you")
    assert [s for s, _ in store.checkpoints(copy)] == [s for s, _ in store.checkpoints(half) if s != step]


# ---- what is refused


def test_what_is_no_zip_of_ours(store, files):
    for packed, words in (
        (b"", "no zip"),
        (b"PK\x03\x04 and then nothing", "no zip"),
        (zipped({"a.txt": b"x"}, seal=False), "no part of a run"),
        (zipped({}, seal=False), "no run that Loupe exported: it has no run.json"),
        (zipped({k: v for k, v in files.items() if k != "corpus.txt"}), "it has no corpus.txt"),
        (zipped(changed_json(files, CONTENTS, format=2)), "has format 2, and this version reads format 1"),
        (zipped(changed_json(files, CONTENTS, kind="?")), "says something else"),
        (zipped({**files, CONTENTS: b"{"}, seal=False), "contents.json is not valid JSON"),
        (zipped({**files, CONTENTS: b"[" * 100_000}, seal=False), "contents.json is not valid JSON"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            import_run(store, packed, "you")
        assert "\n" not in str(caught.value)
    assert list(store.root.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize(
    "name",
    ["../run.json", "/etc/passwd", "checkpoints/../../x", "checkpoints\\0000010\\model.safetensors",
     "C:run.json", "checkpoints/0000010/evil.py", "checkpoints/0000010/.model.8bit", "stop",
     "status.json", "run.json\n", "also/../run.json", "./run.json"],
)  # fmt: skip
def test_names_that_lead_elsewhere(store, files, name):
    with pytest.raises(ValueError, match="no part of a run, so it is refused"):
        import_run(store, zipped({**files, name: b"x"}), "you")


@pytest.mark.parametrize("name", ["model.pt", "checkpoints/0000010/pytorch_model.bin", "x.pkl"])
def test_pickles(store, files, name):
    with pytest.raises(ValueError, match="a pickle file, which could run code"):
        import_run(store, zipped({**files, name: b"x"}), "you")


def test_links_doubles_and_locked_files(store, files, data):
    with pytest.raises(ValueError, match="'corpus.txt' is a link or a device"):
        import_run(store, zipped({**files, "corpus.txt": b"/etc/passwd"}, links=("corpus.txt",)), "you")
    twice = io.BytesIO(data)
    with zipfile.ZipFile(twice, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("corpus.txt", b"other")
    with pytest.raises(ValueError, match="holds 'corpus.txt' twice"):
        import_run(store, twice.getvalue(), "you")
    locked = bytearray(data)
    at = locked.find(b"PK\x01\x02")
    locked[at + 8] |= 1  # the flag for a password
    with pytest.raises(ValueError, match="is encrypted"):
        import_run(store, bytes(locked), "you")


def test_bombs(store, files, monkeypatch):
    with pytest.raises(ValueError, match="times as large. A run is at most 100 times"):
        import_run(store, zipped({**files, "metrics.jsonl": b" " * 60_000_000}), "you")
    many = {**files, **{f"also/{n:016x}.txt": b"x" for n in range(bundle_zip.MOST_FILES)}}
    with pytest.raises(ValueError, match="a run has at most 1,000"):
        import_run(store, zipped(many, how=zipfile.ZIP_STORED), "you")
    with pytest.raises(ValueError, match="too many files"):
        read_bundle(b"PK\x01\x02" * 3000)
    monkeypatch.setattr(bundle_zip, "MOST_BYTES", 10_000)
    with pytest.raises(ValueError, match="MB; the limit is"):
        import_run(store, zipped(files), "you")


def test_a_file_that_is_longer_than_it_says(store, files):
    """Its length stands in two places; a reader that believed the first would fill the disk."""
    lying = bytearray(zipped(files, how=zipfile.ZIP_STORED))
    at = lying.find(b"PK\x01\x02", lying.rfind(b"corpus.txt") - 60)
    lying[at + 24 : at + 28] = (5).to_bytes(4, "little")  # unpacked length in the directory
    with pytest.raises(ValueError, match="corpus.txt (is damaged|has another length)"):
        import_run(store, bytes(lying), "you")


def test_every_changed_byte_is_noticed(store, files):
    for name in files:
        if name == CONTENTS:
            continue
        changed = {**files, name: files[name][:-1] + bytes([files[name][-1] ^ 1])}
        with pytest.raises(ValueError, match=f"damaged: {name} is not what was exported"):
            import_run(store, zipped(changed, seal=False), "you")
    fewer = {name: data for name, data in files.items() if name != "metrics.jsonl"}
    with pytest.raises(ValueError, match="doesn't hold the files that its contents.json lists"):
        import_run(store, zipped(fewer, seal=False), "you")


def test_what_fits_its_checksum_but_makes_no_sense(store, files):
    run = json.loads(files["run.json"])
    kept = next(name for name in files if name.endswith("model.safetensors"))
    description = kept.replace("model.safetensors", "checkpoint.json")
    large = {**run["model"], "vocab_size": 16, "d_model": 1 << 19}
    for changes, words in (
        ({kept: files[kept][:-1] + b"!"}, "damaged"),
        ({kept: b"rubbish"}, "would have [0-9,]+ weights, but the checkpoint 0000000 holds 7 bytes"),
        ({description: b"{}"}, "is not one of Loupe's checkpoints"),
        ({"corpus.txt": b"another text " * 90}, "its text is not the one that the run learned from"),
        ({"corpus.txt": b"\xff\xfe"}, "not UTF-8"),
        (changed_json(files, "run.json", model={}), "needs a value for vocab_size"),
        (changed_json(files, "run.json", model=large), "its run would have [0-9,]+ (weights|numbers)"),
        (
            changed_json(files, "run.json", model={**run["model"], "n_layer": 2}),
            "of another model than the run",
        ),
        (changed_json(files, "run.json", train={**run["train"], "batch_size": 10**9}), "at most 65,536"),
        (
            changed_json(files, "run.json", train={**run["train"], "steps": -1}),
            "steps must be a whole number",
        ),
        (
            changed_json(files, "run.json", train={**run["train"], "steps": 10**30}),
            "steps can be at most 10,000,000",
        ),
        (changed_json(files, "run.json", created=10**400), "its run.json"),
        (changed_json(files, "run.json", created="yesterday"), "is not what Loupe writes"),
        (changed_json(files, "run.json", name=["x"]), "is not what Loupe writes"),
        (changed_json(files, "run.json", corpus=None), "an entry of its run.json is not what Loupe writes"),
        (changed_json(files, "run.json", also_scored={}), "is missing or unknown"),
        ({"metrics.jsonl": b'{"kind": "step", "step": 1, "loss": "low"}\n'}, "a record of its metrics.jsonl"),
        ({"metrics.jsonl": b'{"kind": "eval", "step": "1"}\n'}, "a record of its metrics.jsonl"),
        ({"tokenizer.json": b"{}"}, "okenizer"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            import_run(store, zipped({**files, **changes}), "you")
        assert len(str(caught.value)) < 400
    assert list(store.root.iterdir()) == []


@pytest.mark.parametrize("created", [1e18, -1e18, 10**20])
def test_a_time_that_no_calendar_has_becomes_one_that_it_has(store, files, created):
    run_id = import_run(store, zipped({**files, **changed_json(files, "run.json", created=created)}), "you")
    assert 0 <= store.info(run_id).created <= time.time()


def test_a_moment_under_another_name_is_noticed(store, files):
    moved = {name.replace("0000033", "0000044"): data for name, data in files.items()}
    with pytest.raises(ValueError, match="checkpoint 0000044 is of step 33"):
        import_run(store, zipped(moved), "you")


def test_a_zip_that_was_unpacked_and_packed_again_is_taken(store, files):
    """Other programs list folders, in another order."""
    again = {"checkpoints/": b"", **dict(reversed(files.items()))}
    assert store.info(import_run(store, zipped(again, seal=False), "you")).step == 33


def test_a_run_that_never_began(store):
    run_id = store.create(spec(), "me")
    copy = import_run(store, export_run(store, run_id), "you")
    assert train_here(store, copy).state == train_here(store, run_id).state == "finished"
    assert losses(store, copy) == losses(store, run_id)
