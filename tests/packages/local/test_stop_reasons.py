"""Stop reasons of commands, code and tasks in real sandboxes: what ended them is told, with the output so far.

Source: issue 4, part 4; issue 3, part 3; faults O11, E20, T36. tests/packages/local/test_limits.py and
test_control_groups.py have those of commands and code that are not here.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from cloche_contract.errors import SandboxLost
from cloche_contract.provider import InspectRequest
from cloche_local import limits
from cloche_local.provider import LocalProvider
from cloche_local.spec import Limits, Protections
from cloche_sdk import AsyncSandbox, Doors
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened, until_gone

_CGROUPS = limits.find_hierarchy("/sys/fs/cgroup") if HOST_ROOT else None
_needs_memory = pytest.mark.skipif(
    _CGROUPS is None or not _CGROUPS.holds("memory"), reason="no memory controller that this user may use"
)


async def _task(sandbox: Sandbox, command: str, **more: object) -> dict[str, Any]:
    """A task when it has ended, and what it printed as `stdout`."""
    task_id = os.urandom(16).hex()
    wanted = {"task_id": task_id, "command": command, "timeout": 60, **more}
    assert (await sandbox.client.post("/cloche.Tasks/Start", json=wanted)).status_code == 200
    with anyio.fail_after(60):
        while True:
            found = (await sandbox.client.post("/cloche.Tasks/Get", json={"task_id": task_id})).json()
            if found["task"]["state"] != "running":
                return {**found["task"], "stdout": base64.b64decode(found["stdout"]["data"]).decode()}
            at = {f"{name}_offset": found[name]["size"] for name in ("stdout", "stderr")}
            await sandbox.client.post("/cloche.Tasks/Get", json={"task_id": task_id, "wait_ms": 20_000, **at})


def _told(task: dict[str, Any]) -> tuple[str, str, str]:
    return task["state"], task["stop_reason"], task["stdout"][:6]


async def test_o11_a_task_that_prints_too_much_says_output_limit(sandbox: Sandbox) -> None:
    assert _told(await _task(sandbox, "echo first; yes", output_limit=50_000)) == ("failed", "output_limit", "first\n")


async def test_a_task_that_fails_on_a_full_disk_says_disk_full(folder: Path, usable: None) -> None:
    small = make_provider(folder, limits=Limits(pids=40, disk_mb=16))
    async with opened(small) as provider, made(provider) as sandbox:
        task = await _task(sandbox, "echo first; dd if=/dev/zero of=/home/user/big bs=1M count=64")
        assert _told(task) == ("failed", "disk_full", "first\n")


@_needs_memory
async def test_e20_a_task_over_the_memory_limit_says_memory_limit(provider: LocalProvider) -> None:
    async with made(provider, memory=96) as sandbox:
        task = await _task(sandbox, "echo first; python3 -c 'x = bytearray(400 << 20)'")
        assert _told(task) == ("failed", "memory_limit", "first\n")
        assert (await sandbox.run("echo alive")).stdout == "alive\n"


_OTHER_CONVENTION = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""


def _has_32_bit_calls() -> bool:
    """Whether this kernel answers calls of 32 bit programs at all; without the filter they work then."""
    return subprocess.run([sys.executable, "-c", _OTHER_CONVENTION], check=False).returncode == 0


_needs_32_bit = pytest.mark.skipif(
    not _has_32_bit_calls(), reason="this kernel has no calls of 32 bit programs, the only ones that end a program"
)


@_needs_32_bit
async def test_what_the_system_call_filter_ends_says_policy(sandbox: Sandbox) -> None:
    """Issue 4, part 4: the filter itself sends the signal. A shell that tells it as an exit code is understood."""
    page = f"cat > p.py <<'E'\n{_OTHER_CONVENTION}E\n"
    ran = await sandbox.run(f"{page}exec python3 p.py")
    assert (ran.end["stopReason"], ran.exit_code, ran.end["signal"]) == ("policy", 159, 31), ran
    ran = await sandbox.run("python3 p.py; exit $?")
    assert (ran.end["stopReason"], ran.exit_code) == ("policy", 159), ran
    end = (await sandbox.execute(_OTHER_CONVENTION))[-1]
    assert (end["stop_reason"], end["exit_code"], end["state_kept"]) == ("policy", 159, False), end
    lines = await sandbox.execute("1")
    assert lines[-1]["context_restarted"] == "died"
    assert "SIGSYS for a system call that no sandbox may make" in str(lines)
    end = (await sandbox.execute("python3 p.py", language="shell"))[-1]
    assert (end["stop_reason"], end["exit_code"]) == ("policy", 159), end
    task = await _task(sandbox, "exec python3 p.py")
    assert (task["state"], task["stop_reason"], task["exit_code"]) == ("failed", "policy", 159), task


@_needs_32_bit
async def test_without_the_filter_the_same_program_ends_by_itself(folder: Path, usable: None) -> None:
    """The protection bites."""
    without = make_provider(folder, protections=Protections(seccomp=False))
    async with opened(without) as provider, made(provider) as sandbox:
        assert (await sandbox.python(_OTHER_CONVENTION)).end["stopReason"] == "exit"


async def test_a_task_of_a_sandbox_that_is_lost_is_told_as_that(doors: Doors) -> None:
    """Whoever comes later: the sandbox is gone, and with it its tasks. Whoever waits then: the same, typed."""
    async with await AsyncSandbox.create(doors=doors) as sandbox:
        task = await sandbox.tasks.start("echo first; exec sleep 600")
        facts = (await sandbox.link.provider.inspect(InspectRequest(sandbox_id=sandbox.sandbox_id))).facts
        os.kill(int(facts["init_pid"]), signal.SIGKILL)
        await until_gone(int(facts["keeper_pid"]))
        with anyio.fail_after(60), pytest.raises(SandboxLost):
            await sandbox.tasks.get(task.task_id, wait=30)
