"""Connections of the SDK: as many as are used at once, none left behind, and never a deadline below the work's own.

Source: faults T24, L14, L21, L29, F22.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from cloche_sdk import AsyncSandbox, Doors
from tests.packages.sdk.stub_agent import Peer, Request, begin_stream, end_stream, send_event, stub

WITHIN_S = 60


@pytest.fixture
async def impatient(agent_doors: Doors) -> AsyncGenerator[AsyncSandbox]:
    """A client that waits one second for an answer."""
    async with await AsyncSandbox.create(doors=agent_doors.override(http_timeout="1")) as sandbox:
        yield sandbox


async def test_t24_work_may_be_silent_for_longer_than_a_request_may_take(impatient: AsyncSandbox) -> None:
    """vercel/sandbox PR#172: a command of six minutes died with the timeout of HTTP, at five."""
    assert (await impatient.commands.run("sleep 1.3; echo done", timeout=WITHIN_S)).stdout == "done\n"
    code = "import time; time.sleep(1.3); print('done')"
    assert (await impatient.run_code(code, timeout=WITHIN_S)).stdout == "done\n"
    handle = await impatient.commands.start("sleep 3.5; echo done", timeout=WITHIN_S)
    assert (await handle.wait()).stdout == "done\n"


async def test_l29_the_timeout_of_a_call_is_passed_through(tmp_path: Path) -> None:
    """llm-sandbox#100: 40 s were asked for, and 30 s used."""

    async def answer(peer: Peer, request: Request) -> None:
        await begin_stream(peer)
        await send_event(peer, {"start": {"pid": 7}})
        await send_event(peer, {"end": {"exited": True}})
        await end_stream(peer)

    async with stub(tmp_path, answer) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
        for timeout in (40, 3600):
            await sandbox.commands.run("x", timeout=timeout)
            await (await sandbox.commands.start("x", timeout=timeout)).wait()
        await (await sandbox.pty.create("x", timeout=41)).wait()
        await (await sandbox.pty.create("x")).wait()
        asked = [request.headers.get("connect-timeout-ms") for request in found.agent.requests]
        assert asked == ["40000", "40000", "3600000", "3600000", "41000", None]


async def test_l14_sixty_streams_at_once_come_whole(sandbox: AsyncSandbox) -> None:
    """OpenSandbox#1528: many background streams at once were cut."""
    expected = "".join(f"{number}\n" for number in range(1, 3001))
    whole: list[bool] = []

    async def follow(number: int) -> None:
        handle = await sandbox.commands.start(f"seq 1 3000; exit {number}")
        result = await handle.wait()
        whole.append((result.stdout, result.exit_code) == (expected, number))

    with anyio.fail_after(WITHIN_S):
        async with anyio.create_task_group() as tasks:
            for number in range(60):
                tasks.start_soon(follow, number)
    assert whole == [True] * 60


async def test_l21_sandbox_objects_leave_no_connection(sandbox: AsyncSandbox, agent_doors: Doors, scale: int) -> None:
    """E2B#1155: each client left its connections open."""

    async def use() -> None:
        other = await AsyncSandbox.connect(sandbox.sandbox_id, doors=agent_doors)
        assert await other.is_running()
        await other.close()

    await use()
    before = descriptors()
    for _ in range(50 * scale):
        await use()
    assert descriptors() <= before


async def test_f22_calls_of_all_kinds_leave_no_descriptor(sandbox: AsyncSandbox, tmp_path: Path, scale: int) -> None:
    """OpenSandbox PR#468: uploads leaked descriptors; here also what is given up half-way."""

    async def use() -> None:
        await sandbox.files.write(f"{tmp_path}/file", b"x" * 100_000)
        assert len(await sandbox.files.read_bytes(f"{tmp_path}/file")) == 100_000
        async with await sandbox.commands.start("sleep 60") as handle:
            await handle.kill()
        async with await sandbox.files.watch(str(tmp_path)):
            pass
        async with await sandbox.pty.create("sleep 60") as terminal:
            await terminal.kill()

    for _ in range(3):
        await use()
    before = descriptors()
    for _ in range(15 * scale):
        await use()
    # A connection that waits to be used again may be there or not.
    assert descriptors() <= before + 2


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
