"""What is committed is what the schemas say, and every difference is named with the file that owns it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cloche_codegen.plan import CONTRACT, MANIFEST, Output, outputs, roots
from cloche_codegen.write import compare, write
from tests.codegen.schemas import ROOT


@pytest.fixture(scope="module")
def planned() -> list[Output]:
    return outputs(ROOT)


@pytest.fixture
def tree(tmp_path: Path, planned: list[Output]) -> Path:
    """A repository with nothing but the outputs."""
    for output in planned:
        target = tmp_path / output.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(output.text, encoding="utf-8")
    return tmp_path


def _findings(tree: Path, planned: list[Output]) -> list[str]:
    return [str(finding) for finding in compare(tree, planned, roots(tree))]


def test_every_committed_output_is_what_the_schemas_say(planned: list[Output]) -> None:
    """Architecture 3.7: a plain pytest catches drift."""
    assert _findings(ROOT, planned) == []


def test_unchanged_tree_has_no_finding(tree: Path, planned: list[Output]) -> None:
    assert _findings(tree, planned) == []


def test_one_changed_byte_is_named_with_its_file_and_its_schema(tree: Path, planned: list[Output]) -> None:
    """Issue 2: after one byte changed under any _gen, check names the file and its schema."""
    path = f"{CONTRACT}/models/sandbox/run_code.py"
    raw = bytearray((tree / path).read_bytes())
    raw[-2] ^= 1
    (tree / path).write_bytes(raw)
    assert _findings(tree, planned) == [f"changed: {path} (from schemas/tools/sandbox/run_code.json)"]


def test_one_byte_in_any_output_is_noticed(tree: Path, planned: list[Output]) -> None:
    for output in planned:
        target = tree / output.path
        target.write_bytes(target.read_bytes() + b"\n")
    findings = compare(tree, planned, roots(tree))
    assert [finding.path for finding in findings] == [output.path for output in planned]
    assert all(finding.sources for finding in findings)


@pytest.mark.parametrize(
    "folder", [CONTRACT, "packages/agentd/src/cloche_agentd/_gen", "packages/sdk/src/cloche_sdk/_gen", "docs/reference"]
)
def test_stray_file_under_any_generated_folder_is_named(tree: Path, planned: list[Output], folder: str) -> None:
    """Issue 2: after a file added under any _gen, check names the file and the sources around it."""
    (tree / folder / "extra.py").write_text("x = 1\n", encoding="utf-8")
    (found,) = _findings(tree, planned)
    assert found.startswith(f"stray: {folder}/extra.py (from ")


def test_stray_model_is_named_with_the_schemas_beside_it(tree: Path, planned: list[Output]) -> None:
    (tree / CONTRACT / "models/provider/extra.py").write_text("x = 1\n", encoding="utf-8")
    (found,) = _findings(tree, planned)
    assert found == f"stray: {CONTRACT}/models/provider/extra.py (from schemas/provider/operations.json)"


def test_generated_folder_of_a_package_that_has_none_is_stray(tree: Path, planned: list[Output]) -> None:
    folder = tree / "packages/local/src/cloche_local/_gen"
    folder.mkdir(parents=True)
    (folder / "handmade.py").write_text("", encoding="utf-8")
    (found,) = _findings(tree, planned)
    assert found.startswith("stray: packages/local/src/cloche_local/_gen/handmade.py")


def test_missing_file_is_named(tree: Path, planned: list[Output]) -> None:
    path = "docs/reference/settings.md"
    (tree / path).unlink()
    assert _findings(tree, planned) == [f"missing: {path} (from schemas/config/settings.json)"]


def test_build_repairs_everything_that_check_finds(tree: Path, planned: list[Output]) -> None:
    (tree / "docs/reference/settings.md").unlink()
    (tree / CONTRACT / "errors.py").write_text("", encoding="utf-8")
    stray = tree / CONTRACT / "old" / "tool.py"
    stray.parent.mkdir()
    stray.write_text("", encoding="utf-8")
    assert len(write(tree, planned, roots(tree))) == 3
    assert _findings(tree, planned) == []
    assert not stray.parent.exists()


def test_manifest_lists_every_output_with_a_source_that_exists(planned: list[Output]) -> None:
    """Architecture 3.7, third net."""
    manifest = json.loads(next(output.text for output in planned if output.path == MANIFEST))
    assert set(manifest["outputs"]) == {output.path for output in planned} - {MANIFEST}
    for entry in manifest["outputs"].values():
        assert entry["sources"]
        for source in entry["sources"]:
            assert (ROOT / source).is_file()
            assert source in manifest["inputs"] or not source.startswith("schemas/")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of what the generator reads and writes."""
    for folder in (
        "schemas",
        "docs/reference",
        CONTRACT,
        "packages/agentd/src/cloche_agentd/_gen",
        "packages/cli/_gen",
    ):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / "packages/sdk/src/cloche_sdk",
        tmp_path / "packages/sdk/src/cloche_sdk",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / "packages/cli" / name, tmp_path / "packages/cli")
    return tmp_path


def _check(repository: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cloche_codegen", "check"]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)


def _change_a_byte(repository: Path) -> str:
    target = repository / CONTRACT / "models/sandbox/run_code.py"
    target.write_text(target.read_text(encoding="utf-8").replace("code", "kode", 1), encoding="utf-8")
    return "models/sandbox/run_code.py (from schemas/tools/sandbox/run_code.json)"


def _add_a_file(repository: Path) -> str:
    (repository / CONTRACT / "models/lifecycle/extra.py").touch()
    return "models/lifecycle/extra.py (from schemas/lifecycle/sandbox.json)"


def _change_a_schema(repository: Path) -> str:
    target = repository / "schemas/lifecycle/sandbox.json"
    target.write_text(target.read_text(encoding="utf-8").replace("nine keys", "9 keys"), encoding="utf-8")
    return "models/lifecycle/sandbox.py (from schemas/lifecycle/sandbox.json)"


def test_check_command_is_silent_when_nothing_differs(repository: Path) -> None:
    done = _check(repository)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("change", [_change_a_byte, _add_a_file, _change_a_schema])
def test_check_command_fails_and_says_what_to_edit(repository: Path, change: Callable[[Path], str]) -> None:
    expected = change(repository)
    done = _check(repository)
    assert done.returncode == 1
    assert expected in done.stdout
    assert "python -m cloche_codegen build" in done.stderr


def test_check_command_names_the_rule_that_a_schema_breaks(repository: Path) -> None:
    target = repository / "schemas/lifecycle/sandbox.json"
    target.write_text(target.read_text(encoding="utf-8").replace("Id of the sandbox.", "Id"), encoding="utf-8")
    done = _check(repository)
    assert done.returncode == 1
    assert "L02 lifecycle/sandbox.json#SandboxMetadata.sandbox_id" in done.stderr
