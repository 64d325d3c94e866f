"""The changes of a sandbox as its agent tells them, believed in nothing.

The whole stream is checked while it is put into a private file; only a stream that is right to its end is read again
and applied. Names go down one folder at a time and rise in order, so nothing comes twice and nothing is below a link.

Source: checklist 278, 287, 344; fault P14.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, cast

from cloche_contract.errors import ExportRejected

MAX_BYTES: Final = 8 << 30
MAX_RECORDS: Final = 1_000_000
_MAX_HEAD: Final = 64 * 1024
_MAX_PAYLOAD: Final = 1 << 20
_MAX_DEPTH: Final = 200
_PHASES: Final = {"begin": 0, "clear": 1, "delete": 2, "folder": 3, "file": 3, "symlink": 3, "data": 3, "end": 4}


@dataclass(frozen=True, slots=True)
class Change:
    """One record that was checked. `start` is where its payload lies in the spool."""

    kind: str
    path: bytes = b""
    mode: int = 0
    mtime_ns: int = 0
    size: int = 0
    offset: int = 0
    payload: int = 0
    start: int = 0
    target: bytes = b""


@dataclass
class Spool:
    """A stream that is being taken in: fed in pieces, checked record by record, kept in a private file."""

    file: BinaryIO
    version: int = 0
    layers: list[str] = field(default_factory=list[str])
    sessions: list[str] = field(default_factory=list[str])
    finished: bool = False
    _buffer: bytearray = field(default_factory=bytearray)
    _count: int = 0
    _bytes: int = 0
    _phase: int = -1
    _folders: list[tuple[bytes, bytes]] = field(default_factory=lambda: [(b"", b"")])
    _open_file: tuple[int, int] | None = None

    def feed(self, chunk: bytes | bytearray) -> None:
        """Take the next bytes.

        Raises:
            ExportRejected: they are not what an honest agent sends.
        """
        self._bytes += len(chunk)
        if self._bytes > MAX_BYTES:
            raise ExportRejected(reason="too_large")
        self._buffer += chunk
        done = 0
        while (found := self._whole_record(done)) is not None:
            length, head = found
            self._check(head)
            done += length
        with memoryview(self._buffer) as whole:
            self.file.write(whole[:done])
        del self._buffer[:done]

    def end(self) -> None:
        """Say that nothing follows.

        Raises:
            ExportRejected: the stream was cut.
        """
        if self._buffer or not self.finished:
            raise ExportRejected(reason="torn")
        self.file.flush()

    def _whole_record(self, at: int) -> tuple[int, dict[str, Any]] | None:
        """Size and head of the record that begins there, once all of it is there."""
        there = len(self._buffer) - at
        if there < 4:
            return None
        head_size = int.from_bytes(self._buffer[at : at + 4], "big")
        if not 2 <= head_size <= _MAX_HEAD:
            raise ExportRejected(reason="malformed")
        if there < 4 + head_size:
            return None
        head = _head(bytes(self._buffer[at + 4 : at + 4 + head_size]))
        length = 4 + head_size + _number(head, "payload", 0, _MAX_PAYLOAD)
        return (length, head) if there >= length else None

    def _check(self, head: dict[str, Any]) -> None:
        kind = head.get("kind")
        phase = _PHASES.get(kind, -1) if isinstance(kind, str) else -1
        if self.finished or phase < self._phase or phase < 0 or (phase == 0) != (self._phase == -1):
            raise ExportRejected(reason="malformed")
        self._phase = phase
        if kind == "end":
            if head.get("records") != self._count:
                raise ExportRejected(reason="torn")
            self.finished = True
            return
        self._count += 1
        if self._count > MAX_RECORDS:
            raise ExportRejected(reason="too_large")
        if kind == "begin":
            self.version = _number(head, "manifest_version", 1, 2**53 - 1)
            self.layers, self.sessions = _texts(head, "layer_ids"), _texts(head, "session_ids")
            return
        self._check_change(change_of(head, 0))

    def _check_change(self, change: Change) -> None:
        if change.kind == "data":
            if self._open_file is None:
                raise ExportRejected(reason="malformed")
            end, size = self._open_file
            if change.offset < end or change.offset + change.payload > size or not change.payload:
                raise ExportRejected(reason="malformed")
            self._open_file = (change.offset + change.payload, size)
            return
        self._open_file = None
        if change.kind in ("clear", "delete"):
            if change.payload:
                raise ExportRejected(reason="malformed")
            return
        self._place(change)
        if change.kind == "file":
            if change.payload > change.size:
                raise ExportRejected(reason="malformed")
            self._open_file = (change.payload, change.size)
        elif change.payload:
            raise ExportRejected(reason="malformed")

    def _place(self, change: Change) -> None:
        """Hold that its folder was told before, and that its name follows what came last in there."""
        parent, _, name = change.path.rpartition(b"/")
        while self._folders and self._folders[-1][0] != parent:
            self._folders.pop()
        if not self._folders or name <= self._folders[-1][1]:
            raise ExportRejected(reason="unsafe_name")
        self._folders[-1] = (parent, name)
        if change.kind == "folder":
            if len(self._folders) > _MAX_DEPTH:
                raise ExportRejected(reason="unsafe_name")
            self._folders.append((change.path, b""))


def changes_in(file: BinaryIO) -> Iterator[Change]:
    """The records of a spool that was checked, without begin and end."""
    file.seek(0)
    while size := file.read(4):
        head = _head(file.read(int.from_bytes(size, "big")))
        start = file.tell()
        if head["kind"] not in ("begin", "end"):
            yield change_of(head, start)
        file.seek(start + int(head["payload"]))


def change_of(head: dict[str, Any], start: int) -> Change:
    """A record with its values checked, each by itself."""
    kind = str(head["kind"])
    content = kind in ("folder", "file", "symlink")
    seconds = _number(head, "mtime_s", -(2**53), 2**53 - 1) if content else 0
    return Change(
        kind=kind,
        path=_path(head) if kind != "data" else b"",
        # Set-id and sticky bits stay in the sandbox.
        mode=_number(head, "mode", 0, 0o7777) & 0o777 if content else 0,
        mtime_ns=seconds * 1_000_000_000 + (_number(head, "mtime_ns", 0, 999_999_999) if content else 0),
        size=_number(head, "size", 0, MAX_BYTES) if kind == "file" else 0,
        offset=_number(head, "offset", 0, MAX_BYTES) if kind == "data" else 0,
        payload=_number(head, "payload", 0, _MAX_PAYLOAD),
        start=start,
        target=_target(head) if kind == "symlink" else b"",
    )


def _head(data: bytes) -> dict[str, Any]:
    try:
        head: object = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise ExportRejected(reason="malformed") from exc
    if not isinstance(head, dict):
        raise ExportRejected(reason="malformed")
    return cast("dict[str, Any]", head)


def _number(head: dict[str, Any], key: str, least: int, most: int) -> int:
    value = head.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ExportRejected(reason="malformed")
    return value


def _texts(head: dict[str, Any], key: str) -> list[str]:
    value: object = head.get(key)
    if not isinstance(value, list) or len(cast("list[Any]", value)) > 1000:
        raise ExportRejected(reason="malformed")
    texts = [one for one in cast("list[Any]", value) if isinstance(one, str) and len(one) <= 64 and one.isascii()]
    if len(texts) != len(cast("list[Any]", value)):
        raise ExportRejected(reason="malformed")
    return texts


def _bytes(head: dict[str, Any], key: str) -> bytes:
    value = head.get(key)
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (ValueError, binascii.Error) as exc:
        raise ExportRejected(reason="malformed") from exc


def _path(head: dict[str, Any]) -> bytes:
    path = _bytes(head, "path")
    parts = path.split(b"/")
    if not 0 < len(path) <= 4096 or len(parts) > _MAX_DEPTH or b"\0" in path:
        raise ExportRejected(reason="unsafe_name")
    # `.wh.` names are how archives say "deleted": a file of that name would be taken for one.
    if any(part in (b"", b".", b"..") or len(part) > 255 or part.startswith(b".wh.") for part in parts):
        raise ExportRejected(reason="unsafe_name")
    return path


def _target(head: dict[str, Any]) -> bytes:
    target = _bytes(head, "target")
    if not 0 < len(target) < 4096 or b"\0" in target:
        raise ExportRejected(reason="unsafe_name")
    return target
