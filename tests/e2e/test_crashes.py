"""A server that ends at any moment, in any way, leaves nothing beyond the lease of its sandboxes.

Source: issue 4; checklist 144, 145, 311, 312, 320; fault rows L2 and L7. Real isolation where this machine can.
"""

import base64
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.servers import ABX, SERVER
from tests.e2e.test_endings import processes
from tests.packages.mcp_stdio.raw_client import RawClient, raw_client

pytestmark = pytest.mark.anyio

MOMENTS, MOMENTS_SOAKED = 5, 20
AT_ONCE = 5
LATEST_S = 0.15
LEASE_S = 4
CONTENT = base64.b64encode(os.urandom(200_000)).decode()
# A client that starts the server, hands over what it is told, and can be killed.
CLIENT = (
    "import os, subprocess, sys\n"
    "server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)\n"
    "while data := os.read(0, 65536):\n"
    "    server.stdin.write(data); server.stdin.flush()\n"
    "server.stdin.close(); sys.exit(server.wait())\n"
)


@dataclass
class Found:
    """What the servers of one test were told to make."""

    environ: dict[str, str]
    marker: str
    with_tasks: set[str] = field(default_factory=set[str])


async def kill_the_server(client: RawClient) -> None:
    client.process.kill()


async def end_stdin(client: RawClient) -> None:
    await client.close_stdin()


async def terminate(client: RawClient) -> None:
    client.process.send_signal(signal.SIGTERM)


ENDINGS: dict[str, Callable[[RawClient], Any]] = {
    "kill -9 of the server": kill_the_server,
    "end of stdin": end_stdin,
    "SIGTERM": terminate,
    "death of the client": kill_the_server,  # there it is the client that the test has started
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_l2_l7_any_end_at_any_moment_leaves_nothing_beyond_the_lease(
    ending: str, environ: dict[str, str], provider: str, scale: int
) -> None:
    """hephaestus#1080, node-code-sandbox-mcp#51: during create, run, upload and the submission of a task, together."""
    if provider != "local":
        pytest.skip("sandboxes of the scripted provider end with its process")
    found = Found(environ, f"86397.{len(ending)}{os.getpid()}")
    moments = MOMENTS if scale == 1 else MOMENTS_SOAKED
    for first in range(0, moments, AT_ONCE):
        async with anyio.create_task_group() as servers:
            for number in range(first, min(first + AT_ONCE, moments)):
                servers.start_soon(end_at_a_moment, ending, number, found)
    left = await sandboxes(environ)
    if ending != "kill -9 of the server":
        assert left <= found.with_tasks, "a sandbox without a task outlived its session"
    with anyio.fail_after(60):
        while left or processes(found.marker):  # other processes end them, so there is no event to wait on
            left = await sandboxes(environ)
    assert await files_of_sandboxes(environ) == []


async def end_at_a_moment(ending: str, number: int, found: Found) -> None:
    """One server with everything on its way at once, ended after a random time."""
    chance = random.Random(f"{ending} {number}")
    command = [sys.executable, "-c", CLIENT, *SERVER] if ending == "death of the client" else SERVER
    async with raw_client(command, found.environ, within_s=120) as client:
        used = (await client.call("create_sandbox", {"timeout": LEASE_S}))["structuredContent"]["sandbox_id"]
        tasks = (await client.call("create_sandbox", {"timeout": LEASE_S}))["structuredContent"]["sandbox_id"]
        found.with_tasks.add(tasks)
        sleeping = f"sleep {found.marker} & exec sleep {found.marker}"
        calls: list[tuple[str, dict[str, Any]]] = [
            ("create_sandbox", {"timeout": LEASE_S}),
            ("run_command", {"sandbox_id": used, "command": sleeping}),
            ("upload_file", {"sandbox_id": used, "path": "/home/user/a", "content_base64": CONTENT}),
            ("start_task", {"sandbox_id": tasks, "command": sleeping}),
        ]
        chance.shuffle(calls)
        for tool, arguments in calls:
            await client.post_call(tool, arguments)
        await anyio.sleep(chance.uniform(0, LATEST_S))  # the moment itself: nothing is waited for
        await ENDINGS[ending](client)
        await client.stdout_ended.wait()  # the last process that holds it is the server


async def sandboxes(environ: dict[str, str]) -> set[str]:
    """What the next start of the product finds."""
    done = await anyio.run_process([ABX, "sandbox", "list", "--json"], env=environ)
    return {sandbox["sandbox_id"] for sandbox in json.loads(done.stdout)["sandboxes"]}


async def files_of_sandboxes(environ: dict[str, str]) -> list[str]:
    """Folders of sandboxes in the state directory; their names have 32 letters and digits."""
    state = Path(environ["ABX_LOCAL_STATE_DIR"])
    return sorted(
        str(path) for path in state.rglob("*") if path.is_dir() and len(path.name) == 32 and path.name.isalnum()
    )
