"""A folder of this machine, a real sandbox, and `abx` in processes of its own between them."""

import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

WITHIN_S = 60


@dataclass
class Desk:
    """A folder, and a sandbox that `abx` reaches from it."""

    folder: Path
    environ: dict[str, str]
    sandbox: str = ""

    def abx(self, *words: str, data: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """Run `abx` in the folder, with these bytes as its stdin."""
        command = [sys.executable, "-m", "cloche_cli", *words]
        return subprocess.run(
            command, input=data, capture_output=True, env=self.environ, cwd=self.folder, timeout=WITHIN_S, check=False
        )

    def inside(self, line: str) -> str:
        """What a shell command prints in the sandbox."""
        done = self.abx("exec", "--sandbox", self.sandbox, line)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()


@pytest.fixture
def desk(tmp_path: Path) -> Generator[Desk]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    places = {"ABX_LOCAL_STATE_DIR": str(tmp_path / "state"), "ABX_LOCAL_RUNTIME_DIR": str(tmp_path / "run")}
    folder = tmp_path / "here"
    folder.mkdir()
    found = Desk(folder, {**kept, **places, "HOME": str(tmp_path)})
    found.sandbox = found.abx("sandbox", "create").stdout.decode().strip()
    yield found
    found.abx("sandbox", "kill", found.sandbox)
