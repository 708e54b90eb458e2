import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import checkpoint_list, checkpoints
from engine.checkpoint_files import sealed
from engine.checkpoint_list import compact_checkpoint, list_checkpoints
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.folders import checked_name, write_folder
from engine.model import Transformer
from engine.tokenizers import byte_tokenizer, char_tokenizer, train_bpe
from engine.training import CheckpointEvent, NoticeEvent, StepEvent, train

ABC = char_tokenizer("abcdefgh")
REPO = Path(__file__).parents[2]


def small(**changes):
    return Transformer(
        ModelConfig(
            **{"vocab_size": 8, "context_length": 8, "n_layer": 1, "n_head": 2, "d_model": 8, **changes}
        )
    )


def saved(folder, **changes):
    save_checkpoint(folder, Checkpoint(small(), ABC, step=7, **changes))
    return folder


def refused(folder):
    """The message with which a folder is refused; it must be one sentence or two, on one line."""
    with pytest.raises(ValueError) as caught:
        load_checkpoint(folder)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    return message


def forge(folder, **changes):
    """Change the description and set its own checksum right again, as a forger would."""
    path = folder / "checkpoint.json"
    path.write_bytes(sealed({**json.loads(path.read_bytes()), **changes}))


def rewrite_weights(folder, tensors):
    save_file(tensors, folder / "model.safetensors")
    data = (folder / "model.safetensors").read_bytes()
    import hashlib

    forge(
        folder, files={"model.safetensors": {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}}
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_head": False},
        {"positions": "rotary", "norm": "rmsnorm", "activation": "swiglu"},
        {"objective": "mlm", "vocab_size": 9},
    ],
)
def test_a_saved_model_gives_the_same_logits(tmp_path, changes):
    model = Transformer(small(**changes).config, torch.Generator().manual_seed(5))
    config = TrainConfig(steps=9)
    info = {"corpus": "letters", "losses": [1.5, None]}
    save_checkpoint(tmp_path / "one", Checkpoint(model, ABC, step=3, train_config=config, info=info))
    again = load_checkpoint(tmp_path / "one")
    ids = torch.tensor([[1, 5, 2, 7]])
    assert torch.equal(model(ids), again.model(ids))
    assert (again.config, again.step, again.train_config, again.info) == (model.config, 3, config, info)
    assert again.tokenizer.hash == ABC.hash
    assert {p.dtype for p in again.model.parameters()} == {torch.float32}
    assert next(again.model.parameters()).device.type == "cpu"


def test_a_tied_head_is_stored_once_and_tied_again(tmp_path):
    saved(tmp_path / "one")
    assert "head.weight" not in load_file(tmp_path / "one" / "model.safetensors")
    model = load_checkpoint(tmp_path / "one").model
    with torch.no_grad():
        model.embedding.weight[3, 2] = 42.0
    assert model.head.weight[3, 2] == 42.0


def test_a_transposed_weight_can_be_saved(tmp_path):
    model = small()
    with torch.no_grad():
        model.blocks[0].mlp.up.weight = torch.nn.Parameter(torch.randn(8, 32, generator=torch.Generator()).T)
    save_checkpoint(tmp_path / "one", Checkpoint(model, ABC))
    assert torch.equal(
        load_checkpoint(tmp_path / "one").model.blocks[0].mlp.up.weight, model.blocks[0].mlp.up.weight
    )


def test_float16_is_half_as_large_and_loads_as_float32(tmp_path):
    model = small(d_model=64)
    for dtype in ("float32", "float16"):
        save_checkpoint(tmp_path / dtype, Checkpoint(model, ABC), dtype=dtype)
    sizes = [(tmp_path / d / "model.safetensors").stat().st_size for d in ("float32", "float16")]
    assert sizes[1] < 0.55 * sizes[0]
    loaded = load_checkpoint(tmp_path / "float16").model
    assert loaded.embedding.weight.dtype == torch.float32
    assert torch.equal(loaded.embedding.weight, model.embedding.weight.half().float())
    with torch.no_grad():
        model.embedding.weight[0, 0] = 1e6
    with pytest.raises(ValueError, match="embedding.weight are not finite as float16"):
        save_checkpoint(tmp_path / "float16", Checkpoint(model, ABC), dtype="float16")


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_training_goes_on_bit_for_bit_through_the_files(tmp_path, optimizer):
    ids = torch.randint(8, (300,), generator=torch.Generator().manual_seed(1))
    config = TrainConfig(steps=60, batch_size=2, checkpoint_every=5, optimizer=optimizer, warmup_steps=3)
    model, losses = small(dropout=0.2), {}
    for event in train(model, ids, [], config):
        if isinstance(event, StepEvent):
            losses[event.step] = event.loss
        if isinstance(event, CheckpointEvent) and event.step == 5:
            s = event.state
            save_checkpoint(
                tmp_path / "five",
                Checkpoint(
                    model, ABC, step=5, train_config=config, optimizer_state=s["optimizer"],
                    generator_states=s["generators"], losses=s["losses"],
                ),
            )  # fmt: skip
    checkpoint = load_checkpoint(tmp_path / "five")
    events = list(train(checkpoint.model, ids, [], checkpoint.train_config, resume=checkpoint.train_state()))
    assert [e.loss for e in events if isinstance(e, StepEvent)] == [losses[s] for s in range(6, 61)]
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), checkpoint.model.parameters(), strict=True)
    )


