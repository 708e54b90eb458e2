"""The page for whoever runs a server: it names every setting, and its proxy fits what the app has."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "serving.md").read_text("utf-8")
CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
INNER = ("OMP_", "MKL_", "HF_H", "HUGGING", "RANK", "WORLD_SIZE", "LOCAL_", "TMP", "TEMP", "PYTHON")
ROOMS = ("engine", "ui", "pages", "viz", "wording")


def asked_for() -> set[str]:
    """Environment variables of the program: beside `environ`, and LOUPE_ ones wherever they stand."""
    files = [ROOT / "app.py", *(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))]
    found = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(re.findall(r"^LOUPE_[A-Z_]+$", node.value))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.environ.get" and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and not str(first.value).startswith(INNER):
                    found.add(str(first.value))
    return found


def test_every_setting_of_the_environment_is_explained() -> None:
    asked = asked_for()
    assert {"LOUPE_HOME", "LOUPE_KEEP_DAYS", "LOUPE_NICE"} <= asked, "else nothing would be found"
    table = PAGE.split("<!-- settings:")[1]
    assert set(re.findall(r"`([A-Z_]+)`", table)) - {"FORWARDED_ALLOW_IPS"} == asked


def test_the_readme_leads_there() -> None:
    assert "(docs/serving.md)" in (ROOT / "README.md").read_text("utf-8")


def test_the_proxy_lets_uploads_of_the_largest_size_through() -> None:
    largest = CONFIG["server"]["maxUploadSize"]
    assert int(re.search(r"client_max_body_size (\d+)m", PAGE)[1]) > largest
    assert int(re.search(r"max_size (\d+)MB", PAGE)[1]) > largest
    assert f"{largest} MB (`server.maxUploadSize`)" in PAGE


def test_no_box_for_a_file_promises_more_than_the_server_takes() -> None:
    """Streamlit's server knows one limit for all boxes; a box with a larger one would take files in vain."""
    sizes = {}
    for path in (ROOT / "ui").glob("*.py"):
        text = path.read_text("utf-8")
        for size in re.findall(r"max_upload_size=(\w+)", text):
            sizes[path.name] = (
                int(size) if size.isdigit() else int(re.search(rf"^{size} = (\d+)", text, re.M)[1])
            )
    assert len(sizes) >= 4 and max(sizes.values()) <= CONFIG["server"]["maxUploadSize"]


def test_protections_of_the_server_are_on() -> None:
    server = CONFIG["server"]
    for name in ("enableCORS", "enableXsrfProtection"):
        assert server.get(name, True) is True
    for name in ("enableStaticServing", "enableAgentApi"):
        assert server.get(name, False) is False
    assert server["address"] == "localhost" and CONFIG["client"]["showErrorDetails"] == "type"


@pytest.mark.parametrize("file", ["nginx", "caddy"])
def test_both_proxies_send_the_same_policy(file: str) -> None:
    policies = re.findall(r"Content-Security-Policy \"([^\"]+)\"", PAGE)
    assert len(policies) == 2 and policies[0] == policies[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policies[0].split(";"))
    assert rules["default-src"] == "'self'" and rules["frame-ancestors"] == "'none'"
    assert not re.search(r"https?:|\*", policies[0]), "nothing from another host"


def test_what_is_kept_in_memory_is_bounded_as_the_page_says() -> None:
    from engine.trace_size import MOST_BYTES
    from ui import hiding, model_refs, model_shelf, passes, resources

    table = PAGE.split("<!-- memory:")[1].split("\n\n")[0]
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in table.splitlines()[3:]]
    most = {name.split(",")[0]: value for name, _, value in (row for row in rows if len(row) == 3)}
    small, large = model_shelf.MOST_SMALL, model_shelf.MOST_LARGE
    bounds = {
        "models up to 20 million parameters": small * 4 * model_refs.LARGE,
        "passes over texts of these": 4 * MOST_BYTES,
        "moments of training": resources.MOMENT_BYTES,
        "logits around gaps": 2 * hiding.READ_BYTES,
    }
    for name, n_bytes in bounds.items():
        assert int(most[name]) * 1_000_000 == n_bytes, name
    assert f"for pictures of the inside | 17 | {passes.KEPT_BYTES // 1_000_000} |" in table
    assert f"parameters, {small} of them" in table and f"parameters, {large} of them" in table
    assert f"| {4 * large} P |" in table


def test_limits_are_those_of_the_code() -> None:
    from engine.classes import MOST, MOST_ON_SERVER
    from engine.run_spec import MOST_AT_ONCE
    from engine.runs import MOST_ACTIVE, MOST_RUNS
    from engine.teacher_secret import MOST_IN_WINDOW

    assert f"| {MOST_ACTIVE}, {MOST_RUNS} |" in PAGE and f"| {MOST}, {MOST_ON_SERVER:,} |" in PAGE
    assert f"{MOST_AT_ONCE:,} tokens" in PAGE
    assert MOST_IN_WINDOW == 20 and "twenty a\nminute" in PAGE
