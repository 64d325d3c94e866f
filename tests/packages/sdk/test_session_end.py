"""How the sandboxes of a session end: killed, found dead, or with the session. On the scripted provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from cloche_contract.errors import (
    ClocheError,
    DefaultSandboxLost,
    IdempotencyConflict,
    NoDefaultSandbox,
    ProviderUnavailable,
    SandboxNotFound,
)
from cloche_contract.provider import CreateRequest
from cloche_sdk import AsyncSandbox, Doors, SandboxSession
from cloche_testkit.cancellation import cancel_at_each_await
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.script import Gate, Operation, Script


def _request(timeout: int = 300, template: str = "base") -> CreateRequest:
    return CreateRequest(template=template, timeout=timeout)


async def _use(session: SandboxSession, sandbox_id: str | None = None) -> str:
    async with session.use(sandbox_id) as sandbox:
        return sandbox.sandbox_id


class _SlowScript(Script):
    """Every operation of the platform waits before and after its effect."""

    async def arrive(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        await super().arrive(operation, arguments)
        await anyio.lowlevel.checkpoint()

    async def answer(self, operation: Operation) -> None:
        await super().answer(operation)
        await anyio.lowlevel.checkpoint()


# Kill


async def test_kill_takes_the_default_away(session: SandboxSession, scripted_plane: ScriptedPlane) -> None:
    """Seed 001, rules 142, 143."""
    first = await _use(session)
    assert await session.kill(None) == first
    assert scripted_plane.alive == []
    with pytest.raises(NoDefaultSandbox):
        await session.kill(None)
    assert await _use(session) != first


async def test_a_failed_kill_keeps_ownership_and_can_be_tried_again(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """D17."""
    async with SandboxSession(doors) as session:
        first = await _use(session)
        scripted_plane.script.fail_next("kill", ProviderUnavailable())
        with pytest.raises(ProviderUnavailable):
            await session.kill(None)
        assert await _use(session) == first
        assert await session.kill(None) == first
    assert scripted_plane.alive == []


async def test_killing_what_is_not_there_says_so(session: SandboxSession) -> None:
    """No false success: seed 000, rule 56."""
    with pytest.raises(SandboxNotFound):
        await session.kill("sb9")


async def test_a_cancelled_kill_keeps_ownership(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """D17: the end of the session still destroys it."""
    async with SandboxSession(doors) as session:
        await _use(session)
        gate = scripted_plane.script.hold_next("kill")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.kill, None)
            await gate.reached.wait()
            tasks.cancel_scope.cancel()
        assert len(session.owned) == 1
    assert scripted_plane.alive == []


# A default that died


async def test_a_default_that_expired_is_told_once_and_then_made_again(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """D18."""
    first = await _use(session)
    await scripted_plane.expire(first)
    with pytest.raises(DefaultSandboxLost):
        await _use(session)
    second = await _use(session)
    assert second != first
    assert scripted_plane.alive == [second]


async def test_a_default_that_was_killed_elsewhere_is_told_by_the_call_that_meets_it(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """D18, for calls that may not create: the next one has no default."""
    await scripted_plane.kill(await _use(session))
    with pytest.raises(DefaultSandboxLost):
        await session.get(None)
    with pytest.raises(NoDefaultSandbox):
        await session.get(None)


# The end


async def test_the_end_destroys_every_owned_sandbox(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 001, rules 144 to 147."""
    async with SandboxSession(doors) as session:
        await _use(session)
        await session.create(_request())
        await session.create(_request())
        assert len(scripted_plane.alive) == 3
    assert scripted_plane.alive == []
    assert scripted_plane.opened == scripted_plane.closed