def test_a_checkpoint_without_optimizer_resumes_with_a_notice(tmp_path):
    ids, config = list(range(8)) * 10, TrainConfig(steps=10, batch_size=2)
    checkpoint = load_checkpoint(saved(tmp_path / "one"))
    events = list(train(checkpoint.model, ids, [], config, resume=checkpoint.train_state()))
    assert isinstance(events[0], NoticeEvent) and "optimizer restarted" in events[0].message
    assert [e.step for e in events if isinstance(e, StepEvent)] == [8, 9, 10]


def compactable(tmp_path):
    return saved(
        tmp_path / "one",
        optimizer_state={"step/x": torch.ones(())},
        generator_states={"data": torch.Generator().get_state()},
    )


def same_weights(one, two, atol=0.0):
    pairs = zip(one.model.parameters(), two.model.parameters(), strict=True)
    return all(torch.allclose(a, b, rtol=0, atol=atol) for a, b in pairs)


def test_a_compact_checkpoint_is_sound_and_holds_weights_only(tmp_path):
    folder = compactable(tmp_path)
    before = load_checkpoint(folder)
    assert before.generator_states is not None and before.dtype == "float32"
    compact_checkpoint(folder)
    again = load_checkpoint(folder)
    assert (again.optimizer_state, again.generator_states, again.step) == (None, None, 7)
    assert again.dtype == "int8" and again.identity != before.identity
    largest = max(float(p.detach().abs().max()) for p in before.model.parameters())
    assert same_weights(before, again, atol=largest / 127 / 2 * 1.001)
    assert sorted(p.name for p in folder.iterdir()) == ["checkpoint.json", "model.safetensors"]
    content = (folder / "model.safetensors").read_bytes()
    compact_checkpoint(folder)  # once is enough
    assert (folder / "model.safetensors").read_bytes() == content


@pytest.mark.parametrize("until", range(6))
def test_whoever_dies_while_it_is_made_compact_leaves_a_whole_one(tmp_path, monkeypatch, until):
    """The steps on disk: small file and its name, description and its name, the exchange, the rest."""
    folder, done = compactable(tmp_path), []
    before = load_checkpoint(folder)

    def counted(real):
        def call(*args, **options):
            if len(done) == until:
                raise KeyboardInterrupt  # as if the process had gone
            done.append(real)
            return real(*args, **options)

        return call

    monkeypatch.setattr(checkpoint_list, "write_file", counted(checkpoint_list.write_file))
    monkeypatch.setattr(checkpoint_list.os, "replace", counted(os.replace))
    monkeypatch.setattr(checkpoint_list.Path, "unlink", counted(Path.unlink))
    with pytest.raises(KeyboardInterrupt):
        compact_checkpoint(folder)
    monkeypatch.undo()
    assert checkpoint_list.is_complete(folder)
    assert same_weights(load_checkpoint(folder), before, atol=0.1)
    compact_checkpoint(folder)
    assert load_checkpoint(folder).dtype == "int8"
    assert sorted(p.name for p in folder.iterdir()) == ["checkpoint.json", "model.safetensors"]


def test_whoever_reads_while_it_is_made_compact_reads_again(tmp_path, monkeypatch):
    folder, real = compactable(tmp_path), checkpoints.read_weights

    def meanwhile(path, content):
        monkeypatch.undo()
        compact_checkpoint(folder)
        return real(path, content)  # with the old description: a file that has changed

    monkeypatch.setattr(checkpoints, "read_weights", meanwhile)
    assert load_checkpoint(folder).dtype == "int8"


def test_a_full_disk_leaves_the_checkpoint_as_it_is(tmp_path, monkeypatch):
    folder = compactable(tmp_path)

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_list, "write_file", full)
    with pytest.raises(OSError, match="No space left"):
        compact_checkpoint(folder)
    again = load_checkpoint(folder)
    assert again.dtype == "float32" and again.optimizer_state is not None


