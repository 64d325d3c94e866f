"""Who is signalled when a keeper does not answer: the process that the record means, and no other."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from cloche_local.ending import end_keeper
from cloche_local.provider import LocalProvider
from cloche_local.state import Record, StateFolder, read_start_time
from tests.packages.local.sandboxes import Sandbox


@pytest.fixture
def stranger() -> Generator[subprocess.Popen[bytes]]:
    """A process of this user that is no keeper."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def _record(folder: Path, sandbox: Sandbox) -> Record:
    record = StateFolder(f"{folder}/state").read(sandbox.id)
    assert record is not None
    return record


async def test_l9_a_reused_pid_is_not_mistaken_for_the_keeper(
    folder: Path, provider: LocalProvider, sandbox: Sandbox, stranger: subprocess.Popen[bytes]
) -> None:
    """Fault L9: a record names its keeper by pid and start time, so whoever has that pid later is left alone."""
    reused = replace(_record(folder, sandbox), keeper_pid=stranger.pid, init_pid=stranger.pid)
    assert await end_keeper(reused)
    assert stranger.poll() is None
    # The same record with the stranger's own start time means the stranger: the check is what saved it.
    assert await end_keeper(replace(reused, keeper_start=read_start_time(stranger.pid)))
    assert stranger.wait(5) == -signal.SIGKILL
