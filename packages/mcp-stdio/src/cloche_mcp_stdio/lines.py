"""Bytes to lines, with a limit that costs one message and not the connection."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE_BYTES = 8 * 1024 * 1024

_KEPT_HEAD = 4096
_KEPT_TAIL = 512

# The members around "id" are scalars of the message itself, so a match can only be the id of
# the message and never a member of its params: from the front every member before it is read,
# and at the end exactly one brace closes the message.
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,256}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_METHOD = rb'"method"\s*:\s*"[^"\\]{0,256}"'
_ID_AT_FRONT = re.compile(rb"\s*\{\s*(?:(?:" + _VERSION + rb"|" + _METHOD + rb")\s*,\s*)*" + _ID + rb"\s*[,}]")
_ID_AT_END = re.compile(rb",\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")


@dataclass(frozen=True)
class Oversized:
    """A line over the limit was dropped.

    Attributes:
        request_id: the id of the request in it, where it stands at the start or at the end.
    """

    request_id: int | str | None


class LineSplitter:
    """Collects one connection's bytes and hands out whole lines without their newline."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._line = bytearray()
        self._dropping = False
        self._head = b""

    def feed(self, data: bytes) -> Iterator[bytes | Oversized]:
        """Take the next bytes and yield the lines that they complete, empty ones left out."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._extend(data[start:end])
            yield from self.finish()
            start = end + 1
        self._extend(data[start:])

    def finish(self) -> Iterator[bytes | Oversized]:
        """Yield what was collected since the last newline."""
        line, dropped = bytes(self._line), self._dropping
        self._line.clear()
        self._dropping = False
        if dropped:
            yield Oversized(_find_id(self._head, line))
        elif line.strip():
            yield line

    def _extend(self, part: bytes) -> None:
        self._line += part
        if not self._dropping and len(self._line) > self._limit:
            self._dropping = True
            self._head = bytes(self._line[:_KEPT_HEAD])
        if self._dropping:
            del self._line[:-_KEPT_TAIL]


def _find_id(head: bytes, tail: bytes) -> int | str | None:
    found = _ID_AT_FRONT.match(head) or _ID_AT_END.search(tail)
    if found is None:
        return None
    try:
        value = json.loads(found[1])
    except ValueError:
        return None
    return value if isinstance(value, int | str) else None
