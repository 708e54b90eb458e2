"""For the engine's tests: vocabularies from a folder, small models, and a network that is unplugged."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from engine.config import ModelConfig
from engine.folders import read_json
from engine.model import Transformer
from engine.runs import RunStore
from engine.tokenizers import Tokenizer, load_vocabulary

ROOT = Path(__file__).parents[2]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> NoReturn:
        raise AssertionError("The network was touched.")

    monkeypatch.setattr(socket, "socket", refuse)


@pytest.fixture(scope="session")
def vocab_folder() -> Path:
    """Where the published vocabulary files lie: $LOUPE_TEST_VOCAB, else ../shared/vocab."""
    folder = Path(os.environ.get("LOUPE_TEST_VOCAB", ROOT.parent / "shared" / "vocab"))
    if not folder.is_dir():
        pytest.skip(f"no published vocabularies in {folder}; name their folder in LOUPE_TEST_VOCAB")
    return folder


@pytest.fixture(scope="session")
def published(vocab_folder: Path) -> Callable[[str], Tokenizer]:
    """name -> published vocabulary."""

    @cache
    def load(name: str) -> Tokenizer:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIKTOKEN_CACHE_DIR", str(vocab_folder))
            return load_vocabulary(name)

    return load


@pytest.fixture(scope="session")
def gpt2(published: Callable[[str], Tokenizer]) -> Tokenizer:
    return published("gpt2")


@pytest.fixture(scope="session")
def small_model() -> Callable[..., Transformer]:
    """Settings -> a small model whose weights are large enough that every part matters."""

    def build(**changes: Any) -> Transformer:
        settings = {"vocab_size": 256, "context_length": 16, "n_layer": 2, "n_head": 4, "d_model": 32}
        return rough(Transformer(ModelConfig(**{**settings, **changes})))

    return build


def rough(model: Transformer, scale: float = 0.3) -> Transformer:
    """Add noise to all weights, so that biases are not 0 and norms not 1."""
    dice = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=dice))
    return model


@pytest.fixture
def untouched_dice() -> Any:
    """Fails if the test moved torch's global random state."""
    before = torch.get_rng_state()
    yield
    assert torch.equal(before, torch.get_rng_state())


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    """A home of its own; whatever still trains there at the end is killed."""
    monkeypatch.setenv("LOUPE_NICE", "1")  # enough to see it, and little enough for a busy machine
    store = RunStore(tmp_path / "home")
    yield store
    for info in store.list():
        pid = read_json(info.folder / "status.json").get("pid")
        if info.active and pid and pid != os.getpid():
            with suppress(ProcessLookupError):  # it ended by itself a moment ago
                os.kill(pid, signal.SIGKILL)
    store.close()
