"""Frames between the keeper and an interpreter context: a JSON header with its length before it, then raw parts.

Large payloads travel as parts and are never parsed: JSON from user code can cost the keeper many times its size.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from . import limits

Header = Mapping[str, object]


class BrokenControl(Exception):
    """The other side does not keep to the framing."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    header: Header
    parts: Sequence[bytes] = ()


def encode(header: Header, parts: Sequence[bytes] = ()) -> bytes:
    """Return one frame."""
    if parts:
        header = {**header, "parts": [len(part) for part in parts]}
    data = json.dumps(header, separators=(",", ":")).encode()
    return b"".join((struct.pack(">I", len(data)), data, *parts))


class Decoder:
    """Cuts a byte stream into frames; bounds what it keeps."""

    def __init__(self, header_bytes: int = limits.CONTROL_HEADER_BYTES) -> None:
        self._buffer = bytearray()
        self._header_bytes = header_bytes
        self._header: Header | None = None
        self._sizes: list[int] = []

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete now.

        Raises:
            BrokenControl: a frame is too large or not of this shape.
        """
        self._buffer += data
        frames: list[Frame] = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        if self._header is None and not self._take_header():
            return None
        if self._header is None or len(self._buffer) < sum(self._sizes):
            return None
        parts = [self._take(size) for size in self._sizes]
        frame = Frame(self._header, parts)
        self._header = None
        return frame

    def _take_header(self) -> bool:
        if len(self._buffer) < 4:
            return False
        (size,) = struct.unpack_from(">I", self._buffer)
        if size > self._header_bytes:
            raise BrokenControl
        if len(self._buffer) < 4 + size:
            return False
        self._take(4)
        self._header = _parse(self._take(size))
        self._sizes = _sizes_of(self._header)
        return True

    def _take(self, size: int) -> bytes:
        piece = bytes(self._buffer[:size])
        del self._buffer[:size]
        return piece


def _parse(raw: bytes) -> Header:
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        raise BrokenControl from None
    if not isinstance(value, dict):
        raise BrokenControl
    return cast("Header", value)


def _sizes_of(header: Header) -> list[int]:
    found = header.get("parts", [])
    if not isinstance(found, list):
        raise BrokenControl
    sizes: list[int] = []
    for size in cast("list[object]", found):
        if type(size) is not int or size < 0:
            raise BrokenControl
        sizes.append(size)
    if len(sizes) > limits.RESULT_TYPES or sum(sizes) > limits.RESULT_BYTES:
        raise BrokenControl
    return sizes


class BlockingControl:
    """The context's end."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._decoder = Decoder(limits.JSON_BODY_BYTES)
        self._ready: list[Header] = []
        self._order = threading.RLock()
        self._sent = 0
        self._sending = False
        self._interrupted = False

    def receive(self) -> Header | None:
        """Wait for the next request; None when the keeper is gone."""
        while not self._ready:
            headers = self._read()
            if headers is None:
                return None
            self._ready.extend(header for header in headers if "ack" not in header)
        return self._ready.pop(0)

    def send(self, header: Header) -> None:
        """Send one frame without parts."""
        self._send_whole(encode(header))

    def send_in_order(self, header: Header, parts: Sequence[bytes]) -> None:
        """Send one frame and wait until the keeper has it, and what was printed before it.

        Output and frames travel on different ways: only so does the reader see them in the order of the code.
        """
        with self._order:
            self._sent += 1
            self._send_whole(encode({**header, "n": self._sent}, parts))
            while (headers := self._read()) is not None:
                self._ready.extend(header for header in headers if "ack" not in header)
                if any(header.get("ack") == self._sent for header in headers):
                    return

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the main thread (a signal handler); once the frame that it sends is whole.

        Half a frame would end the session: the keeper could not tell where the next one starts.
        """
        if self._sending:
            self._interrupted = True
        else:
            raise KeyboardInterrupt

    def _send_whole(self, data: bytes) -> None:
        # Signal handlers run in the main thread alone: no other thread is interrupted.
        self._sending = threading.current_thread() is threading.main_thread()
        try:
            self._channel.sendall(data)
        finally:
            self._sending = False
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    def close(self) -> None:
        """Close the channel, for example in a child of the context."""
        self._channel.close()

    def _read(self) -> list[Header] | None:
        data = self._channel.recv(limits.CONTROL_READ_BYTES)
        return [frame.header for frame in self._decoder.feed(data)] if data else None
