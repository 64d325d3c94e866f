"""HTTP/1.1 over a unix socket or TCP: one request per connection, the answer as it arrives.

The conformance suite speaks the wire itself: the client that products use would hide
what an agent does wrong.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from cloche_contract.lifecycle import AgentEndpoint

_LONGEST_LINE: Final = 65_536


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
    async with await _connect(endpoint) as stream:
        head = {"Host": url.netloc, "Connection": "close", "Content-Length": str(len(body)), **headers}
        lines = [
            f"{method} {url.path.rstrip('/')}{target} HTTP/1.1",
            *(f"{name}: {value}" for name, value in head.items()),
        ]
        try:
            await stream.send("\r\n".join([*lines, "", ""]).encode() + body)
            yield await _receive(BufferedByteReceiveStream(stream))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError) as error:
            raise ConnectionCut from error


async def _connect(endpoint: AgentEndpoint) -> ByteStream:
    try:
        if endpoint.socket_path is not None:
            return await anyio.connect_unix(endpoint.socket_path)
        url = urlsplit(endpoint.base_url)
        return await anyio.connect_tcp(url.hostname or "127.0.0.1", url.port or 80)
    except OSError as error:
        raise ConnectionCut from error


async def _receive(stream: BufferedByteReceiveStream) -> Response:
    status_line = await _line(stream)
    headers: dict[str, str] = {}
    while line := await _line(stream):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    status = int(status_line.split(" ", 2)[1])
    if status == 204:
        return Response(status, headers, _sized(stream, 0))
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Response(status, headers, _chunked(stream))
    return Response(status, headers, _sized(stream, int(headers["content-length"])))


async def _line(stream: BufferedByteReceiveStream) -> str:
    return (await stream.receive_until(b"\r\n", _LONGEST_LINE)).decode("latin-1")


async def _sized(stream: BufferedByteReceiveStream, length: int) -> AsyncGenerator[bytes]:
    while length > 0:
        piece = await stream.receive(min(length, 1 << 20))
        length -= len(piece)
        yield piece


async def _chunked(stream: BufferedByteReceiveStream) -> AsyncGenerator[bytes]:
    while size := int((await _line(stream)).partition(";")[0], 16):
        yield await stream.receive_exactly(size)
        await stream.receive_exactly(2)
    while await _line(stream):
        pass
