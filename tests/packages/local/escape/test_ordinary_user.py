"""The battery again as an ordinary user of the host, where root runs the tests: his sandboxes have other layers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.packages.local.sandboxes import HOST_ROOT

_UID = 64_321
_REPOSITORY = Path(__file__).parents[4]


def _system_python() -> str | None:
    """A Python that everybody may read, of the version whose libraries we have."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(name, path="/usr/bin:/usr/local/bin")
    return found if found and Path(found).resolve().is_relative_to("/usr") else None


@pytest.mark.skipif(not HOST_ROOT, reason="the tests run as an ordinary user already")
def test_the_battery_holds_for_an_ordinary_user() -> None:
    """Issue 2: as root and as an ordinary user."""
    python = _system_python()
    if python is None:
        pytest.skip("no Python of this version outside root's home")
    folders = [str(path) for path in sorted(_REPOSITORY.glob("packages/*/src"))]
    folders += [path for path in sys.path if path.endswith("site-packages")]
    with tempfile.TemporaryDirectory(prefix="cl-user-") as home:
        os.chown(home, _UID, _UID)
        command = [
            python,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(Path(__file__).with_name("test_escapes.py")),
        ]
        environment = {
            "HOME": home,
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(folders),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": home,
        }
        done = subprocess.run(
            command,
            cwd=_REPOSITORY,
            env=environment,
            user=_UID,
            group=_UID,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
    if "Permission denied" in done.stderr and done.returncode == 4:
        pytest.skip("an ordinary user may not read this copy of the repository")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "this machine cannot" not in done.stdout
