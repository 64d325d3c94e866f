"""Run a program as an ordinary user of the host, where root runs the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

UID = 64_321
REPOSITORY = Path(__file__).parents[3]


def system_python() -> str | None:
    """A Python that everybody may read, of the version whose libraries we have."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(name, path="/usr/bin:/usr/local/bin")
    return found if found and Path(found).resolve().is_relative_to("/usr") else None


def environment(home: str) -> dict[str, str]:
    """What this user's process gets: our packages and the libraries of this environment, by path."""
    folders = [str(path) for path in sorted(REPOSITORY.glob("packages/*/src"))]
    folders += [path for path in sys.path if path.endswith("site-packages")]
    return {
        "HOME": home,
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": os.pathsep.join(folders),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": home,
    }


def run_as_user(command: Sequence[str], home: str, *, prepare: str = "true") -> subprocess.CompletedProcess[str]:
    """Run `command` as that user, in the repository, in a mount namespace of its own.

    Args:
        prepare: a shell command that root runs in that namespace before.
    """
    os.chown(home, UID, UID)
    script = f'{prepare} && exec setpriv --reuid={UID} --regid={UID} --clear-groups "$@"'
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command],
        cwd=REPOSITORY,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )


def missing() -> str:
    """What this machine lacks for it; empty where nothing."""
    if system_python() is None:
        return "no Python of this version outside root's home"
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return "no unshare or setpriv"
    return ""
