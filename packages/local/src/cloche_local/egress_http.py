"""What the egress proxy reads and writes of HTTP: a request's head, the bounds of its body, and refusals.

Source: RFC 9110, RFC 9112 (message framing; a request whose length is ambiguous is refused, not guessed).
"""

import asyncio
import re
from dataclasses import dataclass

from cloche_local.egress_rules import Target, parse_target

HEAD_BYTES = 65536
_CHUNK_LINE_BYTES = 4096
_PIECE_BYTES = 65536
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_SIZE = re.compile(r"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "upgrade"}
)
_REASONS = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway", 503: "Service Unavailable"}


class BadRequest(ValueError):
    """The request is not one that a proxy can read in one way only."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the proxy. `head` is what goes to the target; empty for a tunnel."""

    target: Target
    tunnel: bool
    head: bytes
    body_bytes: int
    chunked: bool


def parse_request(raw: bytes) -> Request:
    """Read the head of a request, up to and with its empty line.

    Raises:
        BadRequest, Malformed: it is malformed, ambiguous, or not for a proxy.
    """
    text = raw[:-4].decode("latin-1")
    lines = text.split("\r\n")
    if any((character < " " and character != "\t") or character == "\x7f" for line in lines for character in line):
        raise BadRequest("control character")
    parts = lines[0].split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0") or not _TOKEN.fullmatch(parts[0]):
        raise BadRequest("request line")
    method, uri, version = parts
    if method == "CONNECT":
        return Request(parse_target(uri), True, b"", 0, False)
    fields = [_parse_field(line) for line in lines[1:]]
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme.lower() != "http":
        raise BadRequest("only http:// and CONNECT")
    cut = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
    target = parse_target(rest[:cut], 80)
    path = rest[cut:].partition("#")[0]
    if not path.startswith("/"):
        path = "/" + path
    body_bytes, chunked = _framing(fields)
    # The name that was decided on, not the one that the client wrote beside it; and one request per connection.
    host = str(target).removesuffix(":80")
    kept = [f"{name}: {value}" for name, value in fields if name.lower() not in _HOP_BY_HOP | {"host"}]
    head = [f"{method} {path} {version}", f"Host: {host}", *kept, "Connection: close", "", ""]
    return Request(target, False, "\r\n".join(head).encode("latin-1"), body_bytes, chunked)


def _parse_field(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    # A name with a space before the colon, or a folded line, is read differently by different servers.
    if not colon or not _TOKEN.fullmatch(name):
        raise BadRequest("header")
    return name, value.strip(" \t")


def _framing(fields: list[tuple[str, str]]) -> tuple[int, bool]:
    lengths = [value for name, value in fields if name.lower() == "content-length"]
    codings = [value.lower() for name, value in fields if name.lower() == "transfer-encoding"]
    if codings:
        if lengths or codings != ["chunked"]:
            raise BadRequest("ambiguous length")
        return 0, True
    if not lengths:
        return 0, False
    if len(lengths) > 1 or not _SIZE.fullmatch(lengths[0]):
        raise BadRequest("ambiguous length")
    return int(lengths[0]), False


async def copy_body(request: Request, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass the request's body on, and nothing that follows it."""
    if request.chunked:
        await _copy_chunks(source, sink)
    else:
        await _copy_exactly(request.body_bytes, source, sink)


async def _copy_exactly(count: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while count:
        piece = await source.read(min(count, _PIECE_BYTES))
        if not piece:
            raise asyncio.IncompleteReadError(b"", count)
        count -= len(piece)
        sink.write(piece)
        await sink.drain()


async def _copy_chunks(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while True:
        line = await source.readuntil(b"\r\n")
        size = line[:-2].partition(b";")[0].strip()
        if len(line) > _CHUNK_LINE_BYTES or not _CHUNK_SIZE.fullmatch(size):
            raise BadRequest("chunk")
        count = int(size, 16)
        sink.write(size + b"\r\n")
        if count == 0:
            break
        await _copy_exactly(count + 2, source, sink)
    while (line := await source.readuntil(b"\r\n")) != b"\r\n":
        # Trailers are not passed on: nothing decides by them.
        if len(line) > _CHUNK_LINE_BYTES:
            raise BadRequest("trailer")
    sink.write(b"\r\n")
    await sink.drain()


async def copy_response(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass the answer's head on; its body, which ends with the connection, is left to the caller.

    The client is told that the connection ends with this answer: a second request on it would not be read.
    """
    while True:
        head = (await source.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        if first.startswith("HTTP/1.1 1"):
            sink.write(head.encode("latin-1"))
            await sink.drain()
            continue
        if not first.startswith("HTTP/1."):
            raise BadRequest("no HTTP")
        kept = [line for line in lines if line.partition(":")[0].strip().lower() not in ("connection", "keep-alive")]
        sink.write("\r\n".join([first, *kept, "Connection: close", "", ""]).encode("latin-1"))
        await sink.drain()
        return


def refusal(status: int, text: str) -> bytes:
    """A whole answer of the proxy's own."""
    body = text.encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nProxy-Agent: cloche\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