def test_the_identity_follows_the_weights(tmp_path):
    first = load_checkpoint(saved(tmp_path / "one")).identity
    assert load_checkpoint(saved(tmp_path / "two")).identity == first != ""
    other = small()
    with torch.no_grad():
        other.embedding.weight[0, 0] += 1
    save_checkpoint(tmp_path / "two", Checkpoint(other, ABC))
    assert load_checkpoint(tmp_path / "two").identity != first


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "checkpoint.json"])
def test_every_missing_file_is_noticed(tmp_path, name):
    folder = saved(tmp_path / "one", optimizer_state={"a": torch.ones(2)})
    (folder / name).unlink()
    assert name in refused(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "checkpoint.json"])
@pytest.mark.parametrize("where", [0.02, 0.5, 0.98])
def test_every_flipped_bit_is_noticed(tmp_path, name, where):
    folder = saved(tmp_path / "one", optimizer_state={"a": torch.ones(2)})
    data = bytearray((folder / name).read_bytes())
    data[int(len(data) * where)] ^= 1
    (folder / name).write_bytes(data)
    refused(folder)


def test_a_cut_file_is_noticed(tmp_path):
    folder = saved(tmp_path / "one")
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-10])
    assert "damaged" in refused(folder)


@pytest.mark.parametrize(
    "content", ["{}", "[1, 2]", "null", '{"kind": "loupe-checkpoint"}', "no json", '{"model_type": "gpt2"}']
)
def test_foreign_json_is_refused(tmp_path, content):
    folder = saved(tmp_path / "one")
    (folder / "checkpoint.json").write_text(content)
    refused(folder)


def test_a_newer_format_is_refused(tmp_path):
    forge(saved(tmp_path / "one"), format=2)
    assert "format 2" in refused(tmp_path / "one")


def test_another_tokenizer_or_config_is_refused(tmp_path):
    forge(saved(tmp_path / "one"), tokenizer=char_tokenizer("hgfedcbaz").to_json())
    assert "tokenizer is not the one" in refused(tmp_path / "one")
    forge(saved(tmp_path / "two"), model=small(n_head=1).config.to_json())
    assert "model settings are not those" in refused(tmp_path / "two")
    model = small(n_head=4).config.to_json()
    forge(saved(tmp_path / "three"), model={**model, "flash": True})
    assert "no setting flash" in refused(tmp_path / "three")


def test_a_model_for_another_vocabulary_is_refused(tmp_path):
    save_checkpoint(tmp_path / "one", Checkpoint(small(), byte_tokenizer()))
    assert "has 8 ids and its tokenizer needs 256" in refused(tmp_path / "one")


def test_weights_of_another_shape_are_refused(tmp_path):
    folder = saved(tmp_path / "one")
    tensors = load_file(folder / "model.safetensors")
    rewrite_weights(folder, {**tensors, "embedding.weight": torch.zeros(8, 9)})
    assert "embedding.weight has shape (8, 9), not (8, 8)" in refused(folder)
    rewrite_weights(folder, {n: t for n, t in tensors.items() if n != "embedding.weight"})
    assert "lacks tensor embedding.weight" in refused(folder)
    rewrite_weights(folder, {**tensors, "extra": torch.zeros(1)})
    assert "unknown tensor extra" in refused(folder)


def test_weights_that_are_not_finite_are_neither_saved_nor_loaded(tmp_path):
    folder = saved(tmp_path / "one")
    before = (folder / "model.safetensors").read_bytes()
    broken = small()
    with torch.no_grad():
        broken.blocks[0].mlp.up.weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="not finite"):
        save_checkpoint(folder, Checkpoint(broken, ABC))
    assert (folder / "model.safetensors").read_bytes() == before
    rewrite_weights(
        folder, {**load_file(folder / "model.safetensors"), "final_norm.bias": torch.full((8,), float("inf"))}
    )
    assert "not finite" in refused(folder)


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (open, (str(self.marker), "w"))


@pytest.mark.parametrize("name", ["model.pt", "model.bin", "model.ckpt", "model.pkl"])
def test_a_pickle_is_never_opened(tmp_path, name):
    marker, file = tmp_path / "executed", tmp_path / name
    file.write_bytes(pickle.dumps(Payload(marker)))
    assert "pickle" in refused(file)
    folder = saved(tmp_path / "one")
    for inside in ("model.safetensors", "checkpoint.json"):
        (folder / inside).write_bytes(file.read_bytes())
        refused(folder)
    assert not marker.exists()


def test_nothing_in_the_engine_can_unpickle():
    for path in (REPO / "engine").glob("*.py"):
        for word in ("import pickle", "torch.load", "weights_only", "allow_pickle=True"):
            assert word not in path.read_text(encoding="utf-8"), f"{path.name}: {word}"


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "a\\b", "", ".", "..", ".hidden", "-x", "a b", "x" * 81, "é", "a\n", "C:x", None]
)
def test_names_can_not_leave_the_folder(name):
    with pytest.raises(ValueError, match="can't be a name here"):
        checked_name(name)


