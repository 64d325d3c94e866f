"""./bootstrap finds a Python, says what is missing, and is quick when nothing changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.workspace import ROOT


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository without packages: bootstrap makes the environment and has little to install."""
    for name in ("bootstrap", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def bootstrap(clone: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(clone / "bootstrap"), *arguments],
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": str(clone / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def fake_python(folder: Path, body: str) -> Path:
    """A program that answers bootstrap's question in place of a Python."""
    program = folder / "fake-python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return program


def test_a_python_without_venv_is_refused_with_the_package_to_install(clone: Path) -> None:
    """Debian ships venv and ensurepip in a package of their own."""
    crippled = fake_python(
        clone, f"shift 2; exec {sys.executable} -I -c \"import sys; sys.modules['ensurepip'] = None\n$1\" x"
    )
    done = bootstrap(clone, PYTHON=str(crippled))
    assert done.returncode == 1
    assert "has no venv or ensurepip" in done.stderr
    assert f"apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-venv" in done.stderr
    assert not (clone / ".venv").exists()


def test_an_old_python_is_refused_with_the_version_that_is_needed(clone: Path) -> None:
    old = fake_python(clone, f'shift 2; exec {sys.executable} -I -c "import sys; sys.version_info = (3, 9, 2)\n$1" x')
    done = bootstrap(clone, PYTHON=str(old))
    assert done.returncode == 1
    assert "Python 3.9; 3.11 or newer is needed" in done.stderr


def test_a_python_that_the_caller_cannot_run_is_refused_by_name(clone: Path) -> None:
    done = bootstrap(clone, PYTHON="/nowhere/python3")
    assert done.returncode == 1
    assert "/nowhere/python3: not found, or not yours to run" in done.stderr


def test_an_unknown_option_is_refused_before_anything_happens(clone: Path) -> None:
    done = bootstrap(clone, "--everything")
    assert done.returncode == 2
    assert not (clone / ".venv").exists()


def test_a_second_run_has_nothing_to_do_until_a_pin_changes(clone: Path) -> None:
    """It is the first half of README's commands, so it must cost nothing when all is there."""
    first = bootstrap(clone, PYTHON=sys.executable)
    assert first.returncode == 0, first.stderr
    assert "bootstrap: done" in first.stdout
    second = bootstrap(clone)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    with (clone / "constraints.txt").open("a") as pins:
        pins.write("# another\n")
    assert "bootstrap: done" in bootstrap(clone).stdout
