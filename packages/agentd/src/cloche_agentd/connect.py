"""Connect protocol in JSON: stream envelopes, unary and streaming errors, header values."""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Mapping
from typing import Final, cast

from . import limits
from .failures import AgentError, invalid_argument

STREAM_TYPE: Final = "application/connect+json"
END_STREAM: Final = 0x02
COMPRESSED: Final = 0x01
END_OK: Final = struct.pack(">BI", END_STREAM, 2) + b"{}"

Json = Mapping[str, object]


def envelope(payload: bytes, flags: int = 0) -> bytes:
    """Return one stream frame."""
    return struct.pack(">BI", flags, len(payload)) + payload


def message(value: object) -> bytes:
    """Return one stream frame that carries `value` as JSON."""
    return envelope(json.dumps(value, separators=(",", ":")).encode())


def end_with(error: AgentError) -> bytes:
    """Return the last frame of a stream that failed."""
    return envelope(json.dumps({"error": error.connect_value()}).encode(), END_STREAM)


def data_frame(stream: str, data: bytes) -> bytes:
    """Return a process event with output bytes. Built by hand: this is the busiest frame."""
    encoded = binascii.b2a_base64(data, newline=False)
    return envelope(b'{"event":{"data":{"' + stream.encode() + b'":"' + encoded + b'"}}}')


def parse_object(raw: bytes) -> Json:
    """Parse a JSON object.

    Raises:
        AgentError: invalid_argument, the text is not a JSON object.
    """
    try:
        value: object = json.loads(raw) if raw else {}
    except (ValueError, RecursionError):
        raise invalid_argument("the request body is not JSON", "body") from None
    if not isinstance(value, dict):
        raise invalid_argument("the request body must be a JSON object", "body")
    return cast("Json", value)


def split_envelope(buffer: bytes) -> tuple[int, bytes] | None:
    """Return flags and payload of the first frame in `buffer`, or None while it is incomplete.

    Raises:
        AgentError: the frame is compressed or too large.
    """
    if len(buffer) < 5:
        return None
    flags, size = struct.unpack_from(">BI", buffer)
    if flags & COMPRESSED:
        raise AgentError("unimplemented", "compressed messages are not supported", "unsupported_operation")
    if size > limits.JSON_BODY_BYTES:
        raise AgentError("resource_exhausted", "the message is too large", "invalid_argument", status=413)
    if len(buffer) < 5 + size:
        return None
    return flags, buffer[5 : 5 + size]


def timeout_of(headers: Mapping[str, str]) -> float | None:
    """Return the request's connect-timeout-ms in seconds; None when there is none.

    Raises:
        AgentError: the header is not a positive whole number.
    """
    value = headers.get("connect-timeout-ms")
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()) or len(value) > 10:
        raise invalid_argument("connect-timeout-ms must be a whole number", "connect-timeout-ms")
    return min(int(value) / 1000.0, limits.COMMAND_TIMEOUT_MAX_S)
