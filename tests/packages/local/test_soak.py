"""Much use of real sandboxes: what is counted before is counted after, and memory stays flat."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import anyio

from cloche_contract.provider import CreateRequest, InspectRequest, KillRequest, ListRequest
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import Sandbox, made, reap_orphans, zygote_pid

_GROWTH_KB = 2048


async def test_t37_two_thousand_sandboxes_leave_nothing(provider: LocalProvider, folder: Path, scale: int) -> None:
    """Faults T37 at the provider: mounts, control groups, descriptors, files, processes. A tenth at scale 1."""
    for _ in range(5):
        await _live_once(provider)
    lived: set[str] = set()
    before = await _settled(lambda: _counts(folder))
    lives = min(2_000, 200 * scale)
    settled_kb = _memory_kb()
    for number in range(lives):
        if number == lives // 5:
            settled_kb = _memory_kb()
        lived.add(await _live_once(provider))
    assert (await provider.list(ListRequest())).sandboxes == []
    await _settled(lambda: _counts(folder), before)
    groups = {path.name for path in Path("/sys/fs/cgroup").rglob("*") if path.is_dir()}
    assert [name for name in groups if any(sandbox_id in name for sandbox_id in lived)] == []
    # Of so many logs the newest stay, whoever lists or prunes.
    assert len(os.listdir(folder / "state" / ".logs")) <= 500
    grown_kb = {name: kb - settled_kb[name] for name, kb in _memory_kb().items()}
    assert all(grown < _GROWTH_KB for grown in grown_kb.values()), grown_kb


async def test_t37_ten_thousand_commands_in_one_sandbox(provider: LocalProvider, scale: int) -> None:
    """Issue 3: the keeper ends where it began, and its memory stays flat after a fifth of the calls."""
    async with made(provider, timeout=3600) as sandbox:
        await _run_many(provider, sandbox, scale)
        await provider.kill(KillRequest(sandbox_id=sandbox.id))


async def _run_many(provider: LocalProvider, sandbox: Sandbox, scale: int) -> None:
    facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
    keeper = int(facts["keeper_pid"])
    calls = min(10_000, 1_000 * scale)
    await sandbox.execute("1")
    await _command(sandbox)
    before = await _settled(lambda: _held(keeper))
    settled_kb = _status(keeper, "VmRSS")
    for number in range(calls):
        if number == calls // 5:
            settled_kb = _status(keeper, "VmRSS")
        await _command(sandbox)
    await _settled(lambda: _held(keeper), before)
    assert _status(keeper, "VmRSS") - settled_kb < _GROWTH_KB
    assert (await sandbox.run("ls -A /tmp /home/user")).stdout.split() == ["/home/user:", "/tmp:"]


async def _live_once(provider: LocalProvider) -> str:
    """Make a sandbox, run code in it, kill it; return its id."""
    record = await provider.create(CreateRequest(template="base", timeout=60))
    agent = record.agent
    assert agent is not None
    assert agent.socket_path is not None
    # Not by an HTTP client: each has a TLS context, whose memory would hide what is measured here.
    reader, writer = await asyncio.open_unix_connection(agent.socket_path)
    token = agent.access_token.get_secret_value()
    head = f"POST /execute HTTP/1.1\r\nX-Access-Token: {token}\r\nConnection: close\r\nContent-Length: 19\r\n\r\n"
    writer.write(head.encode() + b'{"code":"print(1)"}')
    assert b'"exit_code":0' in await reader.read()
    writer.close()
    await writer.wait_closed()
    await provider.kill(KillRequest(sandbox_id=record.sandbox_id))
    return record.sandbox_id


async def _command(sandbox: Sandbox) -> None:
    ran = await sandbox.run("echo out")
    assert (ran.stdout, ran.exit_code) == ("out\n", 0)


async def _settled(
    count: Callable[[], Mapping[str, int]], wanted: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """Wait until nothing that was begun in the background changes the counts, or until they are as wanted."""
    counts = count()
    with anyio.move_on_after(30):
        while True:
            await anyio.sleep(0.2)
            reap_orphans()
            former, counts = counts, count()
            if counts == former if wanted is None else _none_above(counts, wanted):
                break
    assert wanted is None or _none_above(counts, wanted), (counts, wanted)
    return counts


def _none_above(counts: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    """As many as wanted. What other tests left in this process may end by itself meanwhile: fewer is no leak there."""
    ours = ("threads", "descriptors")
    return all(count == wanted[name] or (name in ours and count < wanted[name]) for name, count in counts.items())


def _counts(folder: Path) -> Mapping[str, int]:
    zygote = zygote_pid()
    return {
        "mounts": Path("/proc/self/mountinfo").read_text().count(str(folder)),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": _status(os.getpid(), "Threads"),
        "children of the zygote": len(_children(zygote)),
        **{f"zygote: {name}": count for name, count in _held(zygote).items()},
        "files of the state": sum(".logs" not in path.parts for path in (folder / "state").rglob("*")),
        "sockets": sum(1 for _ in (folder / "run").rglob("*")),
    }


def _held(pid: int) -> dict[str, int]:
    held = {"threads": _status(pid, "Threads")}
    # The keeper's descriptors are root's to see: it is closed to others of its own user.
    with suppress(PermissionError):
        held["descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
    return held


def _memory_kb() -> dict[str, int]:
    return {"server": _status(os.getpid(), "VmRSS"), "zygote": _status(zygote_pid(), "VmRSS")}


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _status(pid: int, field: str) -> int:
    with open(f"/proc/{pid}/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith(field + ":"))
