"""One HTTP request and its answer, as the handlers see them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from . import limits
from .failures import AgentError
from .httpwire import Body, Head, response_head

if TYPE_CHECKING:
    from .server import Connection

JSON_TYPE: Final = "application/json"
Headers = Iterable[tuple[str, str]]


class ClientGone(Exception):
    """The peer closed the connection; nobody reads the answer."""


class Exchange:
    """A request being answered. Writes never block; `drain` waits for a slow peer."""

    def __init__(self, connection: Connection, head: Head, body: Body) -> None:
        self.head = head
        self.finished = False
        self.gone = False
        self.started = False
        self.unhurried = False
        self.status = 0
        """Of the answer; 0 while there is none."""
        self.began = time.monotonic()
        self.on_done: Callable[[Exchange], None] = _told_nobody
        self.on_gone: Callable[[], None] | None = None
        self.on_resume: Callable[[], None] | None = None
        self._connection = connection
        self._body = body
        self._pieces: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._body_waiter: asyncio.Future[None] | None = None
        self._drain_waiter: asyncio.Future[None] | None = None
        self._held = b""
        self._letting_go: asyncio.TimerHandle | None = None
        self._chunked = False

    def watch(self) -> None:
        """Take the end of the peer's input for its leaving, also while nothing is streamed yet."""
        if self.on_gone is None:
            self.on_gone = _nothing

    def take_time(self) -> None:
        """Let the body pause for as long as the peer likes: it is typed, not uploaded."""
        self.unhurried = True

    # -- request body -------------------------------------------------------------------------------------------

    def feed(self, buffer: bytearray) -> None:
        """Take body bytes from the connection's buffer (called by the connection)."""
        for piece in self._body.feed(buffer):
            if not self.finished:
                self._pieces.append(piece)
            self._waiting_bytes += len(piece)
        if self._body_waiter is not None and not self._body_waiter.done():
            self._body_waiter.set_result(None)

    @property
    def body_done(self) -> bool:
        """Whether the whole body has arrived."""
        return self._body.done

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the body that have arrived and were not read."""
        return self._waiting_bytes

    async def read_some(self) -> bytes:
        """Return the next piece of the body; empty at its end.

        Raises:
            ClientGone: the peer left before the body was complete.
        """
        while not self._pieces:
            if self._body.done:
                return b""
            if self.gone:
                raise ClientGone
            self._connection.want_body(self)
            self._body_waiter = asyncio.get_running_loop().create_future()
            await self._body_waiter
        piece = self._pieces.popleft()
        self._waiting_bytes -= len(piece)
        self._connection.body_was_read(self)
        return piece

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            AgentError: it is larger than `limit` bytes.
            ClientGone: the peer left before the body was complete.
        """
        pieces: list[bytes] = []
        total = 0
        while piece := await self.read_some():
            total += len(piece)
            if total > limit:
                raise AgentError("resource_exhausted", "the request body is too large", "invalid_argument", status=413)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # -- answer -------------------------------------------------------------------------------------------------

    def reply(self, status: int, body: bytes = b"", content_type: str = JSON_TYPE, headers: Headers = ()) -> None:
        """Send a whole answer."""
        self.status = status
        fields = list(headers)
        if body:
            fields.append(("content-type", content_type))
        if status != 204:
            fields.append(("content-length", str(len(body))))
        self._chunked = False
        self._take_held()
        self._send(response_head(status, self._with_connection(fields)) + body)
        self._end()

    def begin(self, status: int, content_type: str, headers: Headers = (), length: int | None = None) -> None:
        """Start an answer in pieces. Until the first of them leaves, `reply` may replace it."""
        self.status = status
        fields = [*headers, ("content-type", content_type)]
        if length is None:
            self._chunked = True
            fields.append(("transfer-encoding", "chunked"))
        else:
            fields.append(("content-length", str(length)))
        self._held = response_head(status, self._with_connection(fields))

    def write(self, data: bytes) -> None:
        """Send a piece of the answer. Small ones that follow each other leave together: each would wake the peer."""
        if not data:
            return
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        self._held += data
        if len(self._held) >= limits.HELD_BYTES:
            self._let_go()
        elif self._letting_go is None:
            self._letting_go = asyncio.get_running_loop().call_later(limits.HELD_S, self._let_go)

    def finish(self, data: bytes = b"") -> None:
        """Send the last piece and end the answer."""
        tail = data
        if self._chunked:
            tail = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data) if data else b"0\r\n\r\n"
        last = self._take_held() + tail
        if last:
            self._send(last)
        self._end()

    def _let_go(self) -> None:
        held = self._take_held()
        if held:
            self._send(held)

    def _take_held(self) -> bytes:
        if self._letting_go is not None:
            self._letting_go.cancel()
            self._letting_go = None
        held, self._held = self._held, b""
        return held

    def abort(self) -> None:
        """Cut the connection: an answer that began cannot be completed."""
        self._let_go()
        self._connection.abort()

    @property
    def paused(self) -> bool:
        """Whether the peer reads more slowly than we write."""
        return self._connection.write_paused and not self.gone

    async def drain(self) -> None:
        """Wait until the peer has read enough.

        Raises:
            ClientGone: the peer closed the connection.
        """
        self._let_go()
        if self._connection.write_paused and not self.gone:
            self._drain_waiter = asyncio.get_running_loop().create_future()
            await self._drain_waiter
        if self.gone:
            raise ClientGone

    # -- called by the connection -------------------------------------------------------------------------------

    def resumed(self) -> None:
        """The peer caught up."""
        if self._drain_waiter is not None and not self._drain_waiter.done():
            self._drain_waiter.set_result(None)
        if self.on_resume is not None:
            self.on_resume()

    def lost(self) -> None:
        """The peer is gone."""
        if self.gone:
            return
        self.gone = True
        self._take_held()
        for waiter in (self._body_waiter, self._drain_waiter):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        if not self.finished:
            self.on_done(self)
            if self.on_gone is not None:
                self.on_gone()

    def _with_connection(self, fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
        if not self.head.keep_alive:
            fields.append(("connection", "close"))
        return fields

    def _send(self, data: bytes) -> None:
        self.started = True
        if not self.gone:
            self._connection.send(data)

    def _end(self) -> None:
        if self.finished:
            return
        self.finished = True
        self._pieces.clear()
        if not self.gone:
            self.on_done(self)
        self._connection.exchange_done(self)


def _nothing() -> None:
    return None


def _told_nobody(_exchange: Exchange) -> None:
    return None
