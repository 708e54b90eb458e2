"""Models from a hub on this machine: asked about first, fetched whole or not at all, and nothing else."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import hub_download, hub_offer, hub_remote
from engine.hub_download import Fetch
from engine.hub_offer import HubError, Offer, checked_repo
from engine.hub_plan import look
from engine.memory import Memory
from tests.fake_hub import SHA, FakeHub, fake_hub
from tests.hub_folders import write_bert, write_llama

pytest.importorskip("huggingface_hub", reason="needs the package huggingface_hub")

NAME = "someone/tiny-llama"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub() as found:
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(hub_remote, "PATIENCE", 5.0)
        folder = write_llama(tmp_path / "served")
        (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Tiny\n")
        (folder / "pytorch_model.bin").write_bytes(b"could run a program")
        (folder / "run_me.py").write_text("raise SystemExit")
        found.models[NAME] = folder
        yield found


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def ended(models: Path) -> Fetch:
    for _ in range(3000):
        found = hub_download.latest(models)
        assert found is not None
        if not found.running:
            return found
        time.sleep(0.01)
    raise AssertionError("the download never ended")


def bring(offer: Offer, models: Path) -> Path:
    return hub_remote.bring(offer, models, models / "parts", lambda name, n: None)


def failed(hub_name: str, **_: object) -> HubError:
    with pytest.raises(HubError) as caught:
        hub_remote.ask(hub_name)
    return caught.value


@pytest.mark.parametrize(
    "typed",
    ["", "gpt2", "a/b/c", "../x", "a/..", "a/b?x=1", "a/b--c", "a b/c", "a/" + "x" * 97, "a/b.", "/b"],
)
def test_only_owner_and_name_are_a_model(typed: str) -> None:
    with pytest.raises(ValueError, match="owner/name"):
        checked_repo(typed)


def test_the_address_of_its_page_is_a_name() -> None:
    assert checked_repo(" https://huggingface.co/EleutherAI/pythia-70m/ ") == "EleutherAI/pythia-70m"
    assert checked_repo("Qwen/Qwen2.5-0.5B") == "Qwen/Qwen2.5-0.5B"


def test_what_a_model_is_is_known_before_it_is_fetched(hub: FakeHub) -> None:
    offer = hub_remote.ask(NAME)
    here = look(hub.models[NAME])
    assert (offer.name, offer.revision, offer.licence, offer.kind) == (NAME, SHA, "apache-2.0", "llama")
    assert (offer.n_weights, offer.memory, offer.refused) == (here.n_weights, 4 * here.n_weights, "")
    assert offer.n_bytes == sum((hub.models[NAME] / file.name).stat().st_size for file in offer.files)
    assert set(hub.files(NAME)) == {"config.json"}
    served = {path.name for path in hub.models[NAME].iterdir()}
    assert {file.name for file in offer.files} == served - {"pytorch_model.bin", "run_me.py"}
    assert Offer.from_json(json.loads(json.dumps(offer.to_json()))) == offer


def test_nobody_s_token_is_sent(hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    bring(hub_remote.ask(NAME), models)
    found = hub_download.look(models, NAME)
    assert found.name == NAME
    heads = [{key.lower(): value for key, value in headers.items()} for _, headers in hub.asked]
    assert len(heads) > 5 and not any("authorization" in head for head in heads)
    assert not any("hf_secret" in value for head in heads for value in head.values())


def test_an_unknown_architecture_is_said_and_not_counted(hub: FakeHub) -> None:
    config = hub.models[NAME] / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": "mamba"}))
    offer = hub_remote.ask(NAME)
    assert offer.n_weights == 0 and "mamba" in offer.refused and "can't load" in offer.refused


def test_models_that_cant_be_had(hub: FakeHub, tmp_path: Path) -> None:
    assert failed("someone/other").kind == "not_found"
    hub.gated = {NAME}
    assert failed(NAME).kind == "gated"
    hub.gated, hub.secret = set(), {NAME}
    assert failed(NAME).kind == "gated"
    hub.secret = set()
    (hub.models[NAME] / "model.safetensors").unlink()
    assert failed(NAME).kind == "no_safetensors"
    hub.models["someone/words"] = folder = write_llama(tmp_path / "words")
    (folder / "tokenizer.json").unlink()
    assert (failed("someone/words").kind, failed("someone/words").details) == (
        "file_missing",
        {"file": "tokenizer.json"},
    )


def test_a_hub_that_says_nothing_is_left(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_remote, "PATIENCE", 0.2)
    hub.silent = {"/api/models"}
    assert failed(NAME).kind == "silent"


def test_no_network_is_a_sentence(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ValueError, match="can't be reached"):
        hub_download.look(models, NAME)
    assert not list((models / ".fetch").glob("look-*"))


def test_a_model_comes_whole_and_can_be_opened(hub: FakeHub, models: Path) -> None:
    told: list[tuple[str, int]] = []
    offer = hub_remote.ask(NAME)
    found = hub_remote.bring(offer, models, models / "parts", lambda name, n: told.append((name, n)))
    assert found == models / "tiny-llama" and not (models / "parts").exists()
    assert {path.name for path in found.iterdir()} == {file.name for file in offer.files}
    for path in found.iterdir():
        assert path.read_bytes() == (hub.models[NAME] / path.name).read_bytes()
    assert look(found).n_weights == offer.n_weights
    assert [n for _, n in told] == sorted(n for _, n in told) and told[-1] == ("", offer.n_bytes)
    assert not {"pytorch_model.bin", "run_me.py"} & set(hub.files(NAME))
    with pytest.raises(HubError, match="name_taken"):
        bring(offer, models)


def test_after_a_break_it_goes_on_where_it_was(
    hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_remote, "CHUNK", 1000)
    size = (hub.models[NAME] / "model.safetensors").stat().st_size
    hub.breaks = {"model.safetensors": size - 10}
    found = bring(hub_remote.ask(NAME), models)
    ranges = [h.get("Range") or h.get("range") for path, h in hub.asked if "model.safetensors" in path]
    resumed = [int(re.fullmatch(r"bytes=(\d+)-", r)[1]) for r in ranges if r]  # type: ignore[index]
    assert len(resumed) == 1 and size - 1010 <= resumed[0] <= size - 10
    assert (found / "model.safetensors").read_bytes() == (hub.models[NAME] / "model.safetensors").read_bytes()


def test_other_bytes_than_promised_are_deleted(hub: FakeHub, models: Path) -> None:
    offer = hub_remote.ask(NAME)
    hub.swapped = {"model.safetensors"}
    with pytest.raises(HubError, match="another_file"):
        bring(offer, models)
    assert not (models / "tiny-llama").exists() and not (models / "parts" / "model.safetensors").exists()
    hub.swapped = set()
    assert bring(offer, models).is_dir()


def test_more_bytes_than_promised_are_refused(hub: FakeHub, models: Path) -> None:
    offer = hub_remote.ask(NAME)
    hub.extra = {"model.safetensors": 5000}
    with pytest.raises(HubError) as caught:
        bring(offer, models)
    assert caught.value.kind in ("wrong_size", "broke_off") and not (models / "tiny-llama").exists()
    hub.extra = {}
    assert bring(offer, models).is_dir()


def test_what_cant_be_opened_is_not_kept_as_a_model(hub: FakeHub, models: Path, tmp_path: Path) -> None:
    other = write_bert(tmp_path / "bert")
    (hub.models[NAME] / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match="weights"):
        bring(hub_remote.ask(NAME), models)
    assert not (models / "tiny-llama").exists()


def test_what_does_not_fit_is_refused_with_the_numbers(
    hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = hub_remote.ask(NAME)
    monkeypatch.setattr(hub_offer, "free_disk", lambda folder: hub_offer.SPARE_DISK + offer.n_bytes - 1)
    with pytest.raises(HubError) as caught:
        hub_offer.check_room(offer, models)
    assert caught.value.kind == "no_disk"
    assert caught.value.details["need"] == (hub_offer.SPARE_DISK + offer.n_bytes) / 1e6
    hub_offer.check_room(offer, models, there=1)  # a byte of it has come before
    monkeypatch.setattr(hub_offer, "memory", lambda: Memory(offer.memory - 1, None))
    with pytest.raises(HubError, match="no_memory"):
        hub_offer.check_room(offer, models, there=1)
    with pytest.raises(HubError, match="too_many_weights"):
        hub_offer.check_room(Offer(NAME, SHA, "", (), 4_000_000_001, "llama"), models)


def test_it_runs_in_the_background_once(hub: FakeHub, models: Path) -> None:
    offer = hub_download.look(models, NAME)
    hub.slow = {"model.safetensors"}
    began = hub_download.start(models, NAME, offer)
    assert began.running and hub_download.start(models, NAME, offer).running  # two browsers press at once
    with pytest.raises(ValueError, match="someone/tiny-llama is on its way"):
        hub_download.start(models, "smollm2")
    for _ in range(2000):
        now = hub_download.latest(models)
        if now and now.stage == "model.safetensors":
            break
        time.sleep(0.01)
    hub.release.set()
    found = ended(models)
    assert (found.state, found.message, found.share) == ("done", "", 1.0)
    assert look(models / "tiny-llama").n_weights == offer.n_weights
    assert sum(path.endswith("/model.safetensors") for path, h in hub.asked) == 2  # its head and its body


def test_stopped_it_keeps_what_came_and_starts_again(hub: FakeHub, models: Path) -> None:
    offer = hub_download.look(models, NAME)
    hub.slow = {"model.safetensors"}
    hub_download.start(models, NAME, offer)
    for _ in range(2000):
        if sum(path.endswith("/model.safetensors") for path, _ in hub.asked) == 2:
            break
        time.sleep(0.01)
    hub_download.cancel(models)
    assert ended(models).state == "cancelled"
    assert not (models / "tiny-llama").exists() and hub_download.come(models, NAME) > 0
    hub.slow = set()
    hub_download.start(models, NAME, offer)
    assert ended(models).state == "done" and hub_download.come(models, NAME) == 0


def test_what_came_can_be_deleted(hub: FakeHub, models: Path) -> None:
    offer = hub_download.look(models, NAME)
    hub.swapped = {"model.safetensors"}
    hub_download.start(models, NAME, offer)
    found = ended(models)
    assert found.state == "failed" and "another model.safetensors" in found.message
    assert hub_download.come(models, NAME) > 0
    hub_download.forget(models)
    assert hub_download.come(models, NAME) == 0 and hub_download.latest(models) is None


def test_a_process_that_died_is_no_download(models: Path) -> None:
    status = {"what": NAME, "state": "running", "pid": 2**22 + 1, "mark": "1", "updated": 0}
    (models / ".fetch").mkdir(parents=True)
    (models / ".fetch" / "status.json").write_text(json.dumps(status))
    found = hub_download.latest(models)
    assert found and found.state == "failed" and "ended without a result" in found.message
    (models / ".fetch" / "status.json").write_text("{")
    assert hub_download.latest(models) is None


def test_a_server_may_forbid_it(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_DOWNLOADS", "off")
    assert not hub_download.allowed()
    with pytest.raises(ValueError, match="Ask whoever runs it"):
        hub_download.start(models, "smollm2")
    with pytest.raises(ValueError, match="Ask whoever runs it"):
        hub_download.look(models, NAME)
    assert not models.exists()
