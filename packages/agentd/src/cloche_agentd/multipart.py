"""multipart/form-data, parsed piece by piece without I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from . import limits
from .failures import AgentError, invalid_argument

_BOUNDARY: Final = re.compile(r'boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))', re.IGNORECASE)
_PARAMETER: Final = re.compile(r';\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))')
_ESCAPE: Final = re.compile(r"\\([\"\\])")
_FORM_ESCAPES: Final = {"%22": '"', "%0D": "\r", "%0A": "\n"}


@dataclass(frozen=True, slots=True)
class Part:
    """The start of a part."""

    name: str
    filename: str | None


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of the current part."""

    data: bytes


@dataclass(frozen=True, slots=True)
class PartEnd:
    """The current part is complete."""


Event = Part | Data | PartEnd


def boundary_of(content_type: str) -> bytes:
    """Return the boundary that a content type names.

    Raises:
        AgentError: there is none.
    """
    found = _BOUNDARY.search(content_type)
    if not found:
        raise invalid_argument("multipart body without a boundary", "content-type")
    return (found[1] or found[2]).encode("latin-1")


class Parser:
    """Feed bytes, get events. Holds at most one boundary's length of data back."""

    def __init__(self, boundary: bytes) -> None:
        self._delimiter = b"\r\n--" + boundary
        # The first boundary has no line end before it.
        self._buffer = bytearray(b"\r\n")
        self._state = "preamble"
        self._parts = 0

    @property
    def complete(self) -> bool:
        """Whether the closing boundary was seen."""
        return self._state == "end"

    def feed(self, data: bytes) -> list[Event]:
        """Return what these bytes complete.

        Raises:
            AgentError: malformed body.
        """
        self._buffer += data
        events: list[Event] = []
        while self._step(events):
            pass
        return events

    def _step(self, events: list[Event]) -> bool:
        match self._state:
            case "preamble":
                return self._skip_preamble()
            case "data":
                return self._take_data(events)
            case "boundary":
                return self._after_boundary()
            case "headers":
                return self._take_headers(events)
            case _:
                self._buffer.clear()
                return False

    def _skip_preamble(self) -> bool:
        found = self._buffer.find(self._delimiter)
        if found < 0:
            del self._buffer[: max(0, len(self._buffer) - len(self._delimiter))]
            return False
        del self._buffer[: found + len(self._delimiter)]
        self._state = "boundary"
        return True

    def _take_data(self, events: list[Event]) -> bool:
        found = self._buffer.find(self._delimiter)
        if found < 0:
            ready = len(self._buffer) - len(self._delimiter)
            if ready > 0:
                events.append(Data(bytes(self._buffer[:ready])))
                del self._buffer[:ready]
            return False
        if found:
            events.append(Data(bytes(self._buffer[:found])))
        del self._buffer[: found + len(self._delimiter)]
        events.append(PartEnd())
        self._state = "boundary"
        return True

    def _after_boundary(self) -> bool:
        if len(self._buffer) < 2:
            return False
        if self._buffer.startswith(b"--"):
            self._state = "end"
            return True
        end = self._buffer.find(b"\r\n")
        if end < 0 or self._buffer[:end].strip(b" \t"):
            if end >= 0 or len(self._buffer) > limits.MULTIPART_HEAD_BYTES:
                raise invalid_argument("malformed multipart body", "body")
            return False
        # Keep the line end: a part without headers starts with an empty line.
        self._state = "headers"
        return True

    def _take_headers(self, events: list[Event]) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > limits.MULTIPART_HEAD_BYTES:
                raise invalid_argument("malformed multipart body", "body")
            return False
        self._parts += 1
        if self._parts > limits.MULTIPART_PARTS:
            raise AgentError("resource_exhausted", "too many parts", "invalid_argument", status=413)
        events.append(_part_of(bytes(self._buffer[2:end])))
        del self._buffer[: end + 4]
        self._state = "data"
        return True


def _part_of(head: bytes) -> Part:
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            found = {key.lower(): quoted or plain for key, quoted, plain in _PARAMETER.findall(value)}
            return Part(found.get("name", ""), _filename(found))
    return Part("", None)


def _filename(parameters: dict[str, str]) -> str | None:
    extended = parameters.get("filename*")
    if extended is not None and extended.lower().startswith("utf-8'"):
        return unquote(extended.split("'", 2)[-1])
    name = parameters.get("filename")
    if name is None:
        return None
    # Browsers and httpx write quotes and line ends of a name in percent form, and nothing else.
    for escape, character in _FORM_ESCAPES.items():
        name = name.replace(escape, character)
    return _ESCAPE.sub(r"\1", name)
