"""Connect streams in JSON: one flag byte, a length of four bytes, a message. Errors are JSON objects.

Source: the Connect protocol, section "Streaming-Request"; agent-protocol, 2.1.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

UNARY_CONTENT_TYPE: Final = "application/json"
STREAM_CONTENT_TYPE: Final = "application/connect+json"
MESSAGE_LIMIT_BYTES: Final = 16 * 1024 * 1024

_COMPRESSED: Final = 0x01
_END: Final = 0x02
_HEAD_BYTES: Final = 5

Message = Mapping[str, Any]


class FramingError(Exception):
    """The peer does not speak the protocol; the connection is of no more use. The text holds nothing that it sent."""


def encode_message(message: Message, *, end: bool = False) -> bytes:
    """Return one frame."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return bytes([_END if end else 0]) + len(body).to_bytes(4, "big") + body


class StreamDecoder:
    """Turns the bytes of a response into its messages, however they are cut.

    The last frame of a stream is no message. When the stream failed it is yielded as `{"error": {…}}`, so that nobody
    can take a failure for the end. A stream that ends while `finished` is false was cut.
    """

    def __init__(self, limit_bytes: int = MESSAGE_LIMIT_BYTES) -> None:
        self.finished = False
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """Yield every message that is whole now.

        Raises:
            FramingError: a frame is compressed, too large, not a JSON object, or comes after the last one.
        """
        self._buffer += chunk
        start = 0
        try:
            while len(self._buffer) - start >= _HEAD_BYTES:
                size = int.from_bytes(self._buffer[start + 1 : start + _HEAD_BYTES], "big")
                self._check(self._buffer[start], size)
                stop = start + _HEAD_BYTES + size
                if len(self._buffer) < stop:
                    break
                flags, body = self._buffer[start], self._buffer[start + _HEAD_BYTES : stop]
                start = stop
                message = _object(body)
                if not flags & _END:
                    yield message
                    continue
                self.finished = True
                if "error" in message:
                    yield {"error": message["error"]}
        finally:
            del self._buffer[:start]

    def _check(self, flags: int, size: int) -> None:
        if self.finished:
            raise FramingError("a frame after the last one")
        if flags & _COMPRESSED:
            raise FramingError("a compressed frame")
        if size > self._limit_bytes:
            raise FramingError("a frame over the limit")


def _object(body: "bytes | bytearray") -> Message:
    try:
        value: object = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        raise FramingError("a frame that is not JSON") from None
    if not isinstance(value, dict):
        raise FramingError("a frame that is not an object")
    return cast(Message, value)


def catalogue_error(error: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the `cloche` part of an error body: `{"code": …, and its details}`; None when it carries none.

    Works for Connect errors, where it is an entry of `details`, and for plain HTTP, where it is the key `cloche`.
    """
    plain: object = error.get("cloche")
    if isinstance(plain, dict):
        return cast(Message, plain)
    details: object = error.get("details")
    for detail in cast("list[object]", details) if isinstance(details, list) else []:
        if isinstance(detail, dict):
            entry = cast("dict[str, object]", detail)
            if entry.get("type") == "cloche.Error" and isinstance(entry.get("value"), dict):
                return cast(Message, entry["value"])
    return None
