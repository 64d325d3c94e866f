"""Who may import whom. Each rule is shown to bite: a planted violation is reported with its file."""

from __future__ import annotations

import ast
import itertools
import operator
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture.workspace import (
    ALLOWED_EXTRAS,
    ALLOWED_THIRD_PARTY,
    IMPORT_NAMES,
    ROOT,
    WITH_THE_CONTRACT,
    Package,
    hand_written,
    packages,
    short,
    syntax_tree,
)

# Where a failure of any kind is turned into an answer or an exit status (style S5), and why there.
CATCH_ALL = {
    "packages/contract/src/cloche_contract/kernel/dispatch.py": "the border to a tool set",
    "packages/contract/src/cloche_contract/serving/session.py": "asks who records; dispatch meets it again",
    "packages/agentd/src/cloche_agentd/server.py": "the border to a request of the agent",
    "packages/cli/src/cloche_cli/launch.py": "a process entry point",
    "packages/mcp-http/src/cloche_mcp_http/store.py": "the border to one client's session",
    "packages/mcp-stdio/src/cloche_mcp_stdio/server.py": "a process entry point",
    "packages/agentd/src/cloche_agentd/display.py": "calls methods of user code, which may raise anything",
    "packages/agentd/src/cloche_agentd/outcome.py": "calls methods of user code, which may raise anything",
    "codegen/src/cloche_codegen/lint.py": "whatever a validator raises for a broken schema is the author's to read",
}


def test_import_linter_finds_nothing() -> None:
    """Architecture 3.3."""
    done = lint_imports(ROOT, {})
    assert done.returncode == 0, done.stdout


VIOLATIONS = [
    ("sdk", "import cloche_local", "Packages meet through the contract"),
    ("sdk", "import mcp", "The MCP library is imported by"),
    ("sdk", "from cloche_contract._gen import errors", "Generated modules are reached through the facades"),
    ("mcp-http", "import cloche_mcp_stdio", "Packages meet through the contract"),
    ("mcp-stdio", "import cloche_agentd", "Nothing but the local runtime knows"),
    ("mcp-stdio", "import httpx", "HTTP clients live in the SDK"),
    ("agentd", "import pydantic", "The in-sandbox agent is standard library only"),
    ("contract", "import cloche_sdk", "Packages meet through the contract"),
    ("local", "import cloche_agentd", "The zygote is the one module"),
    ("local", "import cloche_codegen", "No package needs the generator at run time"),
]


