"""One JSON object per line, as the interpreter streams its results."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from cloche_contract.wire.connect import FramingError

CONTENT_TYPE: Final = "application/x-ndjson"
LINE_LIMIT_BYTES: Final = 48 * 1024 * 1024


class LineDecoder:
    """Turns the bytes of a response into its objects, however they are cut."""

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Mapping[str, Any]]:
        """Yield every object whose line is whole now; blank lines are nothing.

        Raises:
            FramingError: a line is too long or not a JSON object.
        """
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield from self._take(line)
        self._hold(rest)

    def finish(self) -> Iterator[Mapping[str, Any]]:
        """Yield the object of a last line without its newline."""
        yield from self._take(b"")

    def _hold(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit_bytes:
            raise FramingError("a line over the limit")

    def _take(self, part: bytes) -> Iterator[Mapping[str, Any]]:
        self._hold(part)
        line, self._parts, self._size = b"".join(self._parts), [], 0
        if not line.strip():
            return
        try:
            value: object = json.loads(line)
        except (ValueError, RecursionError):
            raise FramingError("a line that is not JSON") from None
        if not isinstance(value, dict):
            raise FramingError("a line that is not an object")
        yield cast("Mapping[str, Any]", value)


def encode_line(message: Mapping[str, Any]) -> bytes:
    """Return one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
