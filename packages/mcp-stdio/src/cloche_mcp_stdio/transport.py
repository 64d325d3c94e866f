"""Newline-delimited JSON-RPC between two descriptors and the streams of an MCP server.

The reader answers by itself what no server gets to see: text that is not JSON, JSON that is
no message, and lines over the limit. The connection survives all of them.

Source: checklist 297, 298; JSON-RPC 2.0 section 5.1; MCP 2025-06-18 (no batches).
"""

import logging
import os
import select
from collections.abc import Awaitable, Callable
from typing import cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic_core import PydanticSerializationError

from cloche_contract.serving import parse_message, refusal
from cloche_mcp_stdio.lines import LineSplitter, Oversized

_READ_BYTES = 64 * 1024
# A pipe that polls as writable takes this much without blocking, so no descriptor has to be
# made non-blocking: that flag would be shared with whoever else has the other end open.
_WRITE_BYTES = select.PIPE_BUF

logger = logging.getLogger(__name__)


class OpenRequests:
    """Ids of the requests that were read and are not answered yet."""

    def __init__(self) -> None:
        self._ids: set[RequestId] = set()
        self._none_left = anyio.Event()

    def read(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request is never answered.
            self._settle((message.params or {}).get("requestId"))

    def written(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._settle(message.id)

    async def wait_until_answered(self) -> None:
        if self._ids:
            self._none_left = anyio.Event()
            await self._none_left.wait()

    def _settle(self, request_id: object) -> None:
        self._ids.discard(cast("RequestId", request_id))
        if not self._ids:
            self._none_left.set()


class FrameReader:
    """Reads messages from a descriptor and sends them on; what is no message it answers."""

    def __init__(self, fd: int, requests: OpenRequests) -> None:
        self._fd = fd
        self._requests = requests
        self._lines = LineSplitter()

    async def run(
        self,
        messages: MemoryObjectSendStream[SessionMessage | Exception],
        answers: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        """Return at the end of input, or when the server no longer listens."""
        while data := await self._read():
            for line in self._lines.feed(data):
                await self._pass_on(line, messages, answers)
        for line in self._lines.finish():
            await self._pass_on(line, messages, answers)

    async def _read(self) -> bytes:
        while True:
            await _until_ready(self._fd, select.POLLIN, anyio.wait_readable)
            try:
                return os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:  # a terminal that was hung up
                return b""

    async def _pass_on(
        self,
        line: bytes | Oversized,
        messages: MemoryObjectSendStream[SessionMessage | Exception],
        answers: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        message = parse_line(line)
        if message is None:
            return
        if isinstance(message, JSONRPCError):
            await answers.send(SessionMessage(message))
            return
        self._requests.read(message)
        await messages.send(SessionMessage(message))


class FrameWriter:
    """Writes messages to a descriptor, one whole frame after the other."""

    def __init__(self, fd: int, requests: OpenRequests, on_answer: Callable[[], None]) -> None:
        self._fd = fd
        self._requests = requests
        self._on_answer = on_answer

    async def run(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Return when nothing more can come, or when the client stopped reading (EPIPE)."""
        async for item in messages:
            try:
                await self._write(encode_frame(item.message))
            except OSError as error:
                logger.info("stdout is closed", extra={"errno": error.errno})
                return
            self._requests.written(item.message)
            if isinstance(item.message, JSONRPCResponse):
                self._on_answer()

    async def _write(self, frame: bytes) -> None:
        rest = memoryview(frame)
        while rest:
            await _until_ready(self._fd, select.POLLOUT, anyio.wait_writable)
            try:
                rest = rest[os.write(self._fd, rest[:_WRITE_BYTES]) :]
            except BlockingIOError:
                continue


def parse_line(line: bytes | Oversized) -> JSONRPCMessage | None:
    """Return the message, the error that answers the line, or `None` for what needs no answer."""
    if isinstance(line, Oversized):
        return refusal(line.request_id, INVALID_REQUEST, "Message exceeds the STDIO size limit of 8 MiB")
    return parse_message(line)


# Valid inside a JSON string, but some clients' line readers break a line there.
_LINE_BREAKS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))


def encode_frame(message: JSONRPCMessage) -> bytes:
    """One message as one line. A result that is no JSON becomes an internal error."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:
        logger.exception("a message could not be encoded")
        request_id = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
        text = refusal(request_id, INTERNAL_ERROR, "Internal error").model_dump_json(exclude_unset=True)
    frame = text.encode()
    for character, escape in _LINE_BREAKS:
        frame = frame.replace(character, escape)
    return frame + b"\n"


async def _until_ready(fd: int, event: int, wait: Callable[[int], Awaitable[None]]) -> None:
    # Asking first serves regular files too, which an event loop refuses to watch.
    poll = select.poll()
    poll.register(fd, event)
    if not poll.poll(0):
        await wait(fd)
