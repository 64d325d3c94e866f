"""A session: which sandbox a call without an id means, who owns what, and what ends it.

One state machine for the rules of seed 001, part 2, and seed 000:

- A sandbox is a slot. A slot exists, owned, before the platform answers (D17), and until
  its sandbox is known to be gone: a kill that fails keeps it.
- The default is a slot. A call without an id uses it, waits for one that is on its way,
  or makes one; concurrent first calls share it. An explicit create becomes the default.
- An id that is no slot is foreign (D16): it is used, renewed if its principal is ours, and nothing here changes.
- A default that is found dead is dropped by the call that meets it, which says so (D18).
- A use that meets a paused sandbox says so, and changes nothing; the next use of it resumes it.
- A slot whose sandbox took a background task is let go at the end and not destroyed: it lives until its timeout.
- The end takes every slot away at once, then destroys each, bounded and shielded.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

import anyio

from cloche_contract.errors import (
    DefaultSandboxLost,
    NoDefaultSandbox,
    NotFound,
    QuotaExceeded,
    SandboxExpired,
    SandboxLost,
    SandboxNotFound,
)
from cloche_contract.lifecycle import SandboxMetadata, SandboxStatus
from cloche_contract.provider import CreateRequest

from .foreign import ForeignSandboxes, renew_until
from .providers import Doors, ProviderPool, Reference
from .relay import Relay
from .requests import build
from .sandbox import AsyncSandbox
from .slot import Slot
from .visibility import Visibility

__all__ = ["DEFAULT_LIFETIME_S", "END_BOUND_S", "SandboxSession"]

logger = logging.getLogger(__name__)

DEFAULT_LIFETIME_S = 300
END_BOUND_S = 4.0
# Where the process goes on: what is not destroyed would live, and cost, until its deadline.
PATIENT_END_S = 60.0
# What a create in flight may still take once the session ends, before it is cancelled.
CREATE_GRACE_S = 2.0

_GONE = (SandboxNotFound, SandboxLost, SandboxExpired)


@runtime_checkable
class Warmable(Protocol):
    """A provider that can do slow preparations ahead of the first create."""

    async def warm(self) -> None: ...


@runtime_checkable
class TiesToServer(Protocol):
    """A provider that can end its sandboxes together with the process that made them."""

    @property
    def outlives_server(self) -> bool: ...


class SandboxSession:
    """The sandboxes of one client, from its first call to its end.

    An async context manager; leaving it destroys every sandbox that it owns.
    """

    def __init__(
        self,
        doors: Doors,
        *,
        template: str = "base",
        provider: str | None = None,
        pool: ProviderPool | None = None,
        principal: str | None = None,
        leases: int | None = None,
        hurried: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make a session.

        Args:
            pool: providers that other sessions use too; whoever made it closes it.
            principal: whose sandboxes are seen, and on whose name new ones are made; None sees all.
            leases: where given, there is no default: each call without an id makes a sandbox of its own,
                and at most so many live at a time.
            hurried: whether the end has seconds only, because the process ends too.
        """
        self._doors = doors
        self.template = template
        self._provider = provider
        self._owns_pool = pool is None
        self._pool = pool or ProviderPool(doors)
        self._visible = Visibility(self._pool, principal)
        self._leases = leases
        self._hurried = hurried
        self._slots: dict[Reference, Slot] = {}
        self._creating: list[Slot] = []
        self._default: Slot | None = None
        self._foreign = ForeignSandboxes(self._pool)
        self._ending = False

    async def __aenter__(self) -> SandboxSession:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self._end()
        finally:
            self._tasks.cancel_scope.cancel()
            await self._tasks.__aexit__(exc_type, exc, traceback)

    @property
    def owned(self) -> tuple[str, ...]:
        """The ids of the sandboxes that this session owns."""
        return tuple(map(self.name, self._slots))

    @property
    def default(self) -> str | None:
        """The id of the default sandbox, where there is one."""
        slot = self._default
        return None if slot is None or slot.sandbox is None else self.name(slot.sandbox.link.reference)

    @property
    def sessionless(self) -> bool:
        """Whether a call without an id makes a sandbox of its own, which only its result names."""
        return self._leases is not None

    @property
    def ending(self) -> bool:
        """Whether the end has begun: from then on nothing new is made."""
        return self._ending

    def warm_soon(self) -> None:
        """Open the default provider in the background, so that the first call finds it ready."""
        self._tasks.start_soon(self._warm)

    async def _warm(self) -> None:
        relay = Relay()
        with relay:
            provider = await self._pool.get(self._doors.provider(self._provider))
            if isinstance(provider, Warmable):
                await provider.warm()
        if relay.error is not None:
            # The first call that needs the provider meets the same error, and reports it.
            logger.info("warming failed", extra={"error": relay.code})

    # Calls

    async def create(self, request: CreateRequest | None = None, provider: str | None = None) -> AsyncSandbox:
        """Make a sandbox; it becomes the default. Cancelled, the sandbox is destroyed when it comes."""
        if self.sessionless:
            await self._forget_what_is_over()
        return (await self._made(self._begin(request, provider, lazy=False))).outcome()

    async def _made(self, slot: Slot) -> Slot:
        """Wait for what only this caller knows of; cancelled, it is destroyed."""
        try:
            await slot.settled.wait()
        except anyio.get_cancelled_exc_class():
            slot.unwanted = True
            if slot.alive and not self._ending:
                # It came in the same moment, so that `_make` has kept it.
                self._tasks.start_soon(self._discard, slot)
            raise
        self._refuse_at_end()
        return slot

    async def list(
        self, status: SandboxStatus | None, limit: int, offset: int, *, provider: str | None, region: str | None
    ) -> tuple[SandboxMetadata, ...]:
        """One page of what the account can see. Owns, chooses and renews nothing."""
        name = self._doors.provider(provider or self._provider)
        if self._visible.limited:
            page = await self._visible.page(name, status, limit, offset, region)
        else:
            page = await AsyncSandbox.list(status, limit, offset, provider=name, region=region, doors=self._doors)
        return tuple(self._shown(Reference(name, entry.sandbox_id), entry) for entry in page)

    async def get(self, sandbox_id: str | None) -> SandboxMetadata:
        """Current metadata. Makes, renews, adopts and resumes nothing."""
        slot, reference = await self._find(sandbox_id)
        if slot is None:
            info = await AsyncSandbox.get_info_by_id(str(reference), doors=self._doors)
            return self._shown(reference, info)
        with self._watching(slot, implicit=sandbox_id is None):
            return self._shown(reference, await slot.outcome().refresh_info())

    async def set_timeout(self, sandbox_id: str | None, seconds: int) -> str:
        """Set a lifetime from now; for an owned sandbox also what later uses renew to."""
        slot, reference = await self._find(sandbox_id)
        if slot is None:
            await AsyncSandbox.set_timeout_by_id(str(reference), seconds, doors=self._doors)
            return self.name(reference)
        with self._watching(slot, implicit=sandbox_id is None):
            await slot.outcome().set_timeout(seconds)
        # The session may have ended, or the sandbox been killed, while the platform answered.
        if self._slots.get(reference) is slot:
            slot.renew_for(seconds)
        return self.name(reference)

    async def kill(self, sandbox_id: str | None) -> str:
        """Destroy a sandbox. A failure keeps ownership, so that it can be tried again."""
        slot, reference = await self._find(sandbox_id)
        if slot is None:
            await AsyncSandbox.kill_by_id(str(reference), doors=self._doors)
            await self._foreign.drop(reference)
            return self.name(reference)
        was_default = self._default is slot
        if was_default:
            self._default = None
        try:
            with self._watching(slot, implicit=sandbox_id is None):
                await slot.destroy()
        except BaseException:
            if was_default and self._default is None and self._slots.get(reference) is slot:
                self._default = slot
            raise
        self._forget(slot)
        await slot.outcome().close()
        return self.name(reference)

    @asynccontextmanager
    async def use(
        self, sandbox_id: str | None, busy_s: int = 0, *, make: bool = True
    ) -> AsyncGenerator[AsyncSandbox, None]:
        """A sandbox to work with, made when there is none and no id is given.

        Args:
            busy_s: how long the work may take; a use that outlasts the lifetime renews while it lasts.
            make: False refuses a call without an id where there is no default.
        """
        if sandbox_id is None and make and self.sessionless:
            async with self._leased() as sandbox:
                yield sandbox
            return
        if sandbox_id is None:
            slot = await self._default_slot(make=make)
        else:
            slot, reference = await self._find(sandbox_id)
            if slot is None:
                async with self._used(reference, busy_s) as sandbox:
                    yield sandbox
                return
        sandbox = slot.outcome()
        done = self._renew_while_busy(slot.renew_until, slot.lifetime_s, busy_s)
        try:
            with self._watching(slot, implicit=sandbox_id is None):
                if sandbox.link.paused:  # an earlier call has said so
                    await sandbox.resume(slot.lifetime_s)
                await sandbox.link.renew_before_use()
                yield sandbox
        finally:
            if done is not None:
                done.set()
            if sandbox.link.ended:
                self.forget_lost(slot)

    @asynccontextmanager
    async def _used(self, reference: Reference, busy_s: int) -> AsyncGenerator[AsyncSandbox, None]:
        """A foreign sandbox; renewed if this session's principal made it (decision D16)."""
        lifetime_s = self._visible.lifetime_s(reference)
        async with self._foreign.use(reference, lifetime_s) as sandbox:
            done = None
            if lifetime_s is not None:
                done = self._renew_while_busy(partial(renew_until, sandbox, lifetime_s), lifetime_s, busy_s)
            try:
                yield sandbox
            finally:
                if done is not None:
                    done.set()

    @asynccontextmanager
    async def _leased(self) -> AsyncGenerator[AsyncSandbox, None]:
        """A sandbox of this call's own, which ends with a call that fails: nobody then learns its id."""
        await self._forget_what_is_over()
        slot = await self._made(self._begin(None, None, lazy=False))
        try:
            yield slot.outcome()
        except BaseException:
            if slot.alive and not self._ending:
                self._tasks.start_soon(self._discard, slot)
            raise

    def keep_tasks_of(self, sandbox: AsyncSandbox) -> bool:
        """Note that a sandbox took a background task; tells whether it outlives this session.

        What the end has taken meanwhile is destroyed: nothing restores its ownership. A foreign one was never ours
        to destroy.
        """
        if self._ending:
            return False
        slot = self._slots.get(sandbox.link.reference)
        if slot is not None:
            slot.holds_tasks = True
        provider = sandbox.link.provider
        outlives = provider.outlives_server if isinstance(provider, TiesToServer) else True
        return outlives and not sandbox.link.ended

    def name(self, reference: Reference) -> str:
        """How an id is shown: plain where the provider is this session's, else qualified."""
        home = self._provider or self._doors.default_provider
        return reference.sandbox_id if reference.provider == home else str(reference)

    # Slots

    def _begin(self, request: CreateRequest | None, provider: str | None, *, lazy: bool) -> Slot:
        """Register ownership of a sandbox and start to make it, in one step."""
        self._refuse_at_end()
        self._refuse_over_the_limit()
        wanted = request or build(CreateRequest, template=self.template, timeout=DEFAULT_LIFETIME_S)
        slot = Slot(self._visible.labelled(wanted), lazy=lazy)
        self._creating.append(slot)
        self._tasks.start_soon(self._make, slot, provider or self._provider)
        return slot

    def _refuse_at_end(self) -> None:
        """What the end has taken must not be handed out as if it would stay."""
        if self._ending:
            raise SandboxLost

    def _refuse_over_the_limit(self) -> None:
        if self._leases is not None and len(self._slots) + len(self._creating) >= self._leases:
            raise QuotaExceeded

    async def _forget_what_is_over(self) -> None:
        """Leases end by themselves; the platform is asked, because its clock may not be ours."""
        for slot in list(self._slots.values()):
            if (slot.outcome().link.remaining_s or 1) > 0:
                continue
            relay = Relay()
            with relay:
                await slot.outcome().refresh_info()
            if isinstance(relay.error, NotFound):
                self.forget_lost(slot)

    async def _make(self, slot: Slot, provider: str | None) -> None:
        try:
            await slot.make(self._pool, provider)
            if not self._ending:
                await self._settle(slot)
            # Else the end took this slot with it, and destroys it.
        finally:
            slot.settled.set()

    async def _settle(self, slot: Slot) -> None:
        self._creating.remove(slot)
        if slot.sandbox is None:
            return
        self._slots[slot.sandbox.link.reference] = slot
        if slot.unwanted:
            await self._discard(slot)
        elif not self.sessionless and (not slot.lazy or self._default is None):
            self._default = slot

    async def _discard(self, slot: Slot) -> None:
        """Destroy what its caller no longer waits for; a failure leaves it to the end of the session."""
        if self._default is slot:
            self._default = None
        if await slot.destroyed():
            self._forget(slot)

    async def _default_slot(self, *, make: bool) -> Slot:
        while True:
            slot = self._default
            if slot is None and not self.sessionless:
                # A create on its way will be the default: wait for it rather than make another.
                slot = next((slot for slot in reversed(self._creating) if not slot.unwanted), None)
            if slot is None:
                if not make:
                    raise NoDefaultSandbox
                slot = self._begin(None, None, lazy=True)
            await slot.settled.wait()
            self._refuse_at_end()
            if slot.failure is not None and slot.lazy:
                raise slot.failure
            if slot.alive:
                return slot

    async def _find(self, sandbox_id: str | None) -> tuple[Slot | None, Reference]:
        """The slot that is meant, and its reference; a foreign id has no slot."""
        if sandbox_id is None:
            slot = await self._default_slot(make=False)
            return slot, slot.outcome().link.reference
        if ":" not in sandbox_id:
            # Owned sandboxes are found by plain id whatever provider they are on (D19).
            for reference, slot in self._slots.items():
                if reference.sandbox_id == sandbox_id:
                    return slot, reference
        reference = self._doors.reference(sandbox_id, None if ":" in sandbox_id else self._provider)
        slot = self._slots.get(reference)
        if slot is None:
            await self._visible.check(reference)
        return slot, reference

    def _watching(self, slot: Slot, *, implicit: bool) -> _Watch:
        return _Watch(self, slot, implicit=implicit)

    def _forget(self, slot: Slot) -> None:
        """Give up ownership of a sandbox that is gone."""
        slot.alive = False
        sandbox = slot.sandbox
        if sandbox is not None and self._slots.get(sandbox.link.reference) is slot:
            del self._slots[sandbox.link.reference]
        if self._default is slot:
            self._default = None

    def forget_lost(self, slot: Slot) -> None:
        """Drop a slot whose sandbox was found dead, and its connections."""
        self._forget(slot)
        if slot.sandbox is not None and not self._ending:
            self._tasks.start_soon(slot.sandbox.close)

    def _renew_while_busy(
        self, renew: Callable[[anyio.Event], Coroutine[Any, Any, None]], lifetime_s: int, busy_s: int
    ) -> anyio.Event | None:
        if busy_s < lifetime_s:
            return None
        done = anyio.Event()
        self._tasks.start_soon(renew, done)
        return done

    def _shown(self, reference: Reference, info: SandboxMetadata) -> SandboxMetadata:
        shown = self.name(reference)
        return info if shown == info.sandbox_id else info.model_copy(update={"sandbox_id": shown})

    # End

    async def _end(self) -> None:
        self._ending = True
        slots = [*self._slots.values(), *self._creating]
        self._slots.clear()
        self._creating.clear()
        self._default = None
        with anyio.move_on_after(END_BOUND_S if self._hurried() else PATIENT_END_S):
            async with anyio.create_task_group() as tasks:
                for slot in slots:
                    tasks.start_soon(slot.end, CREATE_GRACE_S)
        for sandbox in [slot.sandbox for slot in slots if slot.sandbox is not None]:
            await sandbox.close()
        await self._foreign.aclose()
        if self._owns_pool:
            with anyio.move_on_after(1.0):
                await self._pool.aclose()


class _Watch:
    """Notices that a call met a dead sandbox: drops the slot, and names a default as one."""

    def __init__(self, session: SandboxSession, slot: Slot, *, implicit: bool) -> None:
        self._session = session
        self._slot = slot
        self._implicit = implicit

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(exc, _GONE):
            return
        self._session.forget_lost(self._slot)
        if self._implicit:
            raise DefaultSandboxLost from exc
