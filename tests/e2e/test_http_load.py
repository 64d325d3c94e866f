"""Many clients at once, and a server that is killed under them.

Source: the issue, "Load" and "Faults"; checklist 320; faults M5, L7.
"""

import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from tests.e2e.http_servers import HttpProcess, http_server
from tests.e2e.test_endings import sandboxes_left
from tests.packages.mcp_http.served import Raw, modern, raw

pytestmark = pytest.mark.anyio

SESSIONS = 30
MOST_SESSIONS = 300
COMMANDS = 20
PAGE = 25


@asynccontextmanager
async def client_of(server: HttpProcess) -> AsyncGenerator[Raw]:
    async with httpx.AsyncClient(timeout=120, trust_env=False) as http:
        yield Raw(http, server.url, {})


async def test_many_sessions_at_once_meet_no_error_and_leave_no_orphan(
    environ: dict[str, str], provider: str, tmp_path: Path, scale: int
) -> None:
    """30 handshake sessions, 300 in the soak, each with a sandbox and 20 commands; p99 is printed, not judged."""
    count = min(SESSIONS * scale, MOST_SESSIONS)
    took: list[float] = []

    async def session(server: HttpProcess) -> None:
        async with client_of(server) as client:
            await client.hello()
            for number in range(COMMANDS):
                began = time.monotonic()
                ran = await client.value("run_command", {"command": f"echo {number}"})
                took.append(time.monotonic() - began)
                assert ran["stdout"] == f"{number}\n"
            assert (await client.bye()).status_code == 200

    limits = ("--max-sessions", str(MOST_SESSIONS))
    async with http_server({**environ, "ABX_DEFAULT_TEMPLATE": "base"}, *limits, within_s=600) as server:
        async with anyio.create_task_group() as clients:
            for _ in range(count):
                clients.start_soon(session, server)
        assert await server.stop() == 0
    assert len(took) == count * COMMANDS
    assert await sandboxes_left(provider, environ, tmp_path) == []
    took.sort()
    middle, late = took[len(took) // 2], took[int(len(took) * 0.99)]
    sys.stdout.write(f"\n{count} sessions, {len(took)} commands: median {middle:.3f} s, p99 {late:.3f} s\n")


@pytest.mark.soak
async def test_m5_l7_a_server_killed_under_load_leaves_only_leases(
    environ: dict[str, str], provider: str, scale: int
) -> None:
    """neotoma#1923, node-code-sandbox-mcp#51: after SIGKILL, sandboxes live by their lease; 30, 300 in the soak."""
    if provider != "local":
        pytest.skip("the sandboxes of the scripted provider live in the process of the server")
    settings = {**environ, "ABX_DEFAULT_TEMPLATE": "base"}
    limits = ("--max-sessions", str(MOST_SESSIONS))
    made, old_session = await kill_under_load(settings, limits, min(SESSIONS * scale, MOST_SESSIONS))
    async with http_server(settings, *limits, within_s=600) as again, modern(again) as without, raw(again) as client:
        client.session_id, fresh = old_session, client.session_id
        assert (await client.post(client.calling("list_sandboxes"))).status_code == 404
        client.session_id = fresh
        assert await every_sandbox(client) == sorted(made)
        for number, sandbox_id in enumerate(made):
            ran = await without.value("run_command", {"command": "echo here", "sandbox_id": sandbox_id})
            assert ran["stdout"] == "here\n"
            if number % 3:
                await without.value("kill_sandbox", {"sandbox_id": sandbox_id})
            else:
                await without.value("set_sandbox_timeout", {"timeout": 1, "sandbox_id": sandbox_id})
        with anyio.fail_after(60):
            while await every_sandbox(client):
                await anyio.sleep(0.1)  # until the leases are over: another process ends them


async def kill_under_load(settings: dict[str, str], limits: Sequence[str], count: int) -> tuple[list[str], str]:
    """Kill a server while each of its sessions runs commands; return their sandboxes and one session's id."""
    made: list[str] = []
    answered = 0
    busy = anyio.Event()

    async def commands(client: Raw) -> None:
        nonlocal answered
        try:
            while True:
                await client.value("run_command", {"command": "echo here"})
                answered += 1
                if answered == 2 * count:
                    busy.set()
        except httpx.HTTPError:
            return  # the server is gone

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(http_server(settings, *limits, within_s=600))
        clients = [await stack.enter_async_context(client_of(server)) for _ in range(count)]
        for client in clients:
            await client.hello()
            made.append((await client.value("create_sandbox", {"timeout": 3600}))["sandbox_id"])
        async with anyio.create_task_group() as calls:
            for client in clients:
                calls.start_soon(commands, client)
            await busy.wait()
            assert await server.stop(signal.SIGKILL) == -signal.SIGKILL
    return made, str(clients[-1].session_id)


async def every_sandbox(client: Raw) -> list[str]:
    """The ids of all sandboxes, page by page."""
    found: list[str] = []
    while True:
        page = await client.value("list_sandboxes", {"limit": PAGE, "offset": len(found)})
        found += [each["sandbox_id"] for each in page["sandboxes"]]
        if len(page["sandboxes"]) < PAGE:
            return sorted(found)
