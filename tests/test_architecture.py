"""The rules of the house: who may import whom, what a page may do, which words stand for things."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("engine", "viz", "ui", "pages", "wording")

# A file of engine imports from floors below its own, and from its own floor as long as no circle closes.
FLOORS = (
    "config tokens tokenizer tokenizers vocabularies ranks download token_costs metrics windows compact "
    "rules rule_effects exercise typed marking lattice reading verdict folders owners progress classes "
    "records energy processes cache recorder rotary seed_spread setting_checks first_weights hub_files "
    "pair_files turns framing hub_bpe hub_tokenizer hub_frame hub_vocabulary hub_words hub_settings "
    "hub_shapes hub_layout hub_families hub_plan trace_size view chat memory "
    "shelf parameter_parts refused "
    "hub_offer hub_remote hub_download hub_worker gguf_file gguf_tokenizer gguf_llama wheel smollm2 "
    "teacher_secret new_runs run_sizes run_format run_shape run_bin retention "
    "plain_log selftest_result selftest_job selftest_machine selftest_folder",
    "events checks schedule parallel parts adamw muon precision evaluation corpus grammar automaton "
    "legality batches model optimizers dice stages merges own_vocabularies run_sets story_pairs instructions "
    "preferences aims "
    "trained_part",
    "vector_products decoding eight_bits devices scaling predictions trace heads inside contributions "
    "ablation embeddings positions compare "
    "sampling waterfall search row_reading strategies training checkpoint_files checkpoint_list checkpoints "
    "tuning_start baselines "
    "hub oracle gaps "
    "mask_draws pair_table pseudo objectives fill infill fill_scores contexts floor plan samples moments "
    "story_report worked_sums worked_vectors worked_text worked_scaling",
    "tuning_data tuning_size tuning_view tuning_plan start_options run_setup run_options command_line "
    "experiments outcomes study_laws findings run_folder runs worker "
    "repeats one_step run_spec run_info run_queue run_reader run_keeper run_session run_log run_measures "
    "heartbeat dead_runs "
    "bundles bundle_checks bundle_zip board class_rows exercise_tokens exercise_targets exercise_probability "
    "exercise_loss exercise_sampling exercise_attention exercise_training exercise_runs exercise_list "
    "exercise_store guess guess_store selftest selftest_engine selftest_training selftest_runs",
)
FORBIDDEN = {
    "engine": {"streamlit", "plotly", "pandas", "viz", "ui", "pages", "app"},
    "viz": {"streamlit", "torch", "engine", "ui", "pages", "app"},
    "ui": {"pages", "app"},
    "pages": {"torch", "plotly", "numpy", "pandas", "pages", "app"},
    "app": {"torch", "plotly", "engine", "viz", "pages"},
    "wording": {"engine", "viz", "ui", "pages", "app"},  # and all that is not Python's own, see below
}
OTHER_WORDS = {
    "n_layers", "num_layers", "num_hidden_layers", "n_heads", "n_kv_heads", "num_heads",
    "num_attention_heads", "n_embd", "hidden_size", "embed_dim", "d_mlp", "intermediate_size", "block_size",
    "n_ctx", "seq_len", "max_seq_len", "n_vocab", "d_vocab", "preds", "bpb", "ppl",
    "mlm_probability", "mlm_prob",
}  # fmt: skip
OTHERS_CALLS = {
    "torch.load": "read safetensors and JSON",
    "torch.save": "write safetensors and JSON",
    "torch.manual_seed": "use a torch.Generator of your own",
    "np.random.seed": "use a generator of your own",
    "random.seed": "use a random.Random of your own",
    "st.experimental_rerun": "use st.rerun",
    "st.components.v1": "use st.components.v2",
    "st.bokeh_chart": "use st.plotly_chart",
    "eval": "parse it",
    "exec": "import it",
}


def sources(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


def all_sources() -> list[Path]:
    return [ROOT / "app.py", *sources(*ROOMS)]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), filename=str(path))


def run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING:` and `if __name__ == "__main__":`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and re.match(
            "(typing\\.)?TYPE_CHECKING|__name__", ast.unparse(child.test)
        ):
            continue
        yield child
        yield from run_time_nodes(child)


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports when it runs."""
    found: set[str] = set()
    for node in run_time_nodes(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} line {node.lineno}: write imports from the root"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def dotted(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""


