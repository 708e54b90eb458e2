"""The page of models: true sizes, one model worked out, and ways to get more that fetch nothing unasked."""

import gc
import json
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import devices, hub_download, smollm2
from engine.devices import CPU, Device
from engine.hub_plan import look
from engine.memory import Memory
from tests.fake_hub import FakeHub, fake_hub
from tests.hub_folders import write_llama
from tests.pages.conftest import ROOT, OpenPage, Pair, plotly
from tests.pages.tiny import array
from ui import model_facts, model_list, model_refs, model_shelf, resources
from ui.model_refs import ModelRef

LLAMA = {"look_at": "hub:llama"}
FORMULA = r"\cdot "


@pytest.fixture(autouse=True)
def empty_shelves() -> Iterator[None]:
    model_shelf._shelf.clear()
    yield
    model_shelf._shelf.clear()


def ref_of(name: str) -> ModelRef:
    return next(ref for ref in model_refs.available_models("nobody") if ref.name == name)


def fine(at: AppTest) -> AppTest:
    assert not at.exception, at.exception[0].value
    return at


def texts(at: AppTest) -> str:
    kinds = ("markdown", "caption", "info", "warning", "error", "success", "subheader")
    found = "\n".join(str(element.value) for kind in kinds for element in at.get(kind))
    return re.sub(r"\\(?=[^\w\s])", "", found)  # what Markdown shows


def test_the_picture_shows_every_model_s_memory(
    open_page: OpenPage, models: Pair, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_list, "memory", lambda: Memory(10**10, 5 * 10**9))
    resources.load(ref_of("llama"))
    at = fine(open_page("models"))
    fig = plotly(at, "models_sizes")
    drawn = {}
    for trace in fig["data"]:
        if trace["mode"] == "markers+text":
            rows, sizes = array(trace["y"]), array(trace["x"])
            drawn |= {
                int(r): (float(x), s) for r, x, s in zip(rows, sizes, trace["marker"]["symbol"], strict=True)
            }
    refs = model_refs.available_models("nobody")
    assert [ref.name for ref in refs] == [
        "tiny-clm",
        "tiny-mlm",
        "llama",
        "roberta",
    ]  # published after shipped
    for row, ref in enumerate(refs):
        assert drawn[row][0] == pytest.approx(4 * ref.n_params / 1e6)
        assert drawn[row][1] == ("circle" if resources.loaded_on(ref) else "circle-open")
    assert resources.loaded_on(refs[2]) and not resources.loaded_on(refs[3])
    assert any("5,000 MB free now" in note["text"] for note in fig["layout"]["annotations"])


def test_one_model_is_told_in_full(open_page: OpenPage, published: Path) -> None:
    at = fine(open_page("models", LLAMA))
    found, said = look(published / "llama"), texts(at)
    config = found.config
    for shown in (
        "| Family | Llama |", f"| Parameters | {found.n_weights:,} |", "| Weights | not loaded |",
        f"| Layers × heads | {config.n_layer} × {config.n_head} (2 heads for keys and values) |",
        f"| Vocabulary | {config.vocab_size:,} ids |", f"| Context | {config.context_length:,} tokens |",
        "its whole context", "| Licence | not stated in its folder |", "causal: it predicts the next token",
    ):  # fmt: skip
        assert shown in said, shown
    bars = plotly(at, "models_parts")["data"][0]
    assert sum(array(bars["x"])) == found.n_weights
    assert any(f"{FORMULA}{found.n_weights}" in latex.value for latex in at.latex)
    assert any(rf"= {4 * found.n_weights}\ " in latex.value for latex in at.latex)


def test_why_pictures_of_a_large_model_read_less(open_page: OpenPage, published: Path) -> None:
    write_llama(published / "long", context_length=2048, n_layer=8, n_head=8, n_kv_head=2)
    ref = ref_of("long")
    assert ref.window_length < ref.context_length == 2048
    said = texts(fine(open_page("models", {"look_at": "hub:long"})))
    assert f"{ref.window_length:,} tokens: one look keeps" in said and "200 MB is the most" in said


