"""The era without sessions (2026-07-28): each request stands for itself, and belongs to its principal.

What a principal made is kept by its lease: a lifetime that each use renews. One tool session per
principal holds these leases, so that a sandbox of one is nowhere to be found for another.

Source: decisions D14, D15; MCP 2026-07-28.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.abc
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from cloche_contract.serving import ToolServer

OpenTools = Callable[[str | None], ToolServer]


class Leases:
    """Answers requests that carry everything with them."""

    def __init__(self, open_tools: OpenTools, *, max_body_bytes: int) -> None:
        self._open_tools = open_tools
        self._max_body_bytes = max_body_bytes
        self._holders: dict[str | None, _Holder] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._closing = False

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Leases", None]:
        """Own every lease; leaving destroys all sandboxes and waits for it."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield self
            finally:
                self.begin_close()

    def begin_close(self) -> None:
        """Start to destroy the sandboxes of every principal."""
        self._closing = True
        for holder in self._holders.values():
            holder.end()

    async def answer(self, principal: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of that principal."""
        assert self._tasks is not None, "requests come while the server runs"
        holder = self._holders.get(principal)
        if holder is None:
            holder = self._holders[principal] = _Holder(self._open_tools(principal), self._max_body_bytes)
            self._tasks.start_soon(holder.run)
            if self._closing:
                holder.end()
        await holder.answer(scope, receive, send)


class _Holder:
    """The tool session of one principal."""

    def __init__(self, tools: ToolServer, max_body_bytes: int) -> None:
        self._tools = tools
        self._manager = StreamableHTTPSessionManager(tools.server, stateless=True, max_request_body_size=max_body_bytes)
        self._started = anyio.Event()
        self._ending = anyio.Event()

    async def run(self) -> None:
        async with anyio.create_task_group() as owner:
            owner.start_soon(self._tools.session.run)
            async with self._manager.run():
                self._started.set()
                await self._ending.wait()
            self._tools.session.begin_close()

    def end(self) -> None:
        self._ending.set()
        self._tools.session.begin_close()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._started.wait()
        await self._manager.handle_request(scope, receive, send)
        self._tools.on_answer()
