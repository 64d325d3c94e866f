"""Real sandboxes for tests: a provider with folders of its own, and a client of the agent's wire."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio
import httpx

from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import CreateRequest, KillRequest, ListRequest, ProviderOptions
from cloche_local.probe import Host
from cloche_local.provider import LocalProvider
from cloche_local.spec import Limits, Protections

HOST_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Ran:
    """What a command gave."""

    stdout: str = ""
    stderr: str = ""
    end: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: Mapping[str, Any] = field(default_factory=dict[str, Any])
    denied: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    @property
    def exit_code(self) -> int:
        return int(self.end.get("exitCode", 0))


@dataclass
class Sandbox:
    """One live sandbox and a client for it."""

    record: SandboxRecord
    client: httpx.AsyncClient

    @property
    def id(self) -> str:
        return self.record.sandbox_id

    async def run(self, argv: str | Sequence[str], *, user: str = "user", timeout_s: float = 20) -> Ran:
        """Run a command (a string goes to `sh -c`) and wait for its end."""
        args = ["/bin/sh", "-c", argv] if isinstance(argv, str) else list(argv)
        body = json.dumps({"process": {"cmd": args[0], "args": args[1:]}}).encode()
        headers = {
            "Content-Type": "application/connect+json",
            "Connect-Timeout-Ms": str(int(timeout_s * 1000)),
            "Authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode(),
        }
        raw = b"\0" + len(body).to_bytes(4, "big") + body
        answer = await self.client.post("/process.Process/Start", content=raw, headers=headers)
        if answer.headers.get("content-type", "").startswith("application/json"):
            # Refused before a stream began.
            return Ran(error=answer.json())
        return _read_frames(answer.content)

    async def python(self, code: str, *, user: str = "user", timeout_s: float = 20) -> Ran:
        """Run Python code in a process of its own."""
        return await self.run(["python3", "-c", code], user=user, timeout_s=timeout_s)

    async def execute(self, code: str, **fields: object) -> list[dict[str, Any]]:
        """Run code in the interpreter that keeps state."""
        answer = await self.client.post("/execute", json={"code": code, **fields})
        return [cast("dict[str, Any]", json.loads(line)) for line in answer.text.splitlines() if line]


def _read_frames(data: bytes) -> Ran:
    ran = Ran()
    while data:
        size = int.from_bytes(data[1:5], "big")
        message = json.loads(data[5 : 5 + size])
        data = data[5 + size :]
        event = message.get("event", {})
        for stream, encoded in event.get("data", {}).items():
            text = base64.b64decode(encoded).decode("utf-8", "replace")
            setattr(ran, stream, getattr(ran, stream) + text)
        if "denied" in event:
            ran.denied = event["denied"]["targets"]
        if "end" in event:
            ran.end = event["end"]
        if "error" in message:
            ran.error = message["error"]
    return ran


def make_provider(
    folder: Path,
    *,
    protections: Protections | None = None,
    limits: Limits | None = None,
    host: Host | None = None,
    **settings: str,
) -> LocalProvider:
    """A provider whose state and sockets are below `folder`."""
    known = {"local_state_dir": str(folder / "state"), "local_runtime_dir": str(folder / "run"), **settings}
    return LocalProvider(ProviderOptions(settings=known, environ={}), protections=protections, limits=limits, host=host)


@asynccontextmanager
async def opened(provider: LocalProvider) -> AsyncGenerator[LocalProvider]:
    """The provider, and at the end none of its sandboxes left."""
    try:
        yield provider
    finally:
        with anyio.CancelScope(shield=True):
            for record in (await provider.list(ListRequest())).sandboxes:
                await provider.kill(KillRequest(sandbox_id=record.sandbox_id))
            await provider.close()


@asynccontextmanager
async def made(provider: LocalProvider, **request: Any) -> AsyncGenerator[Sandbox]:
    """A sandbox of `provider`; killed with it, if not before."""
    wanted = {"template": "base", "timeout": 120, **request}
    record = await provider.create(CreateRequest.model_validate(wanted))
    async with client_of(record) as client:
        yield Sandbox(record, client)


def client_of(record: SandboxRecord) -> httpx.AsyncClient:
    """A client of the record's agent."""
    agent = record.agent
    assert agent is not None
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=agent.socket_path),
        base_url=agent.base_url,
        headers={"X-Access-Token": agent.access_token.get_secret_value()},
        timeout=60,
    )


def become_subreaper() -> None:
    """Orphans come to us: the test machine's pid 1 may reap them seconds late, and a zombie would count as alive."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans() -> None:
    """Reap every child of ours that has ended and that nobody waits for any more."""
    for task in os.listdir("/proc/self/task"):
        children = ""
        with suppress(OSError):  # a thread that ended meanwhile
            children = Path(f"/proc/self/task/{task}/children").read_text()
        for pid in children.split():
            if not is_running(int(pid)):
                with suppress(ChildProcessError):
                    os.waitpid(int(pid), os.WNOHANG)


def processes_with(mark: str) -> list[int]:
    """Pids on the host whose arguments contain `mark`, zombies not counted."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            arguments = Path(f"/proc/{name}/cmdline").read_bytes()
            state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in arguments and state != b"Z":
            found.append(int(name))
    return found


def zygote_pid() -> int:
    """The zygote that a provider of this process started last, by its constant arguments.

    An older one's second stage is our child too while it ends: we adopt orphans. In the middle of an exec a process
    has no arguments yet: it may be the one, so it is waited for.
    """
    give_up = time.monotonic() + 5
    while time.monotonic() < give_up:
        for pid in sorted(_own_children(), key=_started, reverse=True):
            with suppress(OSError):
                arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"from cloche_local import zygote" in arguments:
                    return pid
                if not arguments and is_running(pid):
                    break
        time.sleep(0.001)
    raise AssertionError("no zygote runs")


def _own_children() -> set[int]:
    children: set[int] = set()
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):
            children.update(map(int, Path(f"/proc/self/task/{thread}/children").read_text().split()))
    return children


def _started(pid: int) -> int:
    """When a process began, in ticks since the boot: its number tells nothing, for numbers begin again."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    return 0


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    """Every process below one that lives."""
    children: list[int] = []
    with suppress(OSError):
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(below for child in children for below in descendants(child))]


async def until_gone(pid: int, within_s: float = 10) -> None:
    """Wait until a process has ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(within_s):
            await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)
