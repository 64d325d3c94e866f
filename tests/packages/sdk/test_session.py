"""The rules of a session: seed 001, part 2, and seed 000, on the scripted provider."""

from __future__ import annotations

import anyio
import pytest

from cloche_contract.errors import (
    ClocheError,
    NoDefaultSandbox,
    ProviderFailed,
    ProviderMismatch,
    ProviderUnavailable,
    ProviderUnknown,
    SandboxNotFound,
)
from cloche_contract.provider import CreateRequest
from cloche_sdk import AsyncSandbox, Doors, SandboxSession
from cloche_testkit.plane import ScriptedPlane


def _request(timeout: int = 300, template: str = "base") -> CreateRequest:
    return CreateRequest(template=template, timeout=timeout)


async def _use(session: SandboxSession, sandbox_id: str | None = None) -> str:
    async with session.use(sandbox_id) as sandbox:
        return sandbox.sandbox_id


async def _foreign(doors: Doors, timeout: int = 300) -> str:
    """A sandbox that another session made."""
    sandbox = await AsyncSandbox.create(timeout=timeout, doors=doors)
    await sandbox.close()
    return sandbox.sandbox_id


# The default


async def test_first_use_makes_the_default_and_later_uses_keep_it(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 001, rules 134, 135."""
    first = await _use(session)
    assert await _use(session) == first
    assert scripted_plane.alive == [first]


async def test_l1_eight_first_calls_at_once_share_one_sandbox(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """L1 and seed 001, rule 138: losers wait for the one create."""
    gate = scripted_plane.script.hold_next("create")
    found: list[str] = []

    async def call() -> None:
        found.append(await _use(session))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(call)
            await gate.reached.wait()
            gate.release()
    assert len(scripted_plane.script.of("create")) == 1
    assert set(found) == set(scripted_plane.alive)
    assert len(found) == 8


async def test_a_failed_lazy_create_fails_every_waiting_call_once_and_the_next_call_tries_again(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 001, rule 138: no create for each loser."""
    gate = scripted_plane.script.hold_next("create")
    scripted_plane.script.fail_next("create", ProviderUnavailable())
    errors: list[ClocheError] = []

    async def call() -> None:
        try:
            await _use(session)
        except ClocheError as error:
            errors.append(error)

    # The first step holds, the second one, which fails, belongs to the second create.
    scripted_plane.script.fail_next("create", ProviderFailed())
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(call)
        await gate.reached.wait()
        gate.release()
    assert not errors
    await session.kill(None)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(call)
    assert [error.code for error in errors] == ["provider_unavailable"] * 3
    assert len(scripted_plane.script.of("create")) == 2


async def test_create_becomes_the_default_and_earlier_sandboxes_live_on(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 001, rules 136, 137."""
    first = await _use(session)
    second = (await session.create(_request())).sandbox_id
    assert await _use(session) == second
    assert scripted_plane.alive == [first, second]


async def test_a_first_call_waits_for_a_create_on_its_way(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 001, rule 2: two calls that arrive together mean one sandbox."""
    gate = scripted_plane.script.hold_next("create")
    found: list[str] = []

    async def create() -> None:
        found.append((await session.create(_request())).sandbox_id)

    async def use() -> None:
        found.append(await _use(session))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create)
            await gate.reached.wait()
            tasks.start_soon(use)
            gate.release()
    assert found[0] == found[1]
    assert len(scripted_plane.alive) == 1


async def test_an_explicit_id_leaves_the_default_alone(session: SandboxSession) -> None:
    """Seed 001, rule 148."""
    first = await _use(session)
    second = (await session.create(_request())).sandbox_id
    async with session.use(first) as sandbox:
        assert sandbox.sandbox_id == first
    assert await _use(session) == second


async def test_the_scenario_of_the_seed(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 001, rule 150."""
    async with SandboxSession(doors) as session:
        first = await _use(session)
        assert await _use(session) == first
        second = (await session.create(_request())).sandbox_id
        assert [await _use(session), await _use(session)] == [second, second]
        assert await _use(session, first) == first
    assert scripted_plane.alive == []


async def test_qualified_and_plain_ids_are_one_sandbox(session: SandboxSession, scripted_plane: ScriptedPlane) -> None:
    """D19."""
    plain = await _use(session)
    assert await _use(session, f"scripted:{plain}") == plain
    assert await session.set_timeout(f"scripted:{plain}", 900) == plain
    assert await session.kill(f"scripted:{plain}") == plain
    with pytest.raises(NoDefaultSandbox):
        await session.kill(None)


async def test_an_unknown_provider_is_refused_before_anything_is_asked(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Systems facts 2.5."""
    with pytest.raises(ProviderUnknown):
        await session.get("nowhere:sb1")
    with pytest.raises(ProviderUnknown):
        await session.create(_request(), "nowhere")
    assert scripted_plane.script.operations() == []


async def test_a_provider_argument_that_contradicts_the_id_is_refused(doors: Doors) -> None:
    """Systems facts 2.5."""
    with pytest.raises(ProviderMismatch):
        doors.reference("scripted:sb1", "local")


# Renewal


async def test_each_use_renews_with_the_lifetime_of_create(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 001, rule 149."""
    await session.create(_request(timeout=700))
    await _use(session)
    await _use(session)
    assert [asked["timeout"] for asked in scripted_plane.script.of("set_timeout")] == [700, 700]


async def test_a_set_timeout_is_one_call_and_becomes_what_uses_renew_to(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 000, rules 63, 66 to 68."""
    sandbox = await session.create(_request())
    assert await session.set_timeout(None, 900) == sandbox.sandbox_id
    assert len(scripted_plane.script.of("set_timeout")) == 1
    await _use(session)
    assert [asked["timeout"] for asked in scripted_plane.script.of("set_timeout")] == [900, 900]


async def test_a_failed_set_timeout_leaves_the_policy(session: SandboxSession, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rule 69."""
    await session.create(_request(timeout=400))
    scripted_plane.script.fail_next("set_timeout", ProviderUnavailable())
    with pytest.raises(ProviderUnavailable):
        await session.set_timeout(None, 900)
    await _use(session)
    assert scripted_plane.script.of("set_timeout")[-1]["timeout"] == 400


async def test_a_failed_renewal_does_not_stop_the_use(session: SandboxSession, scripted_plane: ScriptedPlane) -> None:
    """Systems facts 3.1: renewal is best effort."""
    first = await _use(session)
    scripted_plane.script.fail_next("set_timeout", ProviderUnavailable())
    assert await _use(session) == first


async def test_a_set_timeout_that_outlives_its_session_restores_nothing(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """Seed 000, rules 70, 71."""
    gate = scripted_plane.script.hold_next("set_timeout", answer_only=True)
    session = SandboxSession(doors)
    made: list[AsyncSandbox] = []
    async with anyio.create_task_group() as tasks:
        async with session:
            made.append(await session.create(_request()))
            tasks.start_soon(session.set_timeout, None, 900)
            await gate.reached.wait()
        assert scripted_plane.alive == []
        # The platform had taken the update; its answer comes only now.
        gate.release()
    assert [sandbox.link.lifetime_s for sandbox in made] == [300]
    assert session.owned == ()


async def test_metadata_neither_makes_nor_renews(session: SandboxSession, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rules 29 to 32."""
    with pytest.raises(NoDefaultSandbox):
        await session.get(None)
    assert scripted_plane.script.operations() == []
    first = await _use(session)
    scripted_plane.script.requests.clear()
    assert (await session.get(None)).sandbox_id == first
    assert scripted_plane.script.operations() == ["get"]


async def test_a_set_timeout_without_a_default_makes_none(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 000, rule 65."""
    with pytest.raises(NoDefaultSandbox):
        await session.set_timeout(None, 60)
    assert scripted_plane.script.operations() == []


# Foreign sandboxes


async def test_listing_owns_chooses_and_renews_nothing(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rules 11 to 13, 19."""
    foreign = await _foreign(doors)
    scripted_plane.script.requests.clear()
    async with SandboxSession(doors) as session:
        page = await session.list("running", 10, 0, provider=None, region=None)
        assert [entry.sandbox_id for entry in page] == [foreign]
        assert scripted_plane.script.operations() == ["list"]
        assert scripted_plane.script.of("list")[0] == {"status": "running", "limit": 10, "offset": 0}
        with pytest.raises(NoDefaultSandbox):
            await session.get(None)
    assert scripted_plane.alive == [foreign]


async def test_a_foreign_id_is_inspected_directly_and_stays_foreign(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """Seed 000, rules 26, 33, 35 to 38: own infrastructure, closed, never connect."""
    foreign = await _foreign(doors)
    scripted_plane.set_status(foreign, "paused")
    scripted_plane.script.requests.clear()
    opened, closed = scripted_plane.opened, scripted_plane.closed
    async with SandboxSession(doors) as session:
        assert (await session.get(foreign)).status == "paused"
        assert (scripted_plane.opened, scripted_plane.closed) == (opened + 1, closed + 1)
        assert scripted_plane.script.operations() == ["get"]
    assert scripted_plane.alive == [foreign]


async def test_the_infrastructure_for_a_foreign_id_is_closed_when_it_fails(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 000, rules 36, 74."""
    for call in (session.get("sb9"), session.set_timeout("sb9", 60), session.kill("sb9")):
        with pytest.raises(SandboxNotFound):
            await call
    assert scripted_plane.opened == scripted_plane.closed == 3


async def test_a_foreign_timeout_changes_the_platform_and_nothing_here(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """Seed 000, rules 72 to 76."""
    foreign = await _foreign(doors)
    scripted_plane.script.requests.clear()
    async with SandboxSession(doors) as session:
        assert await session.set_timeout(foreign, 900) == foreign
        assert scripted_plane.script.operations() == ["set_timeout"]
        assert scripted_plane.lifetime_left_s(foreign) == 900
    assert scripted_plane.alive == [foreign]
