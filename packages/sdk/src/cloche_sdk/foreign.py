"""Sandboxes that a session uses and does not own: connected once, never destroyed.

A use renews what the session's own principal made, in whatever process; and nothing else.

Source: decisions D15, D16.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from cloche_contract.errors import SandboxPaused

from .providers import ProviderPool, Reference
from .relay import Relay
from .sandbox import AsyncSandbox

__all__ = ["ForeignSandboxes", "renew_until"]

logger = logging.getLogger(__name__)

CONNECTIONS_KEPT = 32
RESUMED_FOR_S = 300


class ForeignSandboxes:
    """Keeps the connections to the first few; further ones are made for one use each."""

    def __init__(self, pool: ProviderPool) -> None:
        self._pool = pool
        self._kept: dict[Reference, AsyncSandbox] = {}
        self._connecting = anyio.Lock()
        self._closed = False
        self._told_paused: set[Reference] = set()

    @asynccontextmanager
    async def use(self, reference: Reference, lifetime_s: int | None) -> AsyncGenerator[AsyncSandbox, None]:
        """The sandbox, connected.

        Args:
            lifetime_s: how long the use lets it live at least; None renews nothing.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.
            SandboxExpired, SandboxLost: it was there, and is gone.
            SandboxPaused: it is paused. It is resumed by the next use, for its caller then knows.
        """
        async with self._connecting:
            sandbox = self._kept.get(reference)
            if sandbox is not None and sandbox.link.paused:
                await sandbox.resume(lifetime_s or RESUMED_FOR_S)
            if sandbox is None:
                sandbox = await self._connect(reference)
                if len(self._kept) < CONNECTIONS_KEPT and not self._closed:
                    self._kept[reference] = sandbox
        try:
            if lifetime_s is not None:
                await sandbox.link.extend_to(lifetime_s)
            yield sandbox
        finally:
            if sandbox.link.ended:
                await self.drop(reference)
            elif self._kept.get(reference) is not sandbox:
                await sandbox.close()

    async def _connect(self, reference: Reference) -> AsyncSandbox:
        try:
            sandbox = await AsyncSandbox.connect_in(self._pool, reference, resume=reference in self._told_paused)
        except SandboxPaused:
            self._told_paused.add(reference)
            raise
        self._told_paused.discard(reference)
        return sandbox

    async def drop(self, reference: Reference) -> None:
        """Close the connection to one, if there is one."""
        sandbox = self._kept.pop(reference, None)
        if sandbox is not None:
            await sandbox.close()

    async def aclose(self) -> None:
        """Close every connection. The sandboxes live on."""
        self._closed = True
        for reference in list(self._kept):
            await self.drop(reference)


async def renew_until(sandbox: AsyncSandbox, lifetime_s: int, done: anyio.Event) -> None:
    """Renew at half of the lifetime, again and again, until the work is done."""
    while not done.is_set():
        with anyio.move_on_after(lifetime_s / 2):
            await done.wait()
            return
        relay = Relay()
        with relay:
            await sandbox.link.extend_to(lifetime_s)
            await sandbox.link.renew()
        if relay.error is not None:
            logger.warning("renew failed", extra={"error": relay.code})
