"""What changes below one folder, from inotify(7): new sub-folders are watched too, and what was missed is told."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple

from . import guest_calls, limits
from .transfers import REPLACING_PREFIX, TEMPORARY_PREFIX

_MODIFY: Final = 0x2
_ATTRIB: Final = 0x4
_MOVED_FROM: Final = 0x40
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_DELETE_SELF: Final = 0x400
_MOVE_SELF: Final = 0x800
_Q_OVERFLOW: Final = 0x4000
_IGNORED: Final = 0x8000
_ONLYDIR: Final = 0x0100_0000
_DONT_FOLLOW: Final = 0x0200_0000
_ISDIR: Final = 0x4000_0000
_WATCHED: Final = _MODIFY | _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
_HEADER: Final = struct.Struct("iIII")
_READ_BYTES: Final = 64 * 1024
_FULL: Final = frozenset({errno.ENOSPC, errno.ENOMEM})

CREATE: Final = "EVENT_TYPE_CREATE"
WRITE: Final = "EVENT_TYPE_WRITE"
REMOVE: Final = "EVENT_TYPE_REMOVE"
RENAME: Final = "EVENT_TYPE_RENAME"
CHMOD: Final = "EVENT_TYPE_CHMOD"
# What a write in place would give; ours is a rename over the target.
_UPLOAD_NEW: Final = (CREATE, CHMOD, WRITE)
_UPLOAD_OVER: Final = (CHMOD, WRITE, WRITE)


@dataclass(frozen=True, slots=True)
class Change:
    """One change; `name` is relative to the watched folder, which is "." itself."""

    type: str
    name: str


OVERFLOW: Final = Change("", "")
"""Changes were missed here: whoever needs all of them must look at the folder."""


class _Raw(NamedTuple):
    wd: int
    mask: int
    cookie: int
    name: str


class FolderWatch:
    """One watched folder. Everything is asked of the kernel with the rights that `become` gives."""

    def __init__(self, folder: str, *, recursive: bool, become: Callable[[], AbstractContextManager[None]]) -> None:
        """Start watching.

        Raises:
            OSError: no watch is left (EMFILE, ENOSPC), or the folder cannot be read.
        """
        self.folder = folder
        self._recursive = recursive
        self._become = become
        self._paths: dict[int, str] = {}
        self._wds: dict[str, int] = {}
        self._told: set[str] = set()
        self._uploads: dict[int, bool] = {}
        self._missed = False
        self.fd = guest_calls.inotify_open()
        try:
            with become():
                self._scan("", None, fresh=False)
            if self._missed:
                raise OSError(errno.ENOSPC, "too many folders")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop watching."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def collect(self, reads: int = limits.WATCH_READS) -> list[Change]:
        """Return what has changed since the last time, as far as it fits into so many reads. Never waits."""
        changes: list[Change] = []
        with self._become():
            for _ in range(reads):
                try:
                    data = os.read(self.fd, _READ_BYTES)
                except BlockingIOError:
                    # Everything that happened while a new folder was scanned has been read: no doubles from here on.
                    self._told.clear()
                    break
                for raw in _events_in(data):
                    self._translate(raw, changes)
        if self._missed:
            self._missed = False
            changes.append(OVERFLOW)
        return changes

    # -- events -------------------------------------------------------------------------------------------------

    def _translate(self, raw: _Raw, changes: list[Change]) -> None:
        if raw.mask & _Q_OVERFLOW:
            self._missed = True
            self._watch_again()
            return
        folder = self._paths.get(raw.wd)
        if folder is None:
            return
        if raw.mask & _IGNORED:
            del self._paths[raw.wd]
            if self._wds.get(folder) == raw.wd:
                del self._wds[folder]
        elif raw.name:
            self._translate_entry(raw, _join(folder, raw.name), changes)
        elif not folder:
            kind = _first(raw.mask, ((_DELETE_SELF, REMOVE), (_MOVE_SELF, RENAME), (_ATTRIB, CHMOD)))
            if kind is not None:
                changes.append(Change(kind, "."))

    def _translate_entry(self, raw: _Raw, name: str, changes: list[Change]) -> None:
        if raw.name.startswith(TEMPORARY_PREFIX):
            if raw.mask & _MOVED_FROM:
                self._uploads[raw.cookie] = raw.name.startswith(REPLACING_PREFIX)
            return
        if raw.mask & _MOVED_TO and raw.cookie in self._uploads:
            kinds = _UPLOAD_OVER if self._uploads.pop(raw.cookie) else _UPLOAD_NEW
            changes.extend(Change(kind, name) for kind in kinds)
            return
        if raw.mask & (_CREATE | _MOVED_TO):
            if name in self._told:
                self._told.discard(name)
                return
            changes.append(Change(CREATE, name))
            if raw.mask & _ISDIR and self._recursive:
                self._scan(name, changes, fresh=bool(raw.mask & _CREATE))
            return
        kind = _first(raw.mask, ((_MODIFY, WRITE), (_ATTRIB, CHMOD), (_DELETE, REMOVE), (_MOVED_FROM, RENAME)))
        if kind is not None:
            changes.append(Change(kind, name))
        if raw.mask & (_MOVED_FROM | _DELETE):
            self._told.discard(name)
        if raw.mask & _MOVED_FROM and raw.mask & _ISDIR:
            self._forget_below(name)

    # -- folders ------------------------------------------------------------------------------------------------

    def _scan(self, name: str, changes: list[Change] | None, *, fresh: bool) -> None:
        """Watch a folder and those below it, and tell what is in them already."""
        pending = [name]
        while pending:
            folder = pending.pop()
            if not self._add(folder) or not self._recursive:
                continue
            for entry, is_folder, has_content in self._entries(folder):
                inside = _join(folder, entry)
                if is_folder:
                    pending.append(inside)
                if changes is not None and not entry.startswith(TEMPORARY_PREFIX):
                    if len(changes) >= limits.WATCH_EVENTS:
                        self._missed = True
                        continue
                    self._told.add(inside)
                    changes.append(Change(CREATE, inside))
                    if fresh and has_content:
                        changes.append(Change(WRITE, inside))

    def _entries(self, folder: str) -> Iterator[tuple[str, bool, bool]]:
        """Yield name, whether it is a folder, and whether it is a file with content."""
        try:
            with os.scandir(os.path.join(self.folder, folder)) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        is_folder = entry.is_dir(follow_symlinks=False)
                        is_file = entry.is_file(follow_symlinks=False)
                        yield entry.name, is_folder, is_file and entry.stat(follow_symlinks=False).st_size > 0
        except OSError:
            return

    def _add(self, name: str) -> bool:
        if len(self._wds) >= limits.WATCHED_FOLDERS:
            self._missed = True
            return False
        flags = _WATCHED | (_DONT_FOLLOW if name else 0)
        try:
            wd = guest_calls.inotify_add(self.fd, os.path.join(self.folder, name), flags)
        except OSError as error:
            if not name:
                raise
            # Gone again, or not ours to read: then it is not watched. Out of watches is something that was missed.
            self._missed = self._missed or error.errno in _FULL
            return False
        self._paths[wd] = name
        self._wds[name] = wd
        return True

    def _forget_below(self, name: str) -> None:
        for path in [path for path in self._wds if path == name or path.startswith(name + "/")]:
            wd = self._wds.pop(path)
            self._paths.pop(wd, None)
            self._remove(wd)

    def _watch_again(self) -> None:
        """Look for folders that came or moved while events were lost."""
        before = set(self._paths)
        self._paths.clear()
        self._wds.clear()
        with contextlib.suppress(OSError):
            self._scan("", None, fresh=False)
        for wd in before - set(self._paths):
            self._remove(wd)

    def _remove(self, wd: int) -> None:
        with contextlib.suppress(OSError):
            guest_calls.inotify_remove(self.fd, wd)


def _events_in(data: bytes) -> Iterator[_Raw]:
    position = 0
    while position + _HEADER.size <= len(data):
        wd, mask, cookie, size = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        name = data[position : position + size].rstrip(b"\0")
        position += size
        yield _Raw(wd, mask, cookie, os.fsdecode(name))


def _first(mask: int, kinds: tuple[tuple[int, str], ...]) -> str | None:
    return next((kind for bit, kind in kinds if mask & bit), None)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
