"""Facts about the repository that the architecture tests share: its packages and its hand-written files."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent

# Third-party distributions that each package may require and import (architecture, "who may import whom").
ALLOWED_THIRD_PARTY: Mapping[str, frozenset[str]] = {
    "contract": frozenset({"pydantic", "jsonschema", "referencing", "typing-extensions"}),
    "agentd": frozenset(),
    "docker-manager": frozenset({"anyio", "docker", "httpx", "zstandard"}),
    "sdk": frozenset({"httpx", "httpcore", "sniffio", "anyio", "tomli"}),
    "mcp-http": frozenset({"mcp", "anyio", "prometheus-client", "pyjwt", "starlette"}),
    "mcp-stdio": frozenset({"mcp", "anyio"}),
    "local": frozenset({"anyio"}),
    "testkit": frozenset({"pytest", "syrupy", "anyio"}),
    "cli": frozenset({"anyio", "click", "pyyaml", "rich", "tomli"}),
    "compat": frozenset(),
}
# Installed by an extra only, and counted with the package where it imports.
ALLOWED_EXTRAS: Mapping[str, frozenset[str]] = {
    "contract": frozenset({"mcp", "anyio"}),
    "mcp-http": frozenset({"uvicorn"}),
    "testkit": frozenset({"mcp"}),
}
# The contract's models are pydantic models: whoever has the contract has pydantic, its MISSING and its SecretStr.
WITH_THE_CONTRACT = frozenset({"pydantic", "pydantic_core"})
# Imported under another name than the distribution's.
IMPORT_NAMES: Mapping[str, frozenset[str]] = {
    "mcp": frozenset({"mcp", "mcp_types"}),
    "pyjwt": frozenset({"jwt"}),
    "pyyaml": frozenset({"yaml"}),
}


@dataclass(frozen=True)
class Package:
    """One distribution of the workspace."""

    folder: Path
    project: Mapping[str, Any]

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def name(self) -> str:
        return str(self.project["name"])

    @property
    def source(self) -> Path:
        (package,) = [path for path in (self.folder / "src").iterdir() if (path / "__init__.py").exists()]
        return package

    @property
    def requirements(self) -> list[str]:
        return [str(line) for line in self.project.get("dependencies", [])]


@cache
def packages() -> tuple[Package, ...]:
    """Every published distribution, in the order of the folder names."""
    found = sorted((ROOT / "packages").glob("*/pyproject.toml"))
    return tuple(Package(path.parent, tomllib.loads(path.read_text())["project"]) for path in found)


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file that git tracks, and every new file it would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


def is_generated(path: Path) -> bool:
    return "_gen" in path.relative_to(ROOT).parts


def hand_written() -> Iterator[Path]:
    """Every Python module that a person wrote."""
    return (path for path in tracked_files() if path.suffix == ".py" and not is_generated(path))


@cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def lines_of(folder: Path) -> int:
    """The number of lines in the hand-written modules below a folder."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in hand_written() if folder in path.parents)


def short(path: Path) -> str:
    return str(path.relative_to(ROOT))