@pytest.fixture(scope="module")
def report_of_planted_violations(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of copies of the packages in which each violation is planted as a module."""
    folder = tmp_path_factory.mktemp("planted")
    sources = {package.key: package.source for package in packages()}
    for key in {key for key, _line, _contract in VIOLATIONS}:
        shutil.copytree(sources[key], folder / sources[key].name, ignore=shutil.ignore_patterns("__pycache__"))
    for number, (key, line, _contract) in enumerate(VIOLATIONS):
        (folder / sources[key].name / f"planted_{number}.py").write_text(line + "\n")
    done = lint_imports(folder, {"PYTHONPATH": str(folder)})
    assert done.returncode == 1, done.stdout
    return done.stdout.partition("Broken contracts")[2]


@pytest.mark.parametrize("number", range(len(VIOLATIONS)), ids=[line for _key, line, _contract in VIOLATIONS])
def test_a_planted_violation_is_reported_with_its_module_and_line(
    number: int, report_of_planted_violations: str
) -> None:
    """Architecture 3.3: the configuration reports the import that breaks it, under the rule that forbids it."""
    _key, _line, contract = VIOLATIONS[number]
    (told,) = [body for title, body in sections(report_of_planted_violations) if title.startswith(contract)]
    assert f".planted_{number} ->" in told
    assert "(l.1)" in told


def sections(report: str) -> Iterator[tuple[str, str]]:
    """The broken contracts of a report: title and what is told of it. A title is underlined and may be wrapped."""
    parts = re.split(r"^-{5,}$", report, flags=re.MULTILINE)
    for before, after in itertools.pairwise(parts):
        yield " ".join(before.rstrip().rpartition("\n\n")[2].split()), after


def lint_imports(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as main; main()",
            "--config",
            str(ROOT / "pyproject.toml"),
            "--no-cache",
        ],
        cwd=folder,
        env={**os.environ, **environment, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("package", packages(), ids=operator.attrgetter("key"))
def test_a_package_imports_only_the_third_parties_it_is_allowed(package: Package) -> None:
    """Architecture 3.3, the column of third parties. An extra's modules are counted with the package."""
    allowed = ALLOWED_THIRD_PARTY[package.key] | ALLOWED_EXTRAS.get(package.key, frozenset())
    strangers = {
        f"{short(path)}: {module}"
        for path in package.source.rglob("*.py")
        for module in third_parties(path) - importable(allowed) - given(package)
    }
    assert strangers == set()


@pytest.mark.parametrize("package", packages(), ids=operator.attrgetter("key"))
def test_a_package_requires_what_it_imports(package: Package) -> None:
    """An import that nothing requires breaks a clean install."""
    extras = [line for lines in package.project.get("optional-dependencies", {}).values() for line in lines]
    required = importable(set(requirement_names([*package.requirements, *extras])))
    # The extra `mcp` of the contract brings the library for whoever asks for it.
    if any("cloche-contract[mcp]" in line for line in [*package.requirements, *extras]):
        required |= IMPORT_NAMES["mcp"]
    imported = {module for path in package.source.rglob("*.py") for module in third_parties(path)}
    assert imported - required - given(package) == set()


def given(package: Package) -> frozenset[str]:
    """What a package may import without asking: it comes with the contract."""
    needs_contract = any(line.startswith("cloche-contract") for line in package.requirements)
    return WITH_THE_CONTRACT if needs_contract or package.key == "contract" else frozenset()


def importable(distributions: set[str] | frozenset[str]) -> set[str]:
    """The module names that these distributions bring."""
    return {module for name in distributions for module in IMPORT_NAMES.get(name, frozenset({name.replace("-", "_")}))}


def third_parties(path: Path) -> set[str]:
    """The top-level modules that a file imports from outside the standard library and the workspace."""
    return {
        module
        for module in imported_modules(path)
        if module not in sys.stdlib_module_names and not module.startswith(("cloche_", "agent_sandbox"))
    }


def requirement_names(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield Requirement(line).name.lower()


def imported_modules(path: Path) -> set[str]:
    """The top-level names of every absolute import in a module, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_a_failure_of_any_kind_is_caught_in_the_known_places_only() -> None:
    """Style S5: catch what you can name."""
    places: set[str] = set()
    for path in hand_written():
        if path.relative_to(ROOT).parts[0] == "tests":
            continue
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.ExceptHandler) and "Exception" in _caught(node):
                places.add(short(path))
    assert places - set(CATCH_ALL) == set()


def _caught(handler: ast.ExceptHandler) -> set[str]:
    """The plain names in an except clause; a bare one counts as Exception."""
    if handler.type is None:
        return {"Exception"}
    return {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}


def test_httpx_is_imported_by_one_module_of_the_sdk() -> None:
    """Decision D1."""
    sdk = next(package for package in packages() if package.key == "sdk")
    importers = {path.name for path in sdk.source.rglob("*.py") if "httpx" in imported_modules(path)}
    assert importers == {"_http.py"}


def test_no_package_imports_the_generated_modules_of_another() -> None:
    """Architecture 0.2. import-linter sees modules; this sees every line, also where a package is not installed."""
    offenders = {
        f"{short(path)}: {module}"
        for package in packages()
        for path in package.source.rglob("*.py")
        for module in _generated_imports(path)
        if not module.startswith(package.source.name)
    }
    assert offenders == set()


def _generated_imports(path: Path) -> set[str]:
    return {
        node.module
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and "_gen" in node.module.split(".")
    }
