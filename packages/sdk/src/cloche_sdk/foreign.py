"""Sandboxes that a session uses and does not own: connected once, never renewed, never destroyed.

Source: decision D16.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from .providers import ProviderPool, Reference
from .sandbox import AsyncSandbox

__all__ = ["ForeignSandboxes"]

CONNECTIONS_KEPT = 32


class ForeignSandboxes:
    """Keeps the connections to the first few; further ones are made for one use each."""

    def __init__(self, pool: ProviderPool) -> None:
        self._pool = pool
        self._kept: dict[Reference, AsyncSandbox] = {}
        self._connecting = anyio.Lock()
        self._closed = False

    @asynccontextmanager
    async def use(self, reference: Reference) -> AsyncGenerator[AsyncSandbox, None]:
        """The sandbox, connected.

        Raises:
            SandboxNotFound: there is none, or none that this account may see.
        """
        async with self._connecting:
            sandbox = self._kept.get(reference)
            if sandbox is None:
                sandbox = await AsyncSandbox.connect_in(self._pool, reference)
                if len(self._kept) < CONNECTIONS_KEPT and not self._closed:
                    self._kept[reference] = sandbox
        try:
            yield sandbox
        finally:
            if sandbox.link.ended:
                await self.drop(reference)
            elif self._kept.get(reference) is not sandbox:
                await sandbox.close()

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