def test_it_is_used_and_let_go(open_page: OpenPage, published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = fine(open_page("models", LLAMA))
    fine(at.button(key="models_use").click().run())
    assert at.sidebar.selectbox(key="model").value == "hub:llama" and at.button(key="models_use").disabled
    fine(at.switch_page("pages/next_token.py").run())
    seen = weakref.ref(resources.load(ref_of("llama")).model.embedding.weight)
    badge = next(c.value for c in at.sidebar.caption if "parameters" in c.value)
    assert "published" in badge and "on CPU" in badge and "step" not in badge
    fine(at.switch_page("pages/models.py").run())
    assert "| Weights | on CPU |" in texts(at)
    fine(at.button(key="models_let_go").click().run())
    gc.collect()
    assert seen() is None and "| Weights | not loaded |" in texts(at)
    assert not any("published" in c.value for c in at.sidebar.caption)


def test_who_else_uses_it_is_said_before(
    open_page: OpenPage, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("Ann", "Ben"):
        monkeypatch.setattr(model_shelf, "_user", lambda user=user: user)
        resources.load(ref_of("llama"))
    at = fine(open_page("models", LLAMA))
    assert "used in one other browser" in texts(at)
    monkeypatch.setattr(model_shelf, "_user", lambda: "Cleo")
    assert "used in 2 other browsers" in texts(fine(at.run()))
    fine(at.button(key="models_let_go").click().run())
    assert resources.loaded_on(ref_of("llama")) is None


def test_folders_that_cant_be_opened_say_why(open_page: OpenPage, published: Path) -> None:
    (published / "only-pickle").mkdir()
    (published / "only-pickle" / "config.json").write_text('{"model_type": "llama"}')
    (published / "only-pickle" / "pytorch_model.bin").touch()
    (published / "*empty* $x$").mkdir()
    (published / ".hidden").mkdir()
    (write_llama(published / "wordless") / "tokenizer.json").unlink()
    (Path(str(published)) / "b\udcffd").mkdir()
    said = texts(fine(open_page("models")))
    assert "could run programs" in said and "*empty* $x$" in said and "bytes that are no text" in said
    assert "wordless has no tokenizer.json" in said
    assert "hidden" not in said and len(model_facts.broken()) == 4


def test_a_vocabulary_that_cant_be_read_is_said(open_page: OpenPage, published: Path) -> None:
    content = json.loads((published / "llama" / "tokenizer.json").read_text())
    content["model"]["type"] = "Unheard"
    (published / "llama" / "tokenizer.json").write_text(json.dumps(content))
    at = fine(open_page("models", LLAMA))
    assert at.main.warning and "tokenizer.json" in texts(at)


def test_the_device_is_each_person_s_own(
    open_page: OpenPage, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = (Device(CPU), Device("cuda:0", "Test GPU", 10**10))
    monkeypatch.setattr(devices, "devices", lambda: there)
    moved: list[str] = []
    monkeypatch.setattr(devices.Transformer, "to", lambda self, device: (moved.append(str(device)), self)[1])
    at = fine(open_page("models", LLAMA))
    box = at.selectbox(key="models_device_hub:llama")
    assert box.options == ["automatic", "CPU", "GPU · Test GPU"]
    fine(box.set_value("cpu").run())
    ref = replace(ref_of("llama"), device="cpu")
    assert ref_of("llama").device == "auto"  # of somebody else
    resources.load(ref)
    assert resources.loaded_on(ref) == "CPU" and resources.loaded_on(ref_of("llama")) is None
    resources.load(ref_of("llama"))
    assert resources.loaded_on(ref_of("llama")) == "GPU · Test GPU" and "cuda:0" in moved
    fine(at.run())
    assert "| Weights | on CPU |" in texts(at)


def test_a_gpu_that_fails_is_said_in_the_sidebar(
    open_page: OpenPage, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "devices", lambda: (Device(CPU), Device("cuda:0", "Test GPU", 1)))
    at = fine(open_page("next_token", {"model": "hub:llama"}))
    badge = next(c.value for c in at.sidebar.caption if "published" in c.value)
    assert "on CPU" in badge and "Test GPU has 0 MB of memory free" in badge


def test_two_sessions_load_one_model_once(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, begun, go = [], threading.Event(), threading.Event()
    real = model_shelf.open_model

    def slow(ref: ModelRef) -> model_shelf.Held:
        begun.set()
        go.wait(20)
        opened.append(ref.id)
        return real(ref)

    monkeypatch.setattr(model_shelf, "open_model", slow)
    ref, found = ref_of("llama"), []
    threads = [threading.Thread(target=lambda: found.append(resources.load(ref))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    go.set()
    for thread in threads:
        thread.join(30)
    assert opened == ["hub:llama"] and len({id(checkpoint) for checkpoint in found}) == 1


def test_of_large_models_few_stay(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("second", "third"):
        write_llama(published / name, seed=len(name))
    monkeypatch.setattr(model_refs, "LARGE", 1000)
    monkeypatch.setenv("LOUPE_LARGE_MODELS", "2")
    llama, second, third = (ref_of(name) for name in ("llama", "second", "third"))
    gone = weakref.ref(resources.load(second).model.embedding.weight)
    resources.load(llama)
    resources.load(second)
    resources.load(llama)  # so `second` was not used for longest
    resources.load(third)
    gc.collect()
    assert gone() is None
    assert [resources.loaded_on(ref) for ref in (llama, second, third)] == ["CPU", None, "CPU"]
    assert resources.embedding_of(llama).base is not None  # of the model in memory, not a copy


def test_a_model_that_does_not_fit_is_a_sentence(
    open_page: OpenPage, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_refs, "LARGE", 1000)
    model_shelf._shelf(True)._free = lambda: 250_000_000
    at = fine(open_page("next_token", {"model": "hub:llama"}))
    assert "llama needs 0 MB of memory and 250 MB to work with, but only 250 MB are free" in texts(at)
    model_shelf._shelf.clear()
    fine(at.run())
    assert "are free" not in texts(at)


def test_the_list_of_models_needs_no_torch(published: Path) -> None:
    code = (
        "import sys; from ui import model_refs, resources; refs = model_refs.available_models('nobody');"
        "assert {'hub:llama', 'hub:roberta'} <= {ref.id for ref in refs}; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, check=True)


def test_nothing_is_fetched_when_the_page_opens(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, loupe_home: Path
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("nobody pressed")

    monkeypatch.setattr(hub_download, "look", never)
    monkeypatch.setattr(hub_download, "start", never)
    at = fine(open_page("models", {"models": "get"}))
    assert [metric.value for metric in at.metric] == ["93 MB", "≈ 271 MB", "≈ 1,000 MB", "Apache-2.0"]
    assert {block.value for block in at.code} == {"python -m engine.smollm2", str(loupe_home / "models")}
    assert not (loupe_home / "models").exists()


def test_a_missing_package_is_named(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "needs", lambda: "It needs gguf: pip install -r requirements-models.txt")
    at = fine(open_page("models", {"models": "get"}))
    assert at.button(key="models_get_smollm2").disabled
    assert "pip install -r requirements-models.txt" in texts(at)


def test_a_class_server_may_forbid_it(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_DOWNLOADS", "off")
    at = fine(open_page("models", {"models": "get"}))
    assert {button.key for button in at.main.button if button.key} >= {"models_look_again"}
    assert not {"models_get_smollm2", "models_download"} & {button.key for button in at.button}
    assert not at.main.text_input and "Ask that person" in texts(at)


def test_smollm2_comes_in_the_background_and_can_be_stopped(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, loupe_home: Path
) -> None:
    began: list[str] = []
    monkeypatch.setattr(smollm2, "needs", lambda: None)
    monkeypatch.setattr(hub_download, "_spawn", lambda models: began.append(models.name))
    at = fine(open_page("models", {"models": "get"}))
    fine(at.button(key="models_get_smollm2").click().run())
    assert began == ["models"] and at.button(key="models_get_smollm2").disabled
    status = loupe_home / "models" / ".fetch" / "status.json"
    content = json.loads(status.read_text())
    status.write_text(json.dumps(content | {"stage": "convert", "share": 0.5}))
    again = fine(open_page("models", {"models": "get"}))  # another browser, or a reload
    assert again.button(key="models_get_smollm2").disabled
    fine(again.button(key="models_stop").click().run())
    assert hub_download.latest(loupe_home / "models").state == "cancelled"  # type: ignore[union-attr]
    assert "was stopped" in texts(again)
    fine(again.button(key="models_close").click().run())
    assert "was stopped" not in texts(again) and not again.button(key="models_get_smollm2").disabled


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    pytest.importorskip("huggingface_hub", reason="needs the package huggingface_hub")
    with fake_hub() as found:
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        found.models["someone/tiny"] = write_llama(tmp_path / "served")
        yield found


def asked(at: AppTest, name: str) -> AppTest:
    at.text_input(key="models_name").set_value(name)
    return fine(at.button(key="models_ask_hub").click().run())


def test_a_model_of_the_hub_is_looked_at_and_then_fetched(
    open_page: OpenPage, hub: FakeHub, loupe_home: Path
) -> None:
    at = asked(fine(open_page("models", {"models": "get"})), "someone/tiny")
    n = look(hub.models["someone/tiny"]).n_weights
    shown = [metric.value for metric in at.metric][-4:]
    assert shown[1:] == [f"{n:,}", f"{4 * n / 1e6:,.1f} MB", "apache-2.0"]
    assert hub.files("someone/tiny")[-1] == "config.json"
    fine(at.button(key="models_download").click().run())
    for _ in range(400):
        found = hub_download.latest(loupe_home / "models")
        if found and not found.running:
            break
        threading.Event().wait(0.05)
    fine(at.run())
    assert "someone/tiny is here" in texts(at) and ref_of("tiny").n_params == n
    assert not any(button.key == "models_download" for button in at.button)


@pytest.mark.parametrize(
    ("name", "said"),
    [("gpt2", "no name of a model"), ("someone/else", "no public model someone/else"), ("", "no name")],
)
def test_what_the_hub_does_not_have_is_a_sentence(
    open_page: OpenPage, hub: FakeHub, name: str, said: str
) -> None:
    assert said in texts(asked(fine(open_page("models", {"models": "get"})), name))


def test_spanish_has_its_own_words_and_keeps_the_view(open_page: OpenPage, published: Path) -> None:
    at = fine(open_page("models", {**LLAMA, "lang": "es"}))
    assert at.title[0].value == "Modelos" and "| Pesos | sin cargar |" in texts(at)
    assert at.selectbox(key=model_list.LOOK).value == "hub:llama"
