"""Wheels of this tree and of what they need, and environments made of nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.architecture.workspace import ROOT, Package

CONSTRAINTS = ROOT / "constraints.txt"


def build(package: Package, folder: Path) -> Path:
    """The wheel of a package."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / package.key)], package.folder)
    (wheel,) = (folder / package.key).glob("*.whl")
    return wheel


def download(wheels: Iterable[str], folder: Path, python: Path | None = None) -> None:
    """Fetch all that these wheels of ours need, once. Environments are then made without an index.

    Args:
        wheels: paths, with extras where they are wanted: a stranger's distribution of the same name is never taken.
        python: for another interpreter than this one.
    """
    folder.mkdir(exist_ok=True)
    pip = [sys.executable, "-m", "pip", *([] if python is None else ["--python", str(python)]), "download", "--quiet"]
    # The pins are for the Pythons of the development environment; another one gets what its users get.
    pins = ["--constraint", str(CONSTRAINTS)] if python is None else []
    run([*pip, "--dest", str(folder), *pins, *wheels], folder)


def environment(folder: Path, python: str = sys.executable) -> Path:
    """A new, empty environment; returns its interpreter."""
    run([python, "-m", "venv", "--without-pip", str(folder)], folder.parent)
    return folder / "bin" / "python"


def install(python: Path, wheelhouse: Path, requirements: Sequence[str]) -> None:
    """Install from the wheelhouse alone."""
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
    run([*uv, "--no-index", "--find-links", str(wheelhouse), *requirements], wheelhouse)


def run(command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """The standard output of a command that must succeed.

    Args:
        variables: what is added to the environment.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:6])} … ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
