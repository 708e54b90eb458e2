"""ruff, mypy and the README's promise about commands, so that one command runs every check."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*command: str) -> None:
    result = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, f"\n{result.stdout}{result.stderr}"


def test_ruff() -> None:
    run("ruff", "check", "--quiet", "--output-format=concise", ".")


def test_types() -> None:
    run("mypy")


def test_the_readme_and_the_test_machine_run_the_same_command() -> None:
    def command(text: str) -> str:
        found = re.findall(r"^python3 -m venv .*-m pytest.*$", text, flags=re.MULTILINE)
        assert len(found) == 1
        return found[0].replace(" -q", "")

    assert command((ROOT / "README.md").read_text("utf-8")) == command((ROOT / ".ci/run").read_text("utf-8"))


def test_a_tiny_number_in_a_table_is_not_shown_as_0() -> None:
    """A column of numbers has so many digits that count, not places: 1e-6 at 4 places reads 0.0000."""
    column = re.compile(r"NumberColumn\([^#\n]*?format=\"%\+?\.[2-9]f\"", flags=re.DOTALL)
    found = {path.name: column.findall(path.read_text("utf-8")) for path in (ROOT / "ui").rglob("*.py")}
    assert not {name: formats for name, formats in found.items() if formats}
    assert column.search('NumberColumn(format="%+.4f")')
