"""Frames between the keeper and an interpreter context: 4 bytes of length, then JSON."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Mapping
from typing import cast

from . import limits

Frame = Mapping[str, object]


class BrokenControl(Exception):
    """The other side does not keep to the framing."""


def encode(value: Frame) -> bytes:
    """Return one frame."""
    data = json.dumps(value, separators=(",", ":")).encode()
    return struct.pack(">I", len(data)) + data


class Decoder:
    """Cuts a byte stream into frames; bounds what it keeps."""

    def __init__(self, limit: int = limits.CONTROL_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete now.

        Raises:
            BrokenControl: a frame is too large or not a JSON object.
        """
        self._buffer += data
        frames: list[Frame] = []
        while len(self._buffer) >= 4:
            (size,) = struct.unpack_from(">I", self._buffer)
            if size > self._limit:
                raise BrokenControl
            if len(self._buffer) < 4 + size:
                break
            raw = bytes(self._buffer[4 : 4 + size])
            del self._buffer[: 4 + size]
            frames.append(_parse(raw))
        return frames


def _parse(raw: bytes) -> Frame:
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        raise BrokenControl from None
    if not isinstance(value, dict):
        raise BrokenControl
    return cast("Frame", value)


class BlockingControl:
    """The context's end."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._decoder = Decoder()
        self._ready: list[Frame] = []
        self._order = threading.RLock()
        self._sent = 0

    def receive(self) -> Frame | None:
        """Wait for the next request; None when the keeper is gone."""
        while not self._ready:
            frames = self._read()
            if frames is None:
                return None
            self._ready.extend(frame for frame in frames if "ack" not in frame)
        return self._ready.pop(0)

    def send_in_order(self, value: Frame) -> None:
        """Send one frame and wait until the keeper has it, and what was printed before it.

        Output and frames travel on different ways: only so does the reader see them in the order of the code.
        """
        with self._order:
            self._sent += 1
            self.send({**value, "n": self._sent})
            while (frames := self._read()) is not None:
                self._ready.extend(frame for frame in frames if "ack" not in frame)
                if any(frame.get("ack") == self._sent for frame in frames):
                    return

    def _read(self) -> list[Frame] | None:
        data = self._channel.recv(256 * 1024)
        return self._decoder.feed(data) if data else None

    def send(self, value: Frame) -> None:
        """Send one frame, whole."""
        self._channel.sendall(encode(value))

    def close(self) -> None:
        """Close the channel, for example in a child of the context."""
        self._channel.close()
