"""Any sequence of calls, failures and deaths leaves a session in the state that its rules say.

Source: seed 001, part 2; decisions D15 to D19. The machine holds a small model beside the session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TypeVar

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cloche_contract.errors import (
    ClocheError,
    DefaultSandboxLost,
    NoDefaultSandbox,
    NotFound,
    ProviderUnavailable,
    SandboxNotFound,
    UnsupportedOperation,
)
from cloche_contract.provider import CreateRequest
from cloche_sdk import AsyncSandbox, Doors, SandboxSession, load_settings
from cloche_testkit.doors import ManualClock
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.scripted import installed_plane

_T = TypeVar("_T")

LIFETIMES = st.integers(1, 86_400)
PICK = st.integers(0, 1_000)


class SessionMachine(RuleBasedStateMachine):
    """The session, the platform, and a model of both."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self.plane = ScriptedPlane(clock=ManualClock())
        self.owned: dict[str, int] = {}
        self.foreign: list[str] = []
        self.alive: set[str] = set()
        self.kept: set[str] = set()
        self.default: str | None = None

    @initialize()
    def open(self) -> None:
        self._stack.enter_context(installed_plane(self.plane))
        self.portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        chosen = load_settings({}).override(provider="scripted")
        self.doors = Doors(settings=chosen, environ={}, clock=self.plane.clock)
        entered: AbstractContextManager[SandboxSession] = self.portal.wrap_async_context_manager(
            SandboxSession(self.doors)
        )
        self.session = self._stack.enter_context(entered)

    def teardown(self) -> None:
        self._stack.close()
        assert set(self.plane.alive) == self.alive & {*self.foreign, *self.kept}
        assert self.plane.opened == self.plane.closed

    # What a client asks for

    @rule()
    def use_the_default(self) -> None:
        if self.default is None:
            made = self._run(self._use, None)
            self._note_made(made, 300)
        elif self.default in self.alive:
            assert self._run(self._use, None) == self.default
            assert self.plane.lifetime_left_s(self.default) == self.owned[self.default]
        else:
            self._fails(DefaultSandboxLost, self._use, None)
            self._note_gone(self.default)

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, qualified=st.booleans())
    def use_an_owned_one(self, pick: int, qualified: bool) -> None:
        chosen = self._owned(pick)
        name = f"scripted:{chosen}" if qualified else chosen
        if chosen in self.alive:
            assert self._run(self._use, name) == chosen
        else:
            self._fails(NotFound, self._use, name)
            self._note_gone(chosen)

    @precondition(lambda self: self.owned)
    @rule(pick=PICK)
    def an_owned_one_takes_a_task(self, pick: int) -> None:
        chosen = self._owned(pick)
        if chosen in self.alive:
            assert self._run(self._take_task, chosen) is True
            self.kept.add(chosen)
        else:
            self._fails(NotFound, self._take_task, chosen)
            self._note_gone(chosen)

    @rule()
    def a_task_makes_no_sandbox(self) -> None:
        if self.default is None:
            self._fails(NoDefaultSandbox, self._take_task, None)

    @precondition(lambda self: self.foreign)
    @rule(pick=PICK)
    def a_foreign_one_takes_a_task(self, pick: int) -> None:
        """The plane has no agents, so only the session's part of it: nothing is adopted."""
        chosen = self.foreign[pick % len(self.foreign)]
        self._fails(NotFound if chosen not in self.alive else UnsupportedOperation, self._take_task, chosen)

    @rule(lifetime_s=LIFETIMES)
    def create(self, lifetime_s: int) -> None:
        made = self._run(self.session.create, CreateRequest(template="base", timeout=lifetime_s))
        self._note_made(made.sandbox_id, lifetime_s)

    @rule()
    def create_fails(self) -> None:
        self.plane.script.fail_next("create", ProviderUnavailable())
        self._fails(ProviderUnavailable, self.session.create)

    @rule(lifetime_s=LIFETIMES, fails=st.booleans())
    def set_the_timeout_of_the_default(self, lifetime_s: int, fails: bool) -> None:
        if self.default is None:
            self._fails(NoDefaultSandbox, self.session.set_timeout, None, lifetime_s)
        elif fails:
            self.plane.script.fail_next("set_timeout", ProviderUnavailable())
            self._fails(ProviderUnavailable, self.session.set_timeout, None, lifetime_s)
        elif self.default in self.alive:
            assert self._run(self.session.set_timeout, None, lifetime_s) == self.default
            self.owned[self.default] = lifetime_s
        else:
            self._fails(DefaultSandboxLost, self.session.set_timeout, None, lifetime_s)
            self._note_gone(self.default)

    @rule()
    def inspect_the_default(self) -> None:
        if self.default is None:
            self._fails(NoDefaultSandbox, self.session.get, None)
        elif self.default in self.alive:
            assert self._run(self.session.get, None).sandbox_id == self.default
        else:
            self._fails(DefaultSandboxLost, self.session.get, None)
            self._note_gone(self.default)

    @precondition(lambda self: self.owned)
    @rule(pick=PICK, fails=st.booleans())
    def kill_an_owned_one(self, pick: int, fails: bool) -> None:
        chosen = self._owned(pick)
        if fails:
            self.plane.script.fail_next("kill", ProviderUnavailable())
            self._fails(ProviderUnavailable, self.session.kill, chosen)
            return
        if chosen in self.alive:
            assert self._run(self.session.kill, chosen) == chosen
            self.alive.discard(chosen)
        else:
            self._fails(SandboxNotFound, self.session.kill, chosen)
        self._note_gone(chosen)

    @rule()
    def kill_the_default(self) -> None:
        if self.default is None:
            self._fails(NoDefaultSandbox, self.session.kill, None)
            return
        if self.default in self.alive:
            assert self._run(self.session.kill, None) == self.default
            self.alive.discard(self.default)
        else:
            self._fails(DefaultSandboxLost, self.session.kill, None)
        self._note_gone(self.default)

    @precondition(lambda self: self.foreign)
    @rule(pick=PICK, lifetime_s=LIFETIMES)
    def set_the_timeout_of_a_foreign_one(self, pick: int, lifetime_s: int) -> None:
        chosen = self.foreign[pick % len(self.foreign)]
        if chosen in self.alive:
            assert self._run(self.session.set_timeout, chosen, lifetime_s) == chosen
            assert self.plane.lifetime_left_s(chosen) == lifetime_s
        else:
            self._fails(NotFound, self.session.set_timeout, chosen, lifetime_s)

    @precondition(lambda self: self.foreign)
    @rule(pick=PICK)
    def kill_a_foreign_one(self, pick: int) -> None:
        chosen = self.foreign[pick % len(self.foreign)]
        if chosen in self.alive:
            assert self._run(self.session.kill, chosen) == chosen
            self.alive.discard(chosen)
        else:
            self._fails(SandboxNotFound, self.session.kill, chosen)

    # What happens elsewhere

    @rule()
    def somebody_else_makes_one(self) -> None:
        made = self._run(self._make_elsewhere)
        self.foreign.append(made)
        self.alive.add(made)

    @precondition(lambda self: self.alive)
    @rule(pick=PICK, expired=st.booleans())
    def one_dies_elsewhere(self, pick: int, expired: bool) -> None:
        chosen = sorted(self.alive)[pick % len(self.alive)]
        self._run(self.plane.expire if expired else self.plane.kill, chosen)
        self.alive.discard(chosen)

    @invariant()
    def session_and_model_agree(self) -> None:
        if not hasattr(self, "session"):
            return
        assert set(self.session.owned) == set(self.owned)
        assert set(self.plane.alive) == self.alive

    # Helpers

    async def _use(self, sandbox_id: str | None) -> str:
        async with self.session.use(sandbox_id) as sandbox:
            assert sandbox.link.lifetime_s == self.owned.get(sandbox.sandbox_id, 300)
            return sandbox.sandbox_id
        raise AssertionError("a use must not swallow what happens in it")

    async def _take_task(self, sandbox_id: str | None) -> bool:
        async with self.session.use(sandbox_id, make=False) as sandbox:
            return self.session.keep_tasks_of(sandbox)
        raise AssertionError("a use must not swallow what happens in it")

    async def _make_elsewhere(self) -> str:
        sandbox = await AsyncSandbox.create(doors=self.doors)
        await sandbox.close()
        return sandbox.sandbox_id

    def _run(self, call: Callable[..., Awaitable[_T]], *args: object) -> _T:
        return self.portal.call(call, *args)

    def _fails(self, error: type[ClocheError], call: Callable[..., Awaitable[object]], *args: object) -> None:
        with pytest.raises(error):
            self.portal.call(call, *args)

    def _owned(self, pick: int) -> str:
        return sorted(self.owned)[pick % len(self.owned)]

    def _note_made(self, made: str, lifetime_s: int) -> None:
        self.owned[made] = lifetime_s
        self.alive.add(made)
        self.default = made

    def _note_gone(self, gone: str) -> None:
        del self.owned[gone]
        if self.default == gone:
            self.default = None


def test_any_sequence_leaves_the_session_as_its_rules_say(scale: int) -> None:
    """Seed 001, part 2, as a state machine; `--scale` multiplies the sequences."""
    state_machine = SessionMachine.TestCase
    state_machine.settings = settings(
        max_examples=40 * scale,
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    state_machine("runTest").runTest()