async def test_a_create_in_flight_at_the_end_leaves_no_orphan(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """D17: the platform made the sandbox, its answer comes while the session ends."""
    gate = scripted_plane.script.hold_next("create", answer_only=True)

    async def create(session: SandboxSession) -> None:
        with pytest.raises(ClocheError):
            await _use(session)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks, SandboxSession(doors) as session:
            tasks.start_soon(create, session)
            await gate.reached.wait()
            tasks.start_soon(_release_when, gate, session)
    assert scripted_plane.alive == []


async def _release_when(gate: Gate, session: SandboxSession) -> None:
    while not session.ending:
        await anyio.lowlevel.checkpoint()
    gate.release()


async def test_a_create_that_never_answers_is_cancelled_within_the_bound(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """D17: ends in 5 s whatever the platform does."""
    gate = scripted_plane.script.hold_next("create", answer_only=True)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks, SandboxSession(doors) as session:
            tasks.start_soon(_ignoring_errors, session)
            await gate.reached.wait()
    assert scripted_plane.alive == []


async def _ignoring_errors(session: SandboxSession) -> None:
    with pytest.raises(ClocheError):
        await _use(session)


async def test_a_cancelled_session_still_destroys_what_it_owns(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """S6: cancellation is a normal exit."""
    with anyio.CancelScope() as scope:
        async with SandboxSession(doors) as session:
            await _use(session)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert scripted_plane.alive == []


async def test_a_kill_that_fails_at_the_end_is_tried_again(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """D17: a failed kill keeps ownership for a retry."""
    async with SandboxSession(doors) as session:
        await _use(session)
        scripted_plane.script.fail_next("kill", ProviderUnavailable(), times=2)
    assert scripted_plane.alive == []


async def test_a_cancelled_create_leaves_no_sandbox_and_no_default(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """D17: nobody waits for it, so nobody could name it."""
    gate = scripted_plane.script.hold_next("create", answer_only=True)
    killed = scripted_plane.script.hold_next("kill")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.create, _request())
            await gate.reached.wait()
            tasks.cancel_scope.cancel()
        gate.release()
        await killed.reached.wait()
        killed.release()
        await killed.left.wait()
    assert scripted_plane.alive == []
    with pytest.raises(NoDefaultSandbox):
        await session.get(None)


async def test_a_cancelled_first_call_does_not_take_the_sandbox_from_the_others(
    session: SandboxSession, scripted_plane: ScriptedPlane
) -> None:
    """Seed 001, rule 138: who began the create may leave."""
    gate = scripted_plane.script.hold_next("create")
    found: list[str] = []

    async def call() -> None:
        found.append(await _use(session))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as first:
                async with anyio.create_task_group() as inner:
                    inner.start_soon(call)
                    await gate.reached.wait()
                    tasks.start_soon(call)
                    first.cancel()
            gate.release()
    assert found == scripted_plane.alive


async def test_a_session_cancelled_at_any_await_leaves_nothing(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """S6, D17: whatever it was doing."""
    scripted_plane.script = _SlowScript()

    async def run() -> None:
        async with SandboxSession(doors) as session:
            first = await _use(session)
            await session.create(_request())
            await session.set_timeout(first, 60)
            await session.get(None)
            await session.kill(first)
            await _use(session)

    async def check(number: int) -> None:
        assert scripted_plane.alive == [], number
        assert scripted_plane.opened == scripted_plane.closed, number

    assert await cancel_at_each_await(run, check) > 10


async def test_a_create_by_id_cancelled_at_any_await_leaves_nothing(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """S6: the SDK without a session."""
    scripted_plane.script = _SlowScript()

    async def run() -> None:
        async with await AsyncSandbox.create(doors=doors) as sandbox:
            await sandbox.set_timeout(60)
            await AsyncSandbox.get_info_by_id(sandbox.sandbox_id, doors=doors)

    async def check(number: int) -> None:
        assert scripted_plane.alive == [], number
        assert scripted_plane.opened == scripted_plane.closed, number

    assert await cancel_at_each_await(run, check) > 3


async def test_a_provider_that_fails_in_an_unknown_way_does_not_end_the_session(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """A defect of one provider belongs to the call that meets it, and keeps nothing from being destroyed."""
    async with SandboxSession(doors) as session:
        first = await _use(session)
        scripted_plane.script.fail_next("create", RuntimeError("a defect"))
        with pytest.raises(RuntimeError):
            await session.create(_request())
        assert await _use(session) == first
        await session.create(_request())
        scripted_plane.script.fail_next("kill", RuntimeError("a defect"))
    assert scripted_plane.alive == []


async def test_the_end_destroys_what_was_being_discarded(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """D17: the whole session is cancelled while it kills what a cancelled create had made."""
    with anyio.fail_after(5), anyio.CancelScope() as everything:
        async with SandboxSession(doors) as session:
            made = scripted_plane.script.hold_next("create", answer_only=True)
            killing = scripted_plane.script.hold_next("kill")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.create, _request())
                await made.reached.wait()
                tasks.cancel_scope.cancel()
            made.release()
            await killing.reached.wait()
            everything.cancel()
            await anyio.lowlevel.checkpoint()
    assert scripted_plane.alive == []


async def test_l4_a_create_that_is_tried_again_with_its_key_makes_one_sandbox(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """E2B#1658: the answer was lost, the sandbox is there; other arguments under the same key are a conflict."""
    scripted_plane.script.fail_next("create", ProviderUnavailable(), answer_lost=True)
    with pytest.raises(ProviderUnavailable):
        await AsyncSandbox.create(idempotency_key="key", doors=doors)
    (made,) = scripted_plane.alive
    async with await AsyncSandbox.create(idempotency_key="key", doors=doors) as again:
        assert again.sandbox_id == made
        with pytest.raises(IdempotencyConflict):
            await AsyncSandbox.create(idempotency_key="key", timeout=7, doors=doors)
    assert scripted_plane.alive == []
