"""Export: every layer above the base folded into one list of changes, in a fixed order.

Folders that hide the base's come first, then deletions, then content, each in the order of the bytes of its names: the
same state gives the same bytes.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from .door import open_file
from .squash import extents
from .view import Folder, Found, gather
from .whiteout import is_whiteout

PIECE: Final = 1024 * 1024
_LENGTH: Final = struct.Struct(">I")

Head = dict[str, object]
Record = tuple[Head, bytes]


def fold(
    layers: Sequence[int], base: Folder, facts: tuple[int, Sequence[str], Sequence[str]], *, names_only: bool
) -> Iterator[Record]:
    """Yield the records of an export; never more than one payload is in memory.

    Args:
        layers: roots of the layers, newest first; they must not change meanwhile.
        base: what is below them.
        facts: version of the manifest, ids of the layers, ids of the live sessions.
        names_only: without the content of files.
    """
    version, layer_ids, session_ids = facts
    yield {"kind": "begin", "manifest_version": version, "layer_ids": [*layer_ids], "session_ids": [*session_ids]}, b""
    count = 1
    marks = _Marks()
    if layers:
        marks.folder(layers, base, "")
    for kind, paths in (("clear", marks.clears), ("delete", marks.deletes)):
        for path in paths:
            yield {"kind": kind, "path": _encoded(path)}, b""
            count += 1
    for record in _content(layers, "", names_only=names_only):
        yield record
        count += 1
    yield {"kind": "end", "records": count}, b""


def frame(record: Record) -> bytes:
    """Return the bytes of one record: the length of its head, the head, its payload."""
    head, payload = record
    data = json.dumps({**head, "payload": len(payload)}, separators=(",", ":")).encode()
    return b"".join((_LENGTH.pack(len(data)), data, payload))


def _encoded(path: str) -> str:
    return base64.b64encode(os.fsencode(path)).decode()


class _Marks:
    """What of the base is hidden."""

    def __init__(self) -> None:
        self.clears: list[str] = []
        self.deletes: list[str] = []

    def folder(self, layers: Sequence[int], base: Folder, path: str) -> None:
        for top in _tops(layers):
            below = base.find(top.name)
            if below is None:
                continue
            here = _joined(path, top.name)
            if not top.is_folder:
                if below.is_folder or is_whiteout(top.status):
                    self.deletes.append(here)
            elif not below.is_folder:
                self.deletes.append(here)
            else:
                self._both(layers, base, top.name, here)

    def _both(self, layers: Sequence[int], base: Folder, name: str, here: str) -> None:
        merged, hides = gather(layers, name)
        try:
            if hides:
                self.clears.append(here)
                return
            inner = base.enter(name)
            if inner is not None:
                with inner:
                    self.folder(merged, inner, here)
        finally:
            for fd in merged:
                os.close(fd)


def _tops(layers: Sequence[int]) -> Iterator[Found]:
    """Yield the newest entry of each name, marks included, in the order of their bytes."""
    owners: dict[str, int] = {}
    for fd in reversed(layers):
        owners.update(dict.fromkeys(os.listdir(fd), fd))
    for name in sorted(owners, key=os.fsencode):
        fd = owners[name]
        yield Found(fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False))


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _content(layers: Sequence[int], path: str, *, names_only: bool) -> Iterator[Record]:
    for top in _tops(layers):
        mode = top.status.st_mode
        here = _joined(path, top.name)
        if stat.S_ISDIR(mode):
            yield {"kind": "folder", "path": _encoded(here), **_facts(top)}, b""
            merged, _ = gather(layers, top.name)
            try:
                yield from _content(merged, here, names_only=names_only)
            finally:
                for fd in merged:
                    os.close(fd)
        elif stat.S_ISLNK(mode):
            target = base64.b64encode(os.fsencode(os.readlink(top.name, dir_fd=top.folder))).decode()
            yield {"kind": "symlink", "path": _encoded(here), **_facts(top), "target": target}, b""
        elif stat.S_ISREG(mode):
            yield from _file(top, here, names_only=names_only)


def _facts(found: Found) -> Head:
    seconds, nanoseconds = divmod(found.status.st_mtime_ns, 1_000_000_000)
    return {"mode": stat.S_IMODE(found.status.st_mode), "mtime_s": seconds, "mtime_ns": nanoseconds}


def _file(found: Found, path: str, *, names_only: bool) -> Iterator[Record]:
    size = found.status.st_size
    head: Head = {"kind": "file", "path": _encoded(path), **_facts(found), "size": size}
    if names_only or not size:
        yield head, b""
        return
    file = open_file(found.folder, found.name)
    try:
        sparse = found.status.st_blocks * 512 < size
        if size <= PIECE and not sparse:
            yield head, _read(file, 0, size)
            return
        yield head, b""
        for start, end in extents(file, size) if sparse else [(0, size)]:
            for offset in range(start, end, PIECE):
                yield {"kind": "data", "offset": offset}, _read(file, offset, min(PIECE, end - offset))
    finally:
        os.close(file)


def _read(file: int, offset: int, count: int) -> bytes:
    data = os.pread(file, count, offset)
    while len(data) < count:
        more = os.pread(file, count - len(data), offset + len(data))
        if not more:
            raise OSError("a layer changed while it was read")
        data += more
    return data
