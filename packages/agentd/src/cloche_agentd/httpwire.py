"""HTTP/1.1 syntax without I/O: request heads, body framing, response heads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, unquote

from . import limits

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_DIGITS: Final = re.compile(r"[0-9]{1,18}\Z")
_HEX: Final = re.compile(rb"[0-9A-Fa-f]{1,15}\Z")
_CHUNK_LINE_BYTES: Final = 1024

REASONS: Final = {
    200: "OK",
    204: "No Content",
    206: "Partial Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    507: "Insufficient Storage",
}


class BadRequest(Exception):
    """The peer does not speak HTTP as we do; the connection ends after `status`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(slots=True)
class Head:
    """A request line and its headers; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    keep_alive: bool

    def parameters(self) -> dict[str, str]:
        """Return the query parameters; of a repeated one, the first."""
        parsed = parse_qs(self.query, keep_blank_values=True, max_num_fields=64, errors="replace")
        return {name: values[0] for name, values in parsed.items()}


def parse_head(block: bytes) -> Head:
    """Parse a request head, without its closing empty line.

    Raises:
        BadRequest: not HTTP/1.x, or a header that could be read in two ways.
    """
    lines = block.decode("latin-1").split("\r\n")
    if len(lines) > limits.HEADER_COUNT:
        raise BadRequest(431, "too many headers")
    parts = lines[0].split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(400, "malformed request line")
    method, target, version = parts
    headers = _parse_headers(lines[1:])
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        raise BadRequest(400, "request target must be a path")
    if "%" in path:
        path = unquote(path, errors="replace")
    connection = headers.get("connection", "").lower()
    keep_alive = "close" not in connection if version == "HTTP/1.1" else "keep-alive" in connection
    return Head(method, path, query, headers, keep_alive)


def _parse_headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.match(name) or "\r" in value or "\n" in value or "\0" in value:
            raise BadRequest(400, "malformed header")
        name = name.lower()
        value = value.strip(" \t")
        if name in headers:
            if name in ("content-length", "transfer-encoding", "x-access-token", "authorization"):
                raise BadRequest(400, "repeated header")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


class LengthBody:
    """A request body of a length that is known before."""

    __slots__ = ("done", "remaining")

    def __init__(self, length: int) -> None:
        self.remaining = length
        self.done = length == 0

    def feed(self, buffer: bytearray) -> list[bytes]:
        """Take from the front of `buffer` what belongs to the body."""
        take = min(self.remaining, len(buffer))
        if not take:
            return []
        piece = bytes(buffer[:take])
        del buffer[:take]
        self.remaining -= take
        self.done = self.remaining == 0
        return [piece]


class ChunkedBody:
    """A request body in the chunked transfer coding. Extensions and trailers are read and dropped."""

    __slots__ = ("_in_trailers", "_needs_crlf", "_remaining", "_trailer_bytes", "done")

    def __init__(self) -> None:
        self.done = False
        self._remaining = 0
        self._needs_crlf = False
        self._in_trailers = False
        self._trailer_bytes = 0

    def feed(self, buffer: bytearray) -> list[bytes]:
        """Take from the front of `buffer` what belongs to the body.

        Raises:
            BadRequest: malformed chunk.
        """
        pieces: list[bytes] = []
        while buffer and not self.done:
            if self._remaining:
                take = min(self._remaining, len(buffer))
                pieces.append(bytes(buffer[:take]))
                del buffer[:take]
                self._remaining -= take
                self._needs_crlf = self._remaining == 0
                continue
            line = self._take_line(buffer)
            if line is None:
                break
            self._read_line(line)
        return pieces

    def _take_line(self, buffer: bytearray) -> bytes | None:
        end = buffer.find(b"\r\n", 0, _CHUNK_LINE_BYTES + 2)
        if end < 0:
            if len(buffer) > _CHUNK_LINE_BYTES:
                raise BadRequest(400, "malformed chunk")
            return None
        line = bytes(buffer[:end])
        del buffer[: end + 2]
        return line

    def _read_line(self, line: bytes) -> None:
        if self._needs_crlf:
            if line:
                raise BadRequest(400, "malformed chunk")
            self._needs_crlf = False
            return
        if self._in_trailers:
            self._trailer_bytes += len(line)
            if self._trailer_bytes > limits.HEAD_BYTES:
                raise BadRequest(431, "trailers are too large")
            self.done = not line
            return
        size = line.partition(b";")[0].strip(b" \t")
        if not _HEX.match(size):
            raise BadRequest(400, "malformed chunk")
        self._remaining = int(size, 16)
        self._in_trailers = self._remaining == 0


Body = LengthBody | ChunkedBody


def body_of(head: Head) -> Body:
    """Return the reader for the request's body.

    Raises:
        BadRequest: framing that proxies and servers could read differently.
    """
    coding = head.headers.get("transfer-encoding")
    length = head.headers.get("content-length")
    if coding is not None:
        if length is not None or coding.lower() != "chunked":
            raise BadRequest(400, "unsupported body framing")
        return ChunkedBody()
    if length is None:
        return LengthBody(0)
    if not _DIGITS.match(length):
        raise BadRequest(400, "malformed content-length")
    return LengthBody(int(length))


def response_head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the status line and headers, with the closing empty line."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
    lines.extend(f"{name}: {value}" for name, value in headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
