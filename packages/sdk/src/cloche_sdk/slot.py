"""One sandbox that a session owns, from before the platform knows of it until it is gone."""

from __future__ import annotations

import logging

import anyio

from cloche_contract.errors import NotFound, SandboxLost
from cloche_contract.provider import CreateRequest

from .providers import ProviderPool
from .relay import Relay
from .sandbox import AsyncSandbox

__all__ = ["Slot"]

logger = logging.getLogger(__name__)

KILL_RETRY_S = 0.2
# After the first seconds a platform that fails is asked less often.
HASTY_ATTEMPTS = 20
KILL_RETRY_LATER_S = 2.0


class Slot:
    """Making, holding and destroying one sandbox.

    `settled` is set once the platform has answered; then either `sandbox` or `failure` is there.
    """

    def __init__(self, request: CreateRequest, *, lazy: bool) -> None:
        self.request = request
        self.lazy = lazy
        self.unwanted = False
        self.holds_tasks = False
        self.alive = False
        self.settled = anyio.Event()
        self.sandbox: AsyncSandbox | None = None
        self.failure: Exception | None = None
        self._making = anyio.CancelScope(shield=True)
        self._destroying = anyio.Lock()

    @property
    def lifetime_s(self) -> int:
        """What each use renews the lifetime to."""
        lifetime = None if self.sandbox is None else self.sandbox.link.lifetime_s
        return self.request.timeout if lifetime is None else lifetime

    async def make(self, pool: ProviderPool, provider: str | None) -> None:
        """Ask the platform. Only the end of the session cancels this: ownership is already there."""
        relay = Relay()
        with self._making, relay:
            self.sandbox = await AsyncSandbox.create_in(pool, self.request, provider)
        if self.sandbox is None:
            self.failure = relay.error or SandboxLost()
            return
        self.alive = True
        self.renew_for(self.request.timeout)

    def outcome(self) -> AsyncSandbox:
        """The sandbox, or the error that there is instead."""
        if self.failure is not None:
            raise self.failure
        if self.sandbox is None:
            raise SandboxLost
        return self.sandbox

    def renew_for(self, seconds: int) -> None:
        """Let each later use renew the lifetime to `seconds`."""
        if self.sandbox is not None:
            self.sandbox.link.lifetime_s = seconds

    async def renew_until(self, done: anyio.Event) -> None:
        """Renew at half of the lifetime, again and again, until the work is done."""
        while not done.is_set():
            with anyio.move_on_after(self.lifetime_s / 2):
                await done.wait()
                return
            relay = Relay()
            with relay:
                await self.outcome().link.renew()
            if relay.error is not None:
                logger.warning("renew failed", extra={"error": relay.code})

    async def destroy(self) -> None:
        """Kill the sandbox.

        Raises:
            SandboxNotFound: it was gone before.
        """
        async with self._destroying:
            await self.outcome().kill()
            self.alive = False

    async def end(self, grace_s: float) -> None:
        """Destroy the sandbox at the end of the session, whatever state it is in; one with tasks lives on.

        Tries until it is gone; whoever calls says how long.
        """
        if self.holds_tasks:
            return
        with anyio.move_on_after(grace_s):
            await self.settled.wait()
        if not self.settled.is_set():
            self._making.cancel()
            await self.settled.wait()
        attempts = 0
        while self.sandbox is not None and not await self.destroyed():
            attempts += 1
            await anyio.sleep(KILL_RETRY_S if attempts < HASTY_ATTEMPTS else KILL_RETRY_LATER_S)

    async def destroyed(self) -> bool:
        """Kill the sandbox, and tell whether it is gone; a failure is logged."""
        relay = Relay()
        with relay:
            await self.destroy()
        if relay.error is None or isinstance(relay.error, NotFound):
            return True
        logger.warning("kill failed", extra={"error": relay.code})
        return False
