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
