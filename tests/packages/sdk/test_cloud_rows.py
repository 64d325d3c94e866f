"""Failures that users of platforms met, on the provider `cloud` and an agent that answers as E2B's own does.

Source: faults F14, F16, L17, L21, T24; security.md, execd#680.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from cloche_contract.errors import DefaultSandboxLost, FileTooLarge, ProviderFailed, SandboxExpired, SandboxNotFound
from cloche_sdk import AsyncSandbox, SandboxSession
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.platform import ReferencePlatform
from cloche_testkit.scripted import ScriptedProvider
from tests.packages.sdk.platforms import doors_to
from tests.packages.sdk.stub_agent import Peer, Request, stub

pytestmark = pytest.mark.anyio


@pytest.fixture
async def platform(unsandboxed_plane: ScriptedPlane) -> AsyncGenerator[ReferencePlatform]:
    """WITHOUT ISOLATION."""
    async with ReferencePlatform(ScriptedProvider(unsandboxed_plane), additions=False).serve() as platform:
        yield platform


async def test_l17_a_call_after_the_end_of_a_lifetime_says_when_it_was_over(platform: ReferencePlatform) -> None:
    """The edge of a platform answers 502 then, and its API 404. Source: faults L17 (E2B#736, E2B#582)."""
    sandbox = await AsyncSandbox.create(timeout=1, doors=doors_to(platform, ABX_HTTP_TIMEOUT="20"))
    promised = sandbox.info.end_at

    async def until_it_fails() -> None:
        while True:
            await sandbox.commands.run("true")

    with anyio.fail_after(20), pytest.raises(SandboxExpired) as caught:
        await until_it_fails()
    assert caught.value.details == {"ended_at": promised}
    assert datetime.fromisoformat(str(promised)).tzinfo is not None
    await sandbox.close()
    with pytest.raises(SandboxNotFound):
        await AsyncSandbox.get_info_by_id(sandbox.sandbox_id, doors=doors_to(platform))


async def test_l17_a_default_that_ended_is_told_once_and_replaced(platform: ReferencePlatform) -> None:
    """Source: decision D18; checklist 322."""
    async with SandboxSession(doors_to(platform, ABX_HTTP_TIMEOUT="20")) as session:
        first = await session.create()
        await first.commands.run("true")
        await AsyncSandbox.kill_by_id(first.sandbox_id, doors=doors_to(platform))
        with pytest.raises(DefaultSandboxLost):
            async with session.use(None) as sandbox:
                await sandbox.commands.run("true")
        async with session.use(None) as sandbox:
            assert sandbox.sandbox_id != first.sandbox_id


async def test_l21_clients_of_a_platform_leave_no_connection(platform: ReferencePlatform, scale: int) -> None:
    """Source: faults L21 (E2B#1155): one client each, closed."""
    doors = doors_to(platform, ABX_HTTP_TIMEOUT="20")
    async with await AsyncSandbox.create(doors=doors) as made:
        for _ in range(10 * scale):
            async with await AsyncSandbox.connect(made.sandbox_id, doors=doors) as sandbox:
                await sandbox.files.exists("/")
            await AsyncSandbox.get_info_by_id(made.sandbox_id, doors=doors)
        await made.commands.run("true")
    with anyio.fail_after(20):
        await platform.no_connection()


async def test_t24_work_may_be_silent_for_longer_than_the_platform_may(platform: ReferencePlatform) -> None:
    """Source: faults T24: no deadline of a connection is shorter than that of its work."""
    async with await AsyncSandbox.create(doors=doors_to(platform, ABX_HTTP_TIMEOUT="1")) as sandbox:
        assert (await sandbox.commands.run("sleep 2.5; echo done", timeout=60)).stdout == "done\n"
        assert (await sandbox.run_code("import time; time.sleep(2.5); print('done')", timeout=60)).stdout == "done\n"


async def test_f14_a_huge_file_is_refused_by_its_size_and_read_in_parts(platform: ReferencePlatform) -> None:
    """Source: faults F14."""
    async with await AsyncSandbox.create(doors=doors_to(platform, ABX_HTTP_TIMEOUT="20")) as sandbox:
        await sandbox.commands.run("truncate -s 3G huge; printf end >> huge")
        size = 3 * 1024**3 + 3
        with anyio.fail_after(20):
            for refused in (sandbox.files.read("huge"), sandbox.transfers.download_whole("huge")):
                with pytest.raises(FileTooLarge) as caught:
                    await refused
                assert caught.value.details["size"] == size
            last = await sandbox.transfers.download("huge", offset=size - 3)
        assert (last.data, last.size, last.eof) == (b"end", size, True)


@pytest.mark.parametrize("name", ["😀.txt", "résumé.pdf", "a b.txt", "q'uo\"te.txt", "50%&x=1#.txt", "-n"])
async def test_f16_any_utf8_name_makes_the_round_trip(platform: ReferencePlatform, name: str) -> None:
    """Source: faults F16 (Daytona#4323)."""
    async with await AsyncSandbox.create(doors=doors_to(platform, ABX_HTTP_TIMEOUT="20")) as sandbox:
        home = (await sandbox.commands.run("pwd")).stdout.strip()
        path = f"{home}/in here/{name}"
        await sandbox.transfers.upload(path, b"first")
        assert (await sandbox.transfers.download_whole(path)).data == b"first"
        await sandbox.files.write(path, "second")
        assert await sandbox.files.read(path) == "second"
        assert [entry.name for entry in (await sandbox.files.list(f"{home}/in here")).entries] == [name]


async def test_an_agent_that_redirects_gets_no_token_followed(tmp_path: Path) -> None:
    """Source: security.md, execd#680: credentials do not go to another origin; what it answers is no file either."""
    reached: list[bytes] = []

    async def elsewhere(stream: SocketStream) -> None:
        async with stream:
            reached.append(await stream.receive())

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, elsewhere)
        port = listener.extra(SocketAttribute.local_port)

        async def redirect(stream: Peer, request: Request) -> None:
            there = f"http://127.0.0.1:{port}{request.target}"
            await stream.send(f"HTTP/1.1 307 x\r\nlocation: {there}\r\ncontent-length: 3\r\n\r\nabc".encode())

        async with stub(tmp_path, redirect) as found, await AsyncSandbox.create(doors=found.doors) as sandbox:
            for call in (sandbox.files.read("/x"), sandbox.files.write("/x", "y"), sandbox.tasks.start("true")):
                with pytest.raises(ProviderFailed):
                    await call
        tasks.cancel_scope.cancel()
    assert reached == []
