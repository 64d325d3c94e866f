"""The scripted provider does what the script says, and records what it was asked."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from cloche_contract.errors import ConfigurationInvalid, ProviderUnavailable, SandboxExpired, SandboxNotFound
from cloche_contract.lifecycle import disclose
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    GetRequest,
    KillRequest,
    ListRequest,
    ProviderOptions,
    SandboxProvider,
    SetTimeoutRequest,
)
from cloche_testkit.doors import ManualClock
from cloche_testkit.markers import MARKERS, leaked_markers
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.scripted import installed_plane, open_provider

BASE = CreateRequest(template="base", timeout=300)


@pytest.fixture
async def provider(scripted_plane: ScriptedPlane) -> AsyncGenerator[SandboxProvider]:
    async with open_provider(ProviderOptions()) as provider:
        yield provider


async def test_it_refuses_to_open_unless_a_test_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It isolates nothing: a setting alone must not be enough."""
    monkeypatch.delenv("CLOCHE_TESTKIT_UNSANDBOXED", raising=False)
    environ = {"CLOCHE_TESTKIT_UNSANDBOXED": "1", "ABX_PROVIDER": "scripted"}
    with pytest.raises(ConfigurationInvalid):
        async with open_provider(ProviderOptions(settings={"provider": "scripted"}, environ=environ)):
            pytest.fail("it opened")


async def test_a_request_is_recorded_as_it_was_given(scripted_plane: ScriptedPlane, provider: SandboxProvider) -> None:
    """Seed 000, 54: what was left out is not sent."""
    await provider.create(CreateRequest(template="base", timeout=600, envs={"A": "1"}))
    await provider.list(ListRequest(status="running"))
    assert scripted_plane.script.of("create") == [{"template": "base", "timeout": 600, "envs": {"A": "1"}}]
    assert scripted_plane.script.operations() == ["create", "list"]


async def test_the_next_create_fails_and_makes_nothing(
    scripted_plane: ScriptedPlane, provider: SandboxProvider
) -> None:
    scripted_plane.script.fail_next("create", ProviderUnavailable())
    with pytest.raises(ProviderUnavailable):
        await provider.create(BASE)
    assert scripted_plane.alive == []
    assert (await provider.create(BASE)).status == "running"


async def test_an_answer_is_lost_after_its_effect(scripted_plane: ScriptedPlane, provider: SandboxProvider) -> None:
    """Fault L4: the sandbox exists, the caller does not know."""
    scripted_plane.script.fail_next("create", ProviderUnavailable(), answer_lost=True)
    with pytest.raises(ProviderUnavailable):
        await provider.create(BASE)
    assert len(scripted_plane.alive) == 1


async def test_a_held_create_waits_and_is_taken_back_when_it_is_cancelled(
    scripted_plane: ScriptedPlane, provider: SandboxProvider
) -> None:
    gate = scripted_plane.script.hold_next("create", answer_only=True)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.create, BASE)
            await gate.reached.wait()
            assert len(scripted_plane.alive) == 1
            tasks.cancel_scope.cancel()
    assert scripted_plane.alive == []


async def test_a_failed_kill_leaves_the_sandbox_alive(scripted_plane: ScriptedPlane, provider: SandboxProvider) -> None:
    made = await provider.create(BASE)
    scripted_plane.script.fail_next("kill", ProviderUnavailable())
    with pytest.raises(ProviderUnavailable):
        await provider.kill(KillRequest(sandbox_id=made.sandbox_id))
    assert scripted_plane.alive == [made.sandbox_id]


async def test_time_ends_a_sandbox_and_a_renewal_keeps_it(
    scripted_plane: ScriptedPlane, provider: SandboxProvider, manual_clock: ManualClock
) -> None:
    first, second = await provider.create(BASE), await provider.create(BASE)
    manual_clock.advance(200)
    await provider.set_timeout(SetTimeoutRequest(sandbox_id=second.sandbox_id, timeout=300))
    manual_clock.advance(100)
    assert scripted_plane.alive == [second.sandbox_id]
    with pytest.raises(SandboxNotFound):
        await provider.get(GetRequest(sandbox_id=first.sandbox_id))
    with pytest.raises(SandboxExpired):
        await provider.set_timeout(SetTimeoutRequest(sandbox_id=first.sandbox_id, timeout=300))


async def test_connecting_resumes_a_paused_sandbox_and_looking_does_not() -> None:
    """Seed 000, 37: the platforms resume on connect, so metadata must not connect."""
    with installed_plane(ScriptedPlane(marked=True)) as plane:
        async with open_provider(ProviderOptions()) as provider:
            made = await provider.create(BASE)
            plane.set_status(made.sandbox_id, "paused")
            assert (await provider.get(GetRequest(sandbox_id=made.sandbox_id))).status == "paused"
            assert (await provider.connect(ConnectRequest(sandbox_id=made.sandbox_id))).status == "running"


async def test_a_marked_record_holds_every_marker_and_disclose_drops_them_all() -> None:
    with installed_plane(ScriptedPlane(marked=True)):
        async with open_provider(ProviderOptions()) as provider:
            record = await provider.create(BASE)
    agent = record.agent
    assert agent is not None
    everything = record.model_dump_json() + agent.access_token.get_secret_value()
    assert sorted(leaked_markers(everything)) == sorted(MARKERS)
    assert leaked_markers(disclose(record).model_dump_json()) == []


async def test_clients_of_one_plane_are_counted(scripted_plane: ScriptedPlane) -> None:
    """Seed 000, 36: temporary clients are closed."""
    async with open_provider(ProviderOptions()):
        assert (scripted_plane.opened, scripted_plane.closed) == (1, 0)
    assert (scripted_plane.opened, scripted_plane.closed) == (1, 1)
