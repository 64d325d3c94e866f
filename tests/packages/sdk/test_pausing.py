"""Sandboxes that are paused and resumed: on purpose, and never because something merely asked for them.

Source: issue 8; systems facts 2.2, 2.3, 2.6; checklist 37, 75; faults L16.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator

import pytest

from cloche_contract.errors import ProviderUnavailable, SandboxPaused
from cloche_contract.provider import GetRequest
from cloche_sdk import AsyncSandbox, Doors, SandboxSession
from cloche_sdk import platform as platform_module
from cloche_sdk.link import SandboxLink
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.platform import Fault, ReferencePlatform
from cloche_testkit.scripted import ScriptedProvider
from tests.packages.sdk.platforms import doors_to

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform_module, "FIRST_PAUSE_S", 0.01)


@pytest.fixture
async def platform(unsandboxed_plane: ScriptedPlane) -> AsyncGenerator[ReferencePlatform]:
    """WITHOUT ISOLATION."""
    async with ReferencePlatform(ScriptedProvider(unsandboxed_plane), additions=False).serve() as platform:
        yield platform


@pytest.fixture
def doors(platform: ReferencePlatform) -> Doors:
    return doors_to(platform, ABX_HTTP_TIMEOUT="20")


async def test_l16_what_is_written_in_each_cycle_is_there_after_all_of_them(doors: Doors) -> None:
    """Source: faults L16 (E2B#884, E2B#1104): the hash is equal after N cycles, and the id stays."""
    async with await AsyncSandbox.create(doors=doors) as sandbox:
        written, variable = b"", 0
        for number in range(4):
            part = hashlib.sha256(b"%d" % number).digest() * 4096
            written += part
            await sandbox.files.write(f"part{number}", part)
            variable = int((await sandbox.run_code("n = globals().get('n', 0) + 1; print(n)")).stdout)
            assert await sandbox.pause()
            with pytest.raises(SandboxPaused):
                await sandbox.files.read_bytes("part0")
            await sandbox.resume(600)
            found = await sandbox.commands.run("cat part? | sha256sum")
            assert found.stdout.split()[0] == hashlib.sha256(written).hexdigest()
        assert variable == 4  # its processes go on too
        assert (await AsyncSandbox.get_info_by_id(sandbox.sandbox_id, doors=doors)).status == "running"


async def test_a_pause_says_whether_it_was_one(doors: Doors, platform: ReferencePlatform) -> None:
    async with await AsyncSandbox.create(doors=doors) as sandbox:
        assert await sandbox.pause()
        assert not await sandbox.pause()
        assert not await sandbox.is_running()
        assert (await sandbox.refresh_info()).status == "paused"
        with pytest.raises(SandboxPaused):
            await sandbox.commands.run("true")
        assert platform.is_paused(sandbox.sandbox_id)
        async with await AsyncSandbox.connect(sandbox.sandbox_id, doors=doors) as other:
            assert (await other.commands.run("echo on")).stdout == "on\n"
        assert (await sandbox.commands.run("echo again")).stdout == "again\n"  # somebody else has resumed it


async def test_nothing_that_asks_by_id_resumes(doors: Doors, platform: ReferencePlatform) -> None:
    """Source: checklist 37, 75; issue 8, item 2."""
    async with await AsyncSandbox.create(doors=doors) as sandbox:
        await sandbox.pause()
        platform.seen.clear()
        await AsyncSandbox.get_info_by_id(sandbox.sandbox_id, doors=doors)
        await AsyncSandbox.set_timeout_by_id(sandbox.sandbox_id, 900, doors=doors)
        await AsyncSandbox.list("paused", doors=doors)
        assert platform.is_paused(sandbox.sandbox_id)
        assert platform.calls == ["get_sandbox", "set_timeout", "list_sandboxes"]
        await AsyncSandbox.kill_by_id(sandbox.sandbox_id, doors=doors)


async def test_a_tool_that_meets_a_paused_sandbox_says_so_and_resumes_only_when_it_is_asked_again(
    doors: Doors, platform: ReferencePlatform
) -> None:
    async with SandboxSession(doors) as session:
        own = await session.create()
        foreign = await AsyncSandbox.create(doors=doors)
        for sandbox_id in (own.sandbox_id, foreign.sandbox_id):
            platform.pause(sandbox_id)
            assert (await session.get(sandbox_id)).status == "paused"
            await session.set_timeout(sandbox_id, 900)
            with pytest.raises(SandboxPaused):
                async with session.use(sandbox_id) as sandbox:
                    await sandbox.commands.run("true")
            assert platform.is_paused(sandbox_id)
            async with session.use(sandbox_id) as sandbox:
                assert (await sandbox.commands.run("echo on")).stdout == "on\n"
            # Paused once more, with a connection that was used.
            platform.pause(sandbox_id)
            with pytest.raises(SandboxPaused):
                async with session.use(sandbox_id) as sandbox:
                    await sandbox.commands.run("true")
            async with session.use(sandbox_id) as sandbox:
                assert (await sandbox.commands.run("echo on")).stdout == "on\n"
        assert session.default == own.sandbox_id
        await foreign.kill()
    assert platform.alive == []


async def test_whether_it_answers_can_be_asked_without_resuming_it(doors: Doors, platform: ReferencePlatform) -> None:
    """Also where nothing is known yet but its id: only `connect` and `resume` resume."""
    async with await AsyncSandbox.create(doors=doors) as sandbox:
        provider = sandbox.link.provider
        record = await provider.get(GetRequest(sandbox_id=sandbox.sandbox_id))
        link = SandboxLink(sandbox.link.reference, provider, record, doors)
        await sandbox.pause()
        assert not await link.is_running()
        with pytest.raises(SandboxPaused):
            await link.enter()
        assert platform.is_paused(sandbox.sandbox_id)


async def test_a_session_that_ends_destroys_what_is_paused_without_resuming_it(
    doors: Doors, platform: ReferencePlatform
) -> None:
    async with SandboxSession(doors) as session:
        platform.pause((await session.create()).sandbox_id)
    assert platform.alive == []
    assert set(platform.calls) == {"create_sandbox", "delete_sandbox"}


async def test_a_pause_or_resume_whose_answer_is_lost_is_asked_for_again(
    doors: Doors, platform: ReferencePlatform
) -> None:
    async with await AsyncSandbox.create(doors=doors) as sandbox:
        platform.faults.plan(Fault("pause_sandbox", "reset", after=True))
        await sandbox.pause()
        assert platform.is_paused(sandbox.sandbox_id)
        platform.faults.plan(Fault("connect_sandbox", "reset", after=True))
        await sandbox.resume()
        assert not platform.is_paused(sandbox.sandbox_id)
        platform.faults.plan(Fault("pause_sandbox", "status", status=503, times=9))
        with pytest.raises(ProviderUnavailable):
            await sandbox.pause()
        assert (await sandbox.commands.run("echo on")).stdout == "on\n"  # it was not paused after all


async def test_a_platform_without_connect_is_asked_to_resume(doors: Doors, platform: ReferencePlatform) -> None:
    """Source: systems facts 2.3."""
    async with await AsyncSandbox.create(doors=doors) as sandbox:
        await sandbox.pause()
        for route in ("connect_sandbox", "connect_sandbox_v1"):
            platform.faults.plan(Fault(route, "status", status=404))
        await sandbox.resume()
        assert platform.calls[-1] == "resume_sandbox"
        assert (await sandbox.commands.run("echo on")).stdout == "on\n"
