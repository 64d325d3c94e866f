"""The keeper through its own protocol: code inside takes init's end of the link and says what no init would say.

It can take it only where `non_dumpable` is out, which is what makes this an attack on the keeper and on nothing else.
Source: issue 3, part 1; local-runtime.md, Processes.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from cloche_contract.provider import InspectRequest, ListRequest
from cloche_local.provider import LocalProvider
from cloche_local.spec import Protections
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened, until_gone

_STEAL = """
import array, ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
init = os.pidfd_open(1)
link = None
for number in range(64):
    fd = libc.syscall(ctypes.c_long(438), init, number, 0)
    if fd >= 0 and os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
        candidate = socket.socket(fileno=fd)
        if candidate.type == socket.SOCK_SEQPACKET:
            link = candidate
assert link is not None
link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
print("stolen", flush=True)
"""

# What breaks the protocol ends the keeper, and with it everything inside.
_ENDS = {
    "no-json": "link.send(b'what is this')",
    "no-object": "link.send(b'[1, 2]')",
    "deeply-nested": "link.send(b'[' * 60000)",
    "larger-than-a-message": "link.send(b'x' * 65537)",
    "a-number-of-many-digits": "link.send(b'{\"id\": ' + b'9' * 60000 + b'}')",
    "a-status-that-no-process-has": 'link.send(b\'{"pid": 5, "status": 65536}\')',
    "an-exit-without-a-status": "link.send(b'{\"pid\": 5}')",
    "an-empty-message": "link.shutdown(socket.SHUT_WR)",
}
# What could be meant so is ignored.
_IGNORED = {
    "an-answer-to-nobody": 'link.send(b\'{"id": 100000, "found": true}\')',
    "a-child-that-nobody-asked-for": 'link.send(b\'{"id": 100000, "pid": 4000000}\')',
    "an-exit-of-nobody": 'link.send(b\'{"pid": 4000000, "status": 0}\')',
    "an-answer-of-a-wrong-shape": 'link.send(b\'{"id": 100000, "pid": {"a": []}, "errno": "x"}\')',
    "a-number-below-zero": 'link.send(b\'{"id": -1, "pid": -1, "status": -1}\')',
    "many-descriptors": """
fds = array.array("i", [os.open("/dev/null", os.O_RDONLY) for _ in range(250)])
for _ in range(4):
    link.sendmsg([b'{"id": 100000}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
""",
    # All of them arrive: twice as many as the keeper keeps of anything.
    "a-flood": """
for _ in range(4096):
    link.send(b'{"pid": 4000000, "status": 0}')
""",
}


@pytest.fixture(scope="module")
async def weak(usable: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[LocalProvider]:
    """A provider whose sandboxes let their user take init's descriptors."""
    async with opened(
        make_provider(Path(tmp_path_factory.mktemp("s")), protections=Protections(non_dumpable=False))
    ) as provider:
        yield provider


async def _pids(provider: LocalProvider, sandbox: Sandbox) -> tuple[int, int]:
    facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
    return int(facts["keeper_pid"]), int(facts["init_pid"])


@pytest.mark.parametrize("name", _ENDS)
async def test_broken_messages_end_the_sandbox_and_nothing_else(weak: LocalProvider, name: str) -> None:
    """Keeper and init are gone, the sandbox is listed no more, and its neighbour does not notice."""
    async with made(weak) as neighbour, made(weak) as sandbox:
        keeper, init = await _pids(weak, sandbox)
        ran = await sandbox.run(["python3", "-c", _STEAL + _ENDS[name] + "\nlink.recv(1)"])
        # How the stream of the attacker ends is no matter; it may have been cut before its words were read.
        assert not ran.stdout or ran.stdout.startswith("stolen")
        await until_gone(keeper)
        await until_gone(init)
        assert sandbox.id not in [record.sandbox_id for record in (await weak.list(ListRequest())).sandboxes]
        assert (await neighbour.run("echo alive")).stdout == "alive\n"


@pytest.mark.parametrize("name", _IGNORED)
async def test_messages_without_a_meaning_change_nothing(weak: LocalProvider, name: str) -> None:
    """The keeper serves on, with the descriptors that it had, and no fatter."""
    async with made(weak) as sandbox:
        keeper, _init = await _pids(weak, sandbox)
        assert (await sandbox.run("echo alive")).stdout == "alive\n"
        fds, kilobytes = _descriptors(keeper), _resident(keeper)
        ran = await sandbox.run(["python3", "-c", _STEAL + _IGNORED[name] + "\nprint('done')"])
        assert ran.stdout == "stolen\ndone\n", ran
        assert (await sandbox.run("echo alive")).stdout == "alive\n"
        # The pipes of a command are closed soon after its end was told.
        with anyio.fail_after(10):
            while _descriptors(keeper) > fds:
                await anyio.sleep(0.01)
        assert _resident(keeper) - kilobytes < 8192


async def test_a_forged_exit_is_a_lie_about_the_sandbox_itself(weak: LocalProvider) -> None:
    """Whoever owns init may say that its own command has ended; another sandbox's commands have no such number."""
    forge = _STEAL + 'import signal\nlink.send(b\'{"pid": %d, "status": 768}\' % os.getpid())\nsignal.pause()'
    async with made(weak) as other, made(weak) as sandbox:
        with anyio.fail_after(20):
            ran = await sandbox.run(["python3", "-c", forge])
        assert ran.exit_code == 3
        assert (await sandbox.run("echo alive")).stdout == "alive\n"
        assert (await other.run("echo alive")).stdout == "alive\n"


def _descriptors(pid: int) -> int:
    """How many descriptors a keeper has; only the host's root may count those of a process like it."""
    return len(os.listdir(f"/proc/{pid}/fd")) if HOST_ROOT else 0


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
