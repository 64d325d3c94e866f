"""The version of every distribution, and the command that moves all of them: `nox -s bump -- X.Y.Z`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.architecture.workspace import ROOT, packages

_VERSION = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
_SIBLING = re.compile(r'("cloche(?:-[a-z-]+)?(?:\[[a-z,-]+\])?~=)[0-9.]+(?=[";])')


def files() -> list[Path]:
    """Every pyproject.toml that carries the common version."""
    return [package.folder / "pyproject.toml" for package in packages()] + [ROOT / "codegen" / "pyproject.toml"]


def version_in(path: Path) -> str:
    (version,) = _VERSION.findall(path.read_text(encoding="utf-8"))
    return str(version)


def bumped(text: str, version: str) -> str:
    """The text of a pyproject.toml with its own version and those of its siblings replaced."""
    return _SIBLING.sub(rf"\g<1>{version}", _VERSION.sub(f'version = "{version}"', text))


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not re.fullmatch(r"\d+\.\d+\.\d+", arguments[0]):
        sys.stderr.write("Give the new version as three numbers, such as 0.2.0.\n")
        return 2
    for path in files():
        path.write_text(bumped(path.read_text(encoding="utf-8"), arguments[0]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