@pytest.mark.parametrize("path", all_sources(), ids=name_of)
def test_each_room_imports_only_what_it_may_know(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    tops = {name.split(".")[0] for name in imported(path)}
    assert not tops & FORBIDDEN[room]


def test_the_texts_need_nothing_but_python() -> None:
    for path in sources("wording"):
        tops = {name.split(".")[0] for name in imported(path)}
        assert tops <= sys.stdlib_module_names, name_of(path)


def engine_imports() -> dict[str, set[str]]:
    files = [path for path in sources("engine") if path.stem != "__init__"]
    return {p.stem: {name.split(".")[1] for name in imported(p) if name.startswith("engine.")} for p in files}


def test_engine_has_floors_and_imports_go_down() -> None:
    floor = {name: i for i, names in enumerate(FLOORS) for name in names.split()}
    for name, needs in engine_imports().items():
        assert name in floor, f"engine/{name}.py has no place in FLOORS: give it one"
        above = {need for need in needs if floor[need] > floor[name]}
        assert not above, f"engine/{name}.py imports {above} from a floor above it"


def test_engine_imports_in_no_circle() -> None:
    graph = engine_imports()
    while free := [name for name, needs in graph.items() if not needs & graph.keys()]:
        for name in free:
            del graph[name]
    assert not graph, f"these import each other in a circle: {sorted(graph)}"


@pytest.mark.parametrize("path", sources("pages"), ids=name_of)
def test_a_page_is_short_and_goes_through_app(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < 150
    body = [node for node in tree(path).body if not isinstance(node, ast.Import | ast.ImportFrom)]
    assert isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant), (
        "a page begins with a docstring"
    )
    assert ast.unparse(body[1]) == "nav.require_app()"


def test_every_page_is_in_the_menu() -> None:
    from ui import nav

    assert {path.stem for path in sources("pages")} == {info.name for info in nav.PAGES}


@pytest.mark.parametrize("path", all_sources(), ids=name_of)
def test_one_word_for_one_thing(path: Path) -> None:
    defined = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
    assert not defined & OTHER_WORDS


@pytest.mark.parametrize("path", all_sources(), ids=name_of)
def test_nothing_unsafe_or_outdated_is_called(path: Path) -> None:
    for node in ast.walk(tree(path)):
        where = f"{name_of(path)} line {getattr(node, 'lineno', '?')}"
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            assert name not in OTHERS_CALLS, f"{where}: {name}: {OTHERS_CALLS[name]}"
            assert not name.startswith(("st.components.v1", "st.experimental_")), f"{where}: {name}"
            words = {keyword.arg for keyword in node.keywords}
            assert not words & {"use_container_width", "use_column_width", "unsafe_allow_html"}, where
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{where}: say which exception"
            if ast.unparse(node.type) in ("BaseException", "Exception"):
                assert isinstance(node.body[-1], ast.Raise), (
                    f"{where}: say which exception, or raise it again"
                )
    assert not {name.split(".")[0] for name in imported(path)} & {"pickle", "marshal", "multiprocessing"}


@pytest.mark.parametrize("path", sorted((ROOT / "ui").rglob("*.js")), ids=name_of)
def test_components_never_turn_text_into_markup(path: Path) -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", path.read_text("utf-8")
    )


@pytest.mark.parametrize("path", sorted((ROOT / "ui").rglob("*.html")), ids=name_of)
def test_nothing_in_a_component_lacks_a_name_before_it_is_drawn(path: Path) -> None:
    """Its script gives names; until it ran, an empty button is hidden and a picture is none."""
    html, css = path.read_text("utf-8"), path.with_suffix(".css")
    assert 'role="img"' not in html, "set it with the picture's name"
    for attributes in re.findall(r"<button([^>]*)></button>", html):
        called = re.search(r'class="(\w+)"', attributes)
        rule = f".{called[1]}:empty" if called else "button:empty"
        assert rule in css.read_text("utf-8"), f"{name_of(css)}: {rule} {{ display: none; }}"


@pytest.mark.parametrize("path", all_sources(), ids=name_of)
def test_torch_is_asked_for_before_its_parts(path: Path) -> None:
    """Else a page and the thread that loads torch can wait for each other, see `ui.resources.warm_up`."""
    asked: list[tuple[int, str]] = []
    for node in run_time_nodes(tree(path)):
        if isinstance(node, ast.Import):
            asked += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            asked.append((node.lineno, node.module or ""))
    first = [name for _, name in sorted(asked) if name.split(".")[0] == "torch"][:1]
    assert first in ([], ["torch"]), f"{name_of(path)}: import torch first"


def test_there_is_no_drawer_for_everything() -> None:
    drawers = {"utils", "util", "core", "common", "services", "helpers", "misc"}
    names = {part for path in all_sources() for part in (*path.relative_to(ROOT).parts[:-1], path.stem)}
    assert not names & drawers


def test_the_frame_does_not_wait_for_torch() -> None:
    code = "import sys, ui.nav, ui.sidebar, ui.session; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, check=True)
