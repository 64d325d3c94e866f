"""One client of the handshake era: its tools, its sandboxes, and how long it may stay away.

Calls that run count as activity, whether or not their client still listens. A session without
any ends at its idle time by itself; nobody has to ask for it.

Source: checklist 146, 147, 321; decision D17.
"""

import logging
import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.abc
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.runner import serve_loop
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp_types import JSONRPCRequest, RequestId
from starlette.types import Message, Receive, Scope, Send

from cloche_contract.serving import ToolServer
from cloche_mcp_http.calls import Call

logger = logging.getLogger(__name__)


class HttpSession:
    """Everything that belongs to one `Mcp-Session-Id`."""

    def __init__(self, session_id: str, principal: str | None, tools: ToolServer, idle_ttl_s: float) -> None:
        self.id = session_id
        self.principal = principal
        self.ended = anyio.Event()
        self._requests: dict[str, Call] = {}
        self._tools = tools
        self._idle_ttl_s = idle_ttl_s
        self._transport = StreamableHTTPServerTransport(mcp_session_id=session_id)
        self._life = anyio.CancelScope()
        self._busy = 0
        tools.server.middleware.append(self._count_call)

    @property
    def ending(self) -> bool:
        """Whether the end has begun: from then on nobody finds this session."""
        return self._life.cancel_called

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Own the session until it ends; return when everything that it made is destroyed."""
        try:
            async with anyio.create_task_group() as owner:
                owner.start_soon(self._tools.session.run)
                try:
                    await self._talk(task_status)
                finally:
                    self._tools.session.begin_close()
        finally:
            for key, call in list(self._requests.items()):
                self._settle(key, call, running=False)
            self.ended.set()

    async def _talk(self, task_status: anyio.abc.TaskStatus[None]) -> None:
        with self._life:
            async with self._transport.connect() as (read_stream, write_stream):
                self._life.deadline = anyio.current_time() + self._idle_ttl_s
                task_status.started()
                await serve_loop(self._tools.server, read_stream, write_stream, lifespan_state={}, session_id=self.id)
        with anyio.CancelScope(shield=True):
            await self._transport.terminate()

    def end(self) -> None:
        """Start to end: calls are cancelled, sandboxes destroyed. `ended` tells when that is done."""
        self._life.cancel()
        # Both take time and share one deadline, so both start at once.
        self._tools.session.begin_close()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request of this session."""
        with self._activity():
            await self._transport.handle_request(scope, receive, send)
        self._tools.on_answer()

    def is_answering(self, request_id: RequestId) -> bool:
        """Whether a request with this id is open: a second one would take the first one's answer."""
        return str(request_id) in self._requests  # the transport matches by the text of the id

    async def answer_request(
        self, message: JSONRPCRequest, call: Call, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request; its call counts until it has ended, also where its client is gone before."""
        key = str(message.id)
        self._requests[key] = call
        taken_up = False

        async def watch(sent: Message) -> None:
            nonlocal taken_up
            taken_up = taken_up or (sent["type"] == "http.response.start" and sent["status"] < 400)
            await send(sent)

        try:
            await self.answer(scope, receive, watch)
        finally:
            self._settle(key, call, answering=False, running=None if taken_up and not self.ending else False)

    async def _count_call(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        key = str(ctx.request_id)
        call = None if ctx.request_id is None else self._requests.get(key)
        with self._activity():
            try:
                return await call_next(ctx)
            finally:
                if call is not None:
                    self._settle(key, call, running=False)

    def _settle(self, key: str, call: Call, *, answering: bool | None = None, running: bool | None = None) -> None:
        if call.settle(answering=answering, running=running) and self._requests.get(key) is call:
            del self._requests[key]

    @contextmanager
    def _activity(self) -> Generator[None, None, None]:
        self._busy += 1
        self._life.deadline = math.inf
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy:
                self._life.deadline = anyio.current_time() + self._idle_ttl_s