def test_good_names():
    assert [checked_name(n) for n in ("a", "20260101-120000-a1b2c3", "My_run-2")]


def test_lists_only_complete_checkpoints_in_order(tmp_path):
    parent = tmp_path / "checkpoints"
    for step in (30, 4, 200):
        saved(parent / f"{step:07d}")
    (parent / "0000500").mkdir()  # empty
    (parent / ".0000600.new-1-2").mkdir()
    (saved(parent / "0000700") / "model.safetensors").unlink()
    (parent / "notes.txt").write_text("")
    assert [step for step, _ in list_checkpoints(tmp_path)] == [4, 30, 200]
    assert list_checkpoints(tmp_path / "nowhere") == []


def test_a_writer_that_died_between_two_renames_loses_nothing(tmp_path):
    folder = saved(tmp_path / "checkpoints" / "0000007")
    os.replace(folder, folder.with_name(".0000007.old"))
    assert [step for step, _ in list_checkpoints(tmp_path)] == [7]
    assert load_checkpoint(folder).step == 7


def test_leftovers_of_dead_writers_are_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    leftover, mine = tmp_path / f".x.new-{dead.pid}-1", tmp_path / f".y.new-{os.getpid()}-1"
    leftover.mkdir(), mine.mkdir()
    saved(tmp_path / "one")
    assert not leftover.exists()
    assert mine.exists()  # may belong to another thread that is writing now


def test_a_full_disk_leaves_the_old_folder(tmp_path, monkeypatch):
    folder = saved(tmp_path / "one")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_folder(folder, {"model.safetensors": b"half"})
    assert load_checkpoint(folder).step == 7
    assert [p.name for p in tmp_path.iterdir()] == ["one"]


def test_an_old_folder_whose_successor_is_there_is_swept_away(tmp_path):
    """A writer died after it had put the new folder in place and before it removed the old one."""
    letters = char_tokenizer("abcdefgh")
    save_checkpoint(tmp_path / "0000001", Checkpoint(small(), letters, step=1))
    (tmp_path / ".0000001.old").mkdir()
    save_checkpoint(tmp_path / "0000002", Checkpoint(small(), letters, step=2))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0000001", "0000002"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked writers")
def test_kill_9_while_saving(tmp_path):
    """20 writers are killed at random moments; after each, the newest listed checkpoint opens."""
    script = """
        import os, random, signal, sys, time
        from pathlib import Path
        import torch
        from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
        from engine.checkpoint_list import list_checkpoints
        from engine.config import ModelConfig
        from engine.model import Transformer
        from engine.tokenizers import char_tokenizer

        torch.set_num_threads(1)
        run, letters = Path(sys.argv[1]), char_tokenizer("abcdefgh")
        model = Transformer(ModelConfig(vocab_size=8, context_length=8, n_layer=1, n_head=2, d_model=8))

        def save(step, value):
            with torch.no_grad():
                model.embedding.weight.fill_(value)
            moments = {"exp_avg/embedding.weight": torch.full((8, 8), float(value))}
            target = run / "checkpoints" / f"{step:07d}"
            checkpoint = Checkpoint(model, letters, step=step, optimizer_state=moments, info={"value": value})
            save_checkpoint(target, checkpoint)

        def write_for_ever(start):
            value = start
            while True:
                save(value % 3, value)
                value += 1

        save(1, 0)
        dice, opened, last = random.Random(0), 0, 0
        for attempt in range(20):
            child = os.fork()
            if child == 0:
                write_for_ever(attempt * 1000)
            time.sleep(dice.uniform(0.0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kept = list_checkpoints(run)
            assert kept, "no checkpoint is left"
            for step, path in kept:
                checkpoint = load_checkpoint(path)
                value = checkpoint.info["value"]
                assert checkpoint.step == step
                assert (checkpoint.model.embedding.weight == value).all()
                assert (checkpoint.optimizer_state["exp_avg/embedding.weight"] == value).all()
                opened += 1
        save(1, 0)
        left = sorted(p.name for p in (run / "checkpoints").iterdir())
        assert all(name.isdigit() for name in left), left
        print("opened", opened)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)],
        capture_output=True, text=True, cwd=REPO, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.split()[1]) >= 20


def test_a_published_or_learned_tokenizer_travels_along(tmp_path):
    bpe = train_bpe("the cat sat on the mat and the cat sat " * 5, 262)
    save_checkpoint(tmp_path / "one", Checkpoint(small(vocab_size=bpe.vocab_size), bpe))
    again = load_checkpoint(tmp_path / "one").tokenizer
    assert again.encode("the cat sat") == bpe.encode("the cat sat")
