"""One HTTP/1.1 request, read from a connection, and the bytes that answer it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

HEAD_LIMIT = 65_536
BODY_LIMIT = 1_048_576
FILE_LIMIT = 64 * 1_048_576


@dataclass(frozen=True)
class Seen:
    """A request as it came. Names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    head: bytes = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def json(self) -> object:
        return json.loads(self.body) if self.body else None


async def read_head(stream: BufferedByteReceiveStream) -> Seen | None:
    """The head of the next request; None where the connection ends before it does."""
    try:
        head = await stream.receive_until(b"\r\n\r\n", HEAD_LIMIT)
    except (anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.EndOfStream, anyio.BrokenResourceError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Seen(method, target, headers, head)


async def read_body(stream: BufferedByteReceiveStream, seen: Seen, limit: int = BODY_LIMIT) -> bytes | None:
    """The body of a request that says how long it is; None where it is cut off or too large."""
    size = int(seen.headers.get("content-length", "0"))
    if size > limit:
        return None
    try:
        return await stream.receive_exactly(size) if size else b""
    except anyio.IncompleteRead:
        return None


def answer(status: int, value: object = None, headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes of an answer; its body is JSON, or nothing."""
    body = b"" if value is None else json.dumps(value).encode()
    return raw_answer(status, body, headers)


def raw_answer(
    status: int, body: bytes, headers: Mapping[str, str] | None = None, *, claimed_length: int | None = None
) -> bytes:
    """The bytes of an answer with any body, and a length that need not be true."""
    told = {"content-type": "application/json", **(headers or {})}
    told["content-length"] = str(len(body) if claimed_length is None else claimed_length)
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in told.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def stream_head(status: int, content_type: str) -> bytes:
    """The head of an answer that comes in pieces, and whose connection ends with it."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"content-type: {content_type}"]
    return "\r\n".join([*lines, "transfer-encoding: chunked", "connection: close", "", ""]).encode("latin-1")


def chunk(piece: bytes) -> bytes:
    """One piece of such an answer; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)
