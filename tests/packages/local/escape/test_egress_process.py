"""The egress process, should its proxy ever be taken over: what it cannot reach, and that each layer counts.

It has the host's network and runs on the host, so it is confined for itself. The confinement is tried in a process of
the test's own, which stands for a proxy that runs foreign code. Source: issue 3, parts 1 and 2; decision 23.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import asdict, replace
from pathlib import Path

import anyio
import pytest

from cloche_local.spec import Protections
from tests.packages.local.sandboxes import HOST_ROOT

_TAKEN_OVER = """
import ctypes, json, os, sys
from cloche_local import egress, syscalls
from cloche_local.spec import Protections
state, host_pid, protections = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
libc = syscalls.load()
report = os.dup(1)
egress.confine([state], Protections(**protections))
def works(attempt):
    try:
        return attempt() is not False
    except OSError:
        return False
def run_a_program():
    if libc.fork() == 0:
        libc.execv(b"/bin/true", (ctypes.c_char_p * 2)(b"true", None))
        libc._exit(9)
    return os.waitstatus_to_exitcode(os.wait()[1]) == 0
os.write(report, json.dumps({
    "read-a-token": works(lambda: os.open(state + "/a/token", os.O_RDONLY)),
    "signal-a-process": works(lambda: os.kill(host_pid, 0)),
    "mount": libc.mount(b"x", b"/mnt", b"tmpfs", ctypes.c_ulong(0), None) == 0,
    "run-a-program": works(run_a_program),
}).encode())
"""
_LAYERS: dict[str, tuple[str, ...]] = {
    "read-a-token": ("egress_state_hidden",),
    "signal-a-process": ("seccomp",),
    "mount": ("seccomp", "drop_capabilities"),
    "run-a-program": ("seccomp",),
}
_ROOT_LAYERS: dict[str, tuple[str, ...]] = {
    "read-a-token": ("egress_state_hidden", "egress_own_id"),
    "signal-a-process": ("seccomp", "egress_own_id"),
    # Leaving root's id takes the capabilities along.
    "mount": ("seccomp", "drop_capabilities", "egress_own_id"),
    "run-a-program": ("seccomp",),
}
_HERE = _ROOT_LAYERS if HOST_ROOT else _LAYERS


@pytest.fixture(scope="module")
def state(usable: None) -> Generator[str]:
    """A state folder with a token in it."""
    with tempfile.TemporaryDirectory(prefix="cl-") as path:
        Path(path, "a").mkdir(mode=0o700)
        Path(path, "a", "token").write_text("secret")
        yield path


@pytest.fixture(scope="module")
def other() -> Generator[int]:
    """A process of the same user."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


async def _attacked(state: str, other: int, without: tuple[str, ...]) -> dict[str, bool]:
    protections = replace(Protections(), **dict.fromkeys(without, False))
    done = await anyio.run_process(
        [sys.executable, "-c", _TAKEN_OVER, state, str(other), json.dumps(asdict(protections))],
        check=False,
        cwd="/",
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout, done.stderr.decode()
    return json.loads(done.stdout)


async def test_a_proxy_that_was_taken_over_reaches_nothing_of_the_host(state: str, other: int) -> None:
    """No token, no process, no mount, no program."""
    assert await _attacked(state, other, ()) == dict.fromkeys(_HERE, False)


@pytest.mark.parametrize("attempt", _HERE)
async def test_without_its_layers_it_does(state: str, other: int, attempt: str) -> None:
    """Each attempt works once what stops it is taken out, and any one layer alone stops it."""
    layers = _HERE[attempt]
    assert (await _attacked(state, other, layers))[attempt]
    for kept in layers if len(layers) > 1 else ():
        assert not (await _attacked(state, other, tuple(name for name in layers if name != kept)))[attempt], kept
