"""HTTP/1.1 over a unix socket or TCP: one request per connection, the answer as it arrives.

The conformance suite speaks the wire itself: the client that products use would hide
what an agent does wrong. It uses asyncio's own streams: calls are cancelled at any
moment here, and anyio's unix streams then report errors that are not the agent's.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from cloche_contract.lifecycle import AgentEndpoint

_LONGEST_LINE: Final = 65_536
_PIECE: Final = 1 << 20


class ConnectionCut(Exception):
    """The connection ended before the answer did."""


@dataclass(frozen=True)
class Response:
    """Status and headers of an answer; its body is read from `chunks`."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    async def body(self) -> bytes:
        """The whole body."""
        return b"".join([chunk async for chunk in self.chunks])


@asynccontextmanager
async def request(
    endpoint: AgentEndpoint, method: str, target: str, *, headers: Mapping[str, str], body: bytes = b""
) -> AsyncGenerator[Response]:
    """Send one request; leaving the context closes its connection.

    Raises:
        ConnectionCut: no answer, or not a whole one.
    """
    url = urlsplit(endpoint.base_url)
    head = {"Host": url.netloc, "Connection": "close", "Content-Length": str(len(body)), **headers}
    lines = [
        f"{method} {url.path.rstrip('/')}{target} HTTP/1.1",
        *(f"{name}: {value}" for name, value in head.items()),
    ]
    try:
        reader, writer = await _connect(endpoint)
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
            yield await _receive(reader)
        finally:
            await _close(writer)
    except (asyncio.IncompleteReadError, OSError) as error:
        raise ConnectionCut from error


async def _connect(endpoint: AgentEndpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.socket_path is not None:
        return await asyncio.open_unix_connection(endpoint.socket_path, limit=_LONGEST_LINE)
    url = urlsplit(endpoint.base_url)
    return await asyncio.open_connection(url.hostname or "127.0.0.1", url.port or 80, limit=_LONGEST_LINE)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()  # at once: what is still unsent belongs to a call that has ended
    with suppress(OSError):
        await writer.wait_closed()


async def _receive(reader: asyncio.StreamReader) -> Response:
    status_line = await _line(reader)
    headers: dict[str, str] = {}
    while line := await _line(reader):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    status = int(status_line.split(" ", 2)[1])
    if status == 204:
        return Response(status, headers, _sized(reader, 0))
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Response(status, headers, _chunked(reader))
    return Response(status, headers, _sized(reader, int(headers["content-length"])))


async def _line(reader: asyncio.StreamReader) -> str:
    return (await reader.readuntil(b"\r\n"))[:-2].decode("latin-1")


async def _sized(reader: asyncio.StreamReader, length: int) -> AsyncGenerator[bytes]:
    while length > 0:
        piece = await reader.readexactly(min(length, _PIECE))
        length -= len(piece)
        yield piece


async def _chunked(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    while size := int((await _line(reader)).partition(";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    while await _line(reader):
        pass
