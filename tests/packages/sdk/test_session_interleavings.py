"""Calls of one session at the same time, in any order, with failures and an end in the middle.

Source: issue 4, part 3; decisions D15 to D19; checklist 138, 312, 320. The platform waits before and after each effect
for a random number of turns of the event loop, so that every run is another interleaving, and the same one again for
the same seed.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloche_contract.errors import ClocheError, ProviderUnavailable
from cloche_sdk import AsyncSandbox, Doors, SandboxSession, load_settings
from cloche_testkit.doors import ManualClock
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.script import Operation, Script
from cloche_testkit.scripted import installed_plane

CALLS = (
    "use",
    "use an owned one",
    "create",
    "give up a create",
    "kill",
    "kill an owned one",
    "set timeout",
    "look",
    "take a task",
    "use a foreign one",
)
FOREIGN = 2


class RestlessScript(Script):
    """Every operation of the platform takes a random time."""

    def __init__(self, randomness: random.Random) -> None:
        super().__init__()
        self._randomness = randomness

    async def arrive(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        await super().arrive(operation, arguments)
        await turns(self._randomness.randrange(6))

    async def answer(self, operation: Operation) -> None:
        await super().answer(operation)
        await turns(self._randomness.randrange(6))


async def turns(count: int) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


@dataclass
class Run:
    """One session with its platform, and what the calls were told."""

    session: SandboxSession
    plane: ScriptedPlane
    randomness: random.Random
    foreign: list[str]
    kept: set[str] = field(default_factory=set[str])
    killed: set[str] = field(default_factory=set[str])

    async def call(self, what: str) -> None:
        """One call of a client; its refusals are answers."""
        await turns(self.randomness.randrange(40))
        try:
            await self._call(what)
        except ClocheError:
            return

    async def _call(self, what: str) -> None:
        session = self.session
        owned = session.owned
        some = self.randomness.choice(owned) if owned else None
        match what:
            case "use":
                await self._use(None)
            case "use an owned one":
                await self._use(some)
            case "create":
                await session.create()
            case "give up a create":
                async with anyio.create_task_group() as tasks:
                    with anyio.CancelScope() as scope, contextlib.suppress(ClocheError):
                        tasks.start_soon(self._cancel_soon, scope)
                        await session.create()
            case "kill":
                self.killed.add(await session.kill(None))
            case "kill an owned one" if some is not None:
                self.killed.add(await session.kill(some))
            case "set timeout":
                await session.set_timeout(None, self.randomness.randrange(1, 1000))
            case "look":
                await session.get(None)
            case "take a task":
                async with session.use(some, make=False) as sandbox:
                    await turns(self.randomness.randrange(6))
                    if session.keep_tasks_of(sandbox):
                        self.kept.add(sandbox.sandbox_id)
            case "use a foreign one":
                await self._use(self.randomness.choice(self.foreign))
            case _:
                return

    async def _use(self, sandbox_id: str | None) -> None:
        async with self.session.use(sandbox_id):
            await turns(self.randomness.randrange(6))

    async def _cancel_soon(self, scope: anyio.CancelScope) -> None:
        await turns(self.randomness.randrange(12))
        scope.cancel()


async def run(calls: list[str], seed: int, failures: list[Operation], end_after: int | None) -> None:
    randomness = random.Random(seed)
    plane = ScriptedPlane(clock=ManualClock(), script=RestlessScript(randomness))
    doors = Doors(settings=load_settings({}).override(provider="scripted"), environ={}, clock=plane.clock)
    with installed_plane(plane), anyio.fail_after(60):
        foreign: list[str] = []
        for _ in range(FOREIGN):
            made = await AsyncSandbox.create(doors=doors)
            await made.close()
            foreign.append(made.sandbox_id)
        before = len(plane.script.requests)
        for operation in failures:
            plane.script.fail_next(operation, ProviderUnavailable())
        session = SandboxSession(doors)
        found = Run(session, plane, randomness, foreign)
        left: set[str] = set()
        async with anyio.create_task_group() as tasks:
            async with session:
                if end_after is None:
                    async with anyio.create_task_group() as clients:
                        for what in calls:
                            clients.start_soon(found.call, what)
                    # Every call has its answer: nothing is on its way, and nothing of ours is unknown to the session.
                    await turns(200)
                    assert set(plane.alive) - {*foreign} <= set(session.owned)
                else:
                    for what in calls:
                        tasks.start_soon(found.call, what)
                    await turns(end_after)
            left = set(plane.alive)
        assert left == set(plane.alive), "a call that outlived the session made or killed something"
    assert left == {*foreign, *(found.kept - found.killed)}
    assert set(session.owned) == set()
    asked = plane.script.requests[before:]
    touched = {request.arguments.get("sandbox_id") for request in asked if request.operation in ("kill", "set_timeout")}
    assert not touched & {*foreign}, "a foreign sandbox was killed or renewed"
    assert plane.opened == plane.closed


@given(
    calls=st.lists(st.sampled_from(CALLS), min_size=1, max_size=14),
    seed=st.integers(0, 2**32 - 1),
    failures=st.lists(st.sampled_from(("create", "kill", "set_timeout", "get")), max_size=3),
    end_after=st.none() | st.integers(0, 60),
)
def hold(calls: list[str], seed: int, failures: list[Operation], end_after: int | None) -> None:
    anyio.run(run, calls, seed, failures, end_after)


def test_any_interleaving_of_calls_keeps_the_rules_of_the_session(scale: int) -> None:
    """At most one default, none of ours lost, none alive after the end but those with tasks, foreign ones untouched."""
    chosen = settings(
        max_examples=100 * scale,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    chosen(hold)()


def test_parallel_first_calls_share_one_sandbox_in_any_interleaving(scale: int) -> None:
    """Checklist 138: also when the platform answers late, and whatever else is asked meanwhile."""

    async def first_calls(seed: int) -> int:
        randomness = random.Random(seed)
        plane = ScriptedPlane(clock=ManualClock(), script=RestlessScript(randomness))
        doors = Doors(settings=load_settings({}).override(provider="scripted"), environ={}, clock=plane.clock)
        with installed_plane(plane):
            async with SandboxSession(doors) as session, anyio.create_task_group() as clients:
                found = Run(session, plane, randomness, [])
                for what in ("use", "look", "use", "set timeout", "use", "use"):
                    clients.start_soon(found.call, what)
        return len(plane.script.of("create"))

    assert {anyio.run(first_calls, seed) for seed in range(40 * scale)} == {1}
