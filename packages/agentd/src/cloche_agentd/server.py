"""HTTP/1.1 server on asyncio protocols: keep-alive, bounded, made for small requests in little time."""

from __future__ import annotations

import asyncio
import logging
import mmap
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, cast

from . import limits
from .addressee import check_addressee, names_of
from .exchange import ClientGone, Exchange
from .failures import AgentError
from .httpwire import BadRequest, body_of, parse_head, response_head

logger = logging.getLogger(__name__)

Handler = Callable[[Exchange], Coroutine[None, None, None] | None]
"""Answers at once and returns None, or returns the coroutine that answers."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_WRITE_HIGH_BYTES: Final = 256 * 1024


class Connection(asyncio.BufferedProtocol):
    """One peer. Requests of a connection are answered in order, one at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = server.loop
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._exchange: Exchange | None = None
        self._discarded = 0
        self._eof = False
        self._read_paused = False
        self._closing = False
        self.write_paused = False
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._names: frozenset[str] | None = None

    # -- protocol callbacks -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # asyncio types the base class only
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_BYTES)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio sets it only for sockets made with an explicit protocol number.
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._names = names_of(transport.get_extra_info("sockname"))
        if not self._server.register(self):
            self._transport.abort()
            return
        self._expect_within(limits.HEAD_TIMEOUT_S)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.forget(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._exchange is not None:
            self._exchange.lost()

    def get_buffer(self, sizehint: int) -> mmap.mmap:
        del sizehint
        return self._server.received

    def buffer_updated(self, nbytes: int) -> None:
        if self._closing and self._exchange is None:
            return
        self._buffer += memoryview(self._server.received)[:nbytes]
        self._advance()

    def eof_received(self) -> bool:
        exchange = self._exchange
        # A peer that only closed its sending side still gets a whole answer. A stream would never notice that its
        # reader is gone, so there the end of input means that the peer left.
        if exchange is None or exchange.finished or not exchange.body_done or exchange.on_gone is not None:
            return False
        self._eof = True
        return True

    def pause_writing(self) -> None:
        self.write_paused = True
        self._expect_within(limits.WRITE_STALL_S)

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._exchange is not None:
            self._expect_within(0)
            self._exchange.resumed()

    # -- what an exchange asks ----------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Write bytes to the peer."""
        if self._transport is not None:
            self._transport.write(data)

    def abort(self) -> None:
        """Cut the connection now."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close after what is written has left."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def want_body(self, exchange: Exchange) -> None:
        """The handler waits for body bytes."""
        if exchange.head.headers.pop("expect", "").lower() == "100-continue" and not self._buffer:
            self.send(_CONTINUE)
        self._expect_within(0 if exchange.unhurried else limits.BODY_STALL_S)

    def body_was_read(self, exchange: Exchange) -> None:
        """The handler took body bytes; read on when the window is open again."""
        if self._read_paused and exchange.waiting_bytes < limits.BODY_WINDOW_BYTES:
            self._resume_reading()
            self._advance()

    def exchange_done(self, exchange: Exchange) -> None:
        """The answer is complete: go on to the next request, or end."""
        if exchange is not self._exchange:
            return
        if exchange.body_done and exchange.head.keep_alive and not self._eof:
            self._exchange = None
            self._expect_within(limits.IDLE_TIMEOUT_S)
            if self._read_paused:
                self._resume_reading()
            if self._buffer:
                self._loop.call_soon(self._advance)
            return
        if exchange.body_done or self._eof:
            self.close()
            return
        # Closing with unread input would reset the connection and lose the answer: read the rest, bounded.
        self._expect_within(limits.BODY_STALL_S)
        if self._read_paused:
            self._resume_reading()
        self._loop.call_soon(self._advance)

    # -- input --------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        try:
            while self._transport is not None:
                if self._exchange is None:
                    if not self._begin_request():
                        return
                    continue
                self._feed_body(self._exchange)
                return
        except BadRequest as bad:
            self._refuse(bad)

    def _begin_request(self) -> bool:
        """Parse a head and start its handler. False while it is incomplete."""
        buffer = self._buffer
        if self._closing:
            return False
        while buffer.startswith(b"\r\n"):
            del buffer[:2]
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > limits.HEAD_BYTES:
                raise BadRequest(431, "the request head is too large")
            if buffer:
                self._expect_within(limits.HEAD_TIMEOUT_S)
            return False
        if end > limits.HEAD_BYTES:
            raise BadRequest(431, "the request head is too large")
        head = parse_head(bytes(buffer[:end]))
        if self._names is not None:
            check_addressee(head, self._names)
        body = body_of(head)
        del buffer[: end + 4]
        exchange = Exchange(self, head, body)
        self._exchange = exchange
        self._discarded = 0
        self._expect_within(0)
        if not body.done and buffer:
            exchange.feed(buffer)
        self._server.start(exchange)
        return True

    def _feed_body(self, exchange: Exchange) -> None:
        if exchange.body_done:
            if len(self._buffer) > limits.HEAD_BYTES:
                self._pause_reading()
            return
        before = exchange.waiting_bytes
        exchange.feed(self._buffer)
        if exchange.finished:
            self._discarded += exchange.waiting_bytes - before
            if exchange.body_done:
                self.exchange_done(exchange)
            elif self._discarded > limits.DISCARD_BODY_BYTES:
                self.abort()
            return
        # Whoever waits for more says so again; a handler that answers already may leave the rest of a body open.
        self._expect_within(0)
        if exchange.waiting_bytes >= limits.BODY_WINDOW_BYTES:
            self._pause_reading()

    def _refuse(self, bad: BadRequest) -> None:
        if self._exchange is not None:
            # Broken framing in the middle of a body: there is nothing to answer it with.
            self.abort()
            return
        body = AgentError("invalid_argument", bad.message, "invalid_argument", status=bad.status).plain_body()
        fields = (("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close"))
        self.send(response_head(bad.status, fields) + body)
        self.close()

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._read_paused:
            self._read_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None:
            self._read_paused = False
            self._transport.resume_reading()

    # -- time ---------------------------------------------------------------------------------------------------

    def _expect_within(self, seconds: float) -> None:
        """Cut the connection unless something happens within `seconds`; 0 waits without a bound."""
        if not seconds:
            self._deadline = 0.0
            return
        self._deadline = self._loop.time() + seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)
        elif self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if not self._deadline:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)
            return
        self.abort()


class Server:
    """Accepts connections on given listeners and runs a handler per request, inside one task group."""

    def __init__(
        self, handler: Handler, tasks: asyncio.TaskGroup, on_done: Callable[[Exchange], None] | None = None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._handler = handler
        self._on_done = on_done
        self._tasks = tasks
        self._connections: set[Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._closed = False
        self.received = mmap.mmap(-1, limits.FILE_CHUNK_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        """What has just been read, of any connection. Asyncio's own way maps and unmaps memory for each read; a
        `bytearray` of this size would be written to as a whole before the first one."""

    async def listen(self, listeners: Sequence[socket.socket]) -> None:
        """Serve on these bound sockets."""
        for listener in listeners:
            listener.setblocking(False)
            server = await self.loop.create_server(lambda: Connection(self), sock=listener, backlog=limits.BACKLOG)
            self._servers.append(server)

    def close(self) -> None:
        """Accept nothing more and close every connection once its output has left."""
        self._closed = True
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.close()

    def register(self, connection: Connection) -> bool:
        """Count a new connection; False refuses it."""
        if len(self._connections) >= limits.CONNECTIONS:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: Connection) -> None:
        """Stop counting a closed connection."""
        self._connections.discard(connection)

    def start(self, exchange: Exchange) -> None:
        """Answer a request: at once where the handler can, else in a task."""
        if self._on_done is not None:
            exchange.on_done = self._on_done
        if self._closed:
            exchange.abort()
            return
        try:
            coroutine = self._handler(exchange)
        except AgentError as error:
            self._fail(exchange, error)
            return
        if coroutine is not None:
            run_in_background(self._tasks, self._answer(exchange, coroutine))

    async def _answer(self, exchange: Exchange, coroutine: Coroutine[None, None, None]) -> None:
        """Run one handler. An entry point: no failure of a request may end the agent."""
        try:
            await coroutine
        except ClientGone:
            exchange.abort()
        except AgentError as error:
            self._fail(exchange, error)
        except Exception:
            logger.exception("request failed")
            self._fail(exchange, AgentError("internal", "the agent failed to answer", "internal_error"))

    def _fail(self, exchange: Exchange, error: AgentError) -> None:
        if exchange.finished:
            return
        if exchange.started:
            exchange.abort()
            return
        exchange.reply(error.status, error.connect_body() if is_rpc(exchange.head.path) else error.plain_body())


def run_in_background(tasks: asyncio.TaskGroup, work: Coroutine[None, None, object]) -> None:
    """Run work that nobody awaits. Its failure is logged: in a task group it would otherwise end the whole agent.

    An agent that is ending drops it: what the work is about dies with the agent's init.
    """
    guarded = _guarded(work)
    try:
        tasks.create_task(guarded)
    except RuntimeError:
        # A task group that is closing takes no more; closed coroutines are not reported as forgotten.
        guarded.close()
        work.close()


async def _guarded(work: Coroutine[None, None, object]) -> None:
    try:
        await work
    except Exception:
        logger.exception("background work failed")


def is_rpc(path: str) -> bool:
    """Return whether a path names a method of a Connect service, whose errors have their own form."""
    service, _, method = path[1:].partition("/")
    return "." in service and method.isalpha()
