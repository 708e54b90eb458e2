"""What Loupe stands on: pinned, there, used, licensed; and, where it can be asked, known weaknesses."""

import ast
import importlib.metadata as metadata
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
FILES = ("requirements.txt", "requirements-models.txt", "requirements-dev.txt")
PRODUCT = ("engine", "viz", "ui", "pages", "wording", "pretrained")
BESIDE = ("benchmarks", "trials", "tests")
NOT_IMPORTED = {
    "uvloop": "Streamlit takes it where it is installed",
    "pytest-xdist": "the tests' command names it", "ruff": "run as a program", "mypy": "run as a program",
    "pandas-stubs": "read by mypy",
}  # fmt: skip
# Words of licences that are fine to stand on.
FREE = (
    "mit", "bsd", "apache", "mpl", "mozilla", "psf", "python software foundation", "isc", "zlib", "unlicense",
    "cnri", "0bsd", "hpnd", "cc0", "bsl-1.0", "historical permission", "public domain",
)  # fmt: skip
NO_METADATA = {"axe-playwright-python": "MIT, with axe-core under MPL-2.0"}  # what their LICENSE files say


def lines(file: str) -> list[str]:
    """Requirements of a file, without comments and files that it includes."""
    found = [line.split("#")[0].strip() for line in (ROOT / file).read_text("utf-8").splitlines()]
    return [line for line in found if line and not line.startswith("-r ")]


def wanted(*files: str) -> dict[str, Requirement]:
    """Requirements by name."""
    return {canonicalize_name(r.name): r for file in files for r in map(Requirement, lines(file))}


@cache
def closure(*files: str) -> frozenset[str]:
    """Names of all packages that these files bring, themselves and what they need on this machine."""
    left, found = list(wanted(*files)), set[str]()
    while left:
        name = left.pop()
        if name in found or not _there(name):
            continue
        found.add(name)
        for line in metadata.requires(name) or []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                left.append(canonicalize_name(need.name))
    return frozenset(found)


def _there(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


@pytest.mark.parametrize("file", FILES)
def test_every_requirement_is_pinned_to_one_version(file: str) -> None:
    for line in lines(file):
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.]+(; .+)?", line), f"{file}: {line}"
    text = (ROOT / file).read_text("utf-8")
    assert "://" not in text and "--" not in text, "from the package registry alone"
    included = re.findall(r"^-r (.+)$", text, flags=re.MULTILINE)
    assert included == (["requirements.txt", "requirements-models.txt"] if "dev" in file else [])


@pytest.mark.parametrize("name", wanted(*FILES))
def test_what_is_installed_is_what_is_pinned(name: str) -> None:
    requirement = wanted(*FILES)[name]
    if requirement.marker and not requirement.marker.evaluate():
        pytest.skip(f"not for this system: {requirement.marker}")
    assert metadata.version(name).split("+")[0] in requirement.specifier  # torch for the CPU is 2.13.0+cpu


def test_what_packages_need_of_each_other_is_there() -> None:
    wrong = []
    for name in sorted(closure(*FILES)):
        for line in metadata.requires(name) or []:
            need = Requirement(line)
            if need.marker is not None and not need.marker.evaluate({"extra": ""}):
                continue
            if not _there(need.name):
                wrong.append(f"{name} needs {need}, which is not installed")
            elif not need.specifier.contains(metadata.version(need.name), prereleases=True):
                wrong.append(f"{name} needs {need}, and {metadata.version(need.name)} is installed")
    assert not wrong


def imported(*rooms: str) -> dict[str, str]:
    """Top-level names that these rooms import, each with one file that does."""
    files = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    found: dict[str, str] = {}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            found |= {name.split(".")[0]: str(path.relative_to(ROOT)) for name in names}
    return {name: file for name, file in found.items() if name not in sys.stdlib_module_names | OWN}


OWN = {path.name for path in ROOT.iterdir() if path.is_dir()} | {"app"}


def packages(names: Iterable[str]) -> dict[str, set[str]]:
    """Imported name -> packages that have it."""
    return {name: {canonicalize_name(p) for p in _have().get(name, [])} for name in names}


@cache
def _have() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def test_the_program_imports_only_what_its_requirements_name() -> None:
    named = set(wanted(*FILES[:2]))
    for name, owners in packages(found := imported(*PRODUCT)).items():
        if name == "transformers":  # the peer of some benchmarks and tests
            continue
        assert owners & named, f"{found[name]} imports {name}, which no line of {FILES[:2]} names"


def test_tests_and_benchmarks_import_only_what_the_requirements_bring() -> None:
    brought = closure(*FILES)
    for name, owners in packages(found := imported(*BESIDE)).items():
        assert owners & brought, f"{found[name]} imports {name}, which no requirement brings"


def test_no_requirement_is_left_over() -> None:
    used = {owner for owners in packages(imported(*PRODUCT, *BESIDE)).values() for owner in owners}
    left = set(wanted(*FILES)) - used - NOT_IMPORTED.keys()
    assert not left, "nothing imports these"
    assert NOT_IMPORTED.keys() <= set(wanted(*FILES)), "these are no requirements any more"


def licence(name: str) -> str:
    """What a package says of its licence, in lower case."""
    told = metadata.metadata(name)
    classes = [line for line in told.get_all("Classifier") or [] if line.startswith("License")]
    parts = [
        told.get("License-Expression"),
        (told.get("License") or "")[:200],
        *classes,
        NO_METADATA.get(name),
    ]
    return " ".join(part for part in parts if part).lower()


@pytest.mark.parametrize("name", sorted(closure(*FILES)))
def test_every_licence_is_known_and_free(name: str) -> None:
    said = licence(name)
    assert any(re.search(rf"\b{re.escape(part)}", said) for part in FREE), f"{name}: {said or 'says nothing'}"


# ---- known weaknesses: needs the package pip-audit and a network


def weaknesses(status: int, out: str, err: str) -> list[str] | None:
    """What pip-audit found; None if it could ask nobody."""
    try:
        told = json.loads(out)
    except ValueError:
        assert status, f"pip-audit said nothing that can be read:\n{out}{err}"
        return None
    return [
        f"{each['name']} {each.get('version', '')}: {hole['id']}, mended in {hole['fix_versions']}"
        for each in told["dependencies"]
        for hole in each.get("vulns", [])
    ]


def test_no_weakness_is_known_of_what_is_pinned() -> None:
    if importlib.util.find_spec("pip_audit") is None:
        pytest.skip("pip-audit is not installed; docs/serving.md says how to ask it")
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--format",
        "json",
        "--progress-spinner",
        "off",
        "--timeout",
        "30",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)  # of all that is installed
    found = weaknesses(done.returncode, done.stdout, done.stderr)
    if found is None:
        pytest.skip(f"pip-audit reached no database: {done.stderr.strip().splitlines()[-1:]}")
    assert not found


def test_what_pip_audit_says_is_understood() -> None:
    hole = {"id": "PYSEC-1", "fix_versions": ["2.0"], "aliases": [], "description": ""}
    two = [{"name": "a", "version": "1.0", "vulns": [hole]}, {"name": "b", "version": "1", "vulns": []}]
    told = {"dependencies": [*two, {"name": "loupe", "skip_reason": "not there"}]}
    assert weaknesses(1, json.dumps(told), "") == ["a 1.0: PYSEC-1, mended in ['2.0']"]
    assert weaknesses(0, '{"dependencies": []}', "") == []
    assert weaknesses(1, "", "ConnectionError") is None, "no answer is no all-clear"
    with pytest.raises(AssertionError):
        weaknesses(0, "", "")
