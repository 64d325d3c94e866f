"""The same schemas give the same bytes, whoever builds and wherever."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cloche_codegen.plan import CONTRACT
from tests.codegen.schemas import ROOT


@dataclass(frozen=True)
class Place:
    """How one run of the generator differs from another."""

    folder: str
    hash_seed: str
    umask: int
    locale: str
    zone: str


PLACES = (
    Place("plain", "0", 0o022, "C", "UTC"),
    Place("with space/dëep", "4242", 0o077, "C.UTF-8", "Asia/Tokyo"),
)


def _build(tmp_path: Path, place: Place) -> Path:
    repository = tmp_path / place.folder
    shutil.copytree(ROOT / "schemas", repository / "schemas")
    ignore = shutil.ignore_patterns("__pycache__", "_gen")
    shutil.copytree(ROOT / "packages/sdk/src/cloche_sdk", repository / "packages/sdk/src/cloche_sdk", ignore=ignore)
    (repository / "packages/cli").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / "packages/cli" / name, repository / "packages/cli")
    environment = {**os.environ, "PYTHONHASHSEED": place.hash_seed, "LC_ALL": place.locale, "TZ": place.zone}
    environment.pop("PYTHONUTF8", None)
    inner = repository / "schemas" / "tools"
    command = [sys.executable, "-m", "cloche_codegen", "build"]
    subprocess.run(command, cwd=inner, env=environment, umask=place.umask, check=True, capture_output=True, timeout=120)
    return repository


def _snapshot(repository: Path) -> dict[str, tuple[bytes, int]]:
    found: dict[str, tuple[bytes, int]] = {}
    for folder in ("packages", "docs"):
        for file in sorted((repository / folder).rglob("*")):
            if file.is_file() and ("_gen" in file.parts or folder == "docs"):
                found[file.relative_to(repository).as_posix()] = (file.read_bytes(), file.stat().st_mode & 0o777)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[bytes, int]]]:
    base = tmp_path_factory.mktemp("runs")
    return [_snapshot(_build(base, place)) for place in PLACES]


def test_bytes_and_modes_are_the_same_everywhere(runs: list[dict[str, tuple[bytes, int]]]) -> None:
    """Issue 2: byte-identical under any PYTHONHASHSEED, folder and locale; modes under any umask."""
    first, second = runs
    assert len(first) > 50
    assert first == second


def test_what_is_committed_is_what_they_wrote(runs: list[dict[str, tuple[bytes, int]]]) -> None:
    committed = {path: (ROOT / path).read_bytes() for path in runs[0]}
    assert {path: raw for path, (raw, _) in runs[0].items()} == committed


def test_no_output_names_the_folder_of_the_run(runs: list[dict[str, tuple[bytes, int]]]) -> None:
    assert [path for path, (raw, _) in runs[1].items() if b"with space" in raw] == []
    assert f"{CONTRACT}/MANIFEST.json" in runs[0]
