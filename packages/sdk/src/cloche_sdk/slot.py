"""One sandbox that a session owns, from before the platform knows of it until it is gone."""

from __future__ import annotations

import logging
from types import TracebackType

import anyio

from cloche_contract.errors import ClocheError, NotFound, SandboxLost
from cloche_contract.provider import CreateRequest

from .providers import ProviderPool
from .sandbox import AsyncSandbox
from .silence import AgentRefusal, AgentUnreachable

__all__ = ["Slot"]

logger = logging.getLogger(__name__)

KILL_RETRY_S = 0.2
KILL_ATTEMPTS = 20


class Slot:
    """Making, holding and destroying one sandbox.

    `settled` is set once the platform has answered; then either `sandbox` or `failure` is there.
    """

    def __init__(self, request: CreateRequest, *, lazy: bool) -> None:
        self.request = request
        self.lazy = lazy
        self.unwanted = False
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
        outcome = _Outcome()
        with self._making, outcome:
            self.sandbox = await AsyncSandbox.create_in(pool, self.request, provider)
        if self.sandbox is None:
            self.failure = outcome.error or SandboxLost()
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
            try:
                await self.outcome().link.renew()
            except ClocheError as error:
                logger.warning("renew failed", extra={"error": error.code})
            except (AgentUnreachable, AgentRefusal):
                logger.warning("renew failed", extra={"error": "unreachable"})

    async def destroy(self) -> None:
        """Kill the sandbox.

        Raises:
            SandboxNotFound: it was gone before.
        """
        async with self._destroying:
            await self.outcome().kill()
            self.alive = False

    async def end(self, grace_s: float) -> None:
        """Destroy the sandbox at the end of the session, whatever state it is in."""
        with anyio.move_on_after(grace_s):
            await self.settled.wait()
        if not self.settled.is_set():
            self._making.cancel()
            await self.settled.wait()
        for _ in range(KILL_ATTEMPTS):
            if self.sandbox is None or await self._destroyed():
                return
            await anyio.sleep(KILL_RETRY_S)

    async def _destroyed(self) -> bool:
        try:
            await self.destroy()
        except NotFound:
            return True
        except ClocheError as error:
            logger.warning("kill failed", extra={"error": error.code})
            return False
        return True


class _Outcome:
    """Carries an error from the task that meets it to the calls that wait for it."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(exc, Exception):
            return False
        self.error = exc
        return True
