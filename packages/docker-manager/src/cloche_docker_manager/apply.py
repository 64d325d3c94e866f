"""A checked export applied to a folder: by folder handles, no link followed, all of it or nothing. Blocks.

Source: checklist 279, 287, 289, 342, 343, 345, 349; faults F18, F25, P6, P14, W6.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from .export_stream import Change, changes_in
from .host_executed import wanted
from .places import Places, kind_of
from .staging import Staging, entry_name

_PIECE = 1 << 20
_COPY = 1 << 30
_DRAFT = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass
class Written:
    """What an export has done. `left_out` are paths that the host would execute."""

    files: int = 0
    symlinks: int = 0
    deletes: int = 0
    clears: int = 0
    whiteouts: int = 0
    bytes: int = 0
    left_out: list[str] = field(default_factory=list[str])


def apply_to_folder(spool: BinaryIO, root: int, written: Written, *, draft: bytes, host_executed: bool) -> None:
    """Apply every change below an open folder: clears, then deletions, then content.

    Files are written beside their places first, so a disk that is full is met before anything has changed.

    Args:
        draft: the name of the folder below `root` where that is done.
        host_executed: also files that the host would execute.

    Raises:
        OSError: the file system refuses something; the folder is as it was.
    """
    places = Places(root)
    staging = Staging(places, draft)
    try:
        work = _Work(spool, places, staging, written, host_executed)
        work.stage()
        work.put_in_place()
    except BaseException:
        staging.undo()
        raise
    staging.done()


class _Work:
    def __init__(
        self, spool: BinaryIO, places: Places, staging: Staging, written: Written, host_executed: bool
    ) -> None:
        self._spool = spool
        self._places = places
        self._staging = staging
        self._written = written
        self._host_executed = host_executed
        # The numbers of staged files, in the order of the stream; 0 for one that is the same already.
        self._numbers: list[int] = []

    def _changes(self, left_out: list[str]) -> Iterator[Change]:
        return wanted(self._spool, left_out, all_of_them=self._host_executed)

    def stage(self) -> None:
        """Write the files that differ."""
        for parts in _files(self._changes(self._written.left_out)):
            if _same(self._spool, self._places, parts):
                self._numbers.append(0)
                continue
            number = self._staging.number()
            _write(self._spool, self._staging.folder, entry_name(number), parts)
            self._numbers.append(number)
            self._written.files += 1
            self._written.bytes += parts[0].size

    def put_in_place(self) -> None:
        """Clear, delete, and give everything that was staged its place."""
        kept = _written_again(self._spool)
        folders: list[Change] = []
        files = iter(self._numbers)
        for change in self._changes([]):
            match change.kind:
                case "clear":
                    self._written.clears += self._clear(change.path, kept)
                case "delete":
                    self._written.deletes += self._delete(change.path, kept)
                case "folder":
                    self._folder(change.path)
                    folders.append(change)
                case "symlink":
                    self._link(change)
                case "file":
                    number = next(files)
                    if number:
                        self._staging.put(change.path, number)
                case _:
                    pass
        # Innermost first: a folder's time changes with what is put into it.
        for change in reversed(folders):
            self._staging.set_facts(change.path, change.mode, change.mtime_ns)

    def _clear(self, path: bytes, kept: dict[bytes, str]) -> int:
        """Take away what is in a folder, less what is written again: of that nothing is touched if it is the same."""
        if kind_of(self._places.status(path)) != "folder":
            return 0
        self._staging.open_up(path)
        for name in map(os.fsencode, os.listdir(self._places.folder(path))):
            here = path + b"/" + name
            again = kept.get(here)
            if again is None:
                self._staging.take_away(here)
            elif again == "folder":
                self._clear(here, kept)
        return 1

    def _delete(self, path: bytes, kept: dict[bytes, str]) -> int:
        there, again = kind_of(self._places.status(path)), kept.get(path)
        if not there or there == again != "folder":
            return 0
        if again is None:
            self._staging.take_away(path)
        elif there == again:
            self._clear(path, kept)
            return 0
        # What is written in its stead takes its place later.
        return 1

    def _folder(self, path: bytes) -> None:
        there = kind_of(self._places.status(path))
        if there == "folder":
            self._staging.open_up(path)
            return
        if there:
            self._staging.take_away(path)
        self._staging.make_folder(path)

    def _link(self, change: Change) -> None:
        found = self._places.status(change.path)
        fd, name = self._places.parent(change.path)
        if kind_of(found) == "symlink" and os.fsencode(os.readlink(name, dir_fd=fd)) == change.target:
            return
        number = self._staging.number()
        folder, draft = self._staging.folder, entry_name(number)
        os.symlink(change.target, draft, dir_fd=folder)
        os.utime(draft, ns=(change.mtime_ns, change.mtime_ns), dir_fd=folder, follow_symlinks=False)
        self._staging.put(change.path, number)
        self._written.symlinks += 1


def _files(changes: Iterator[Change]) -> Iterator[list[Change]]:
    """The records of each file: its own, and those with more of its content."""
    parts: list[Change] = []
    for change in changes:
        if change.kind == "data":
            parts.append(change)
            continue
        if parts:
            yield parts
        parts = [change] if change.kind == "file" else []
    if parts:
        yield parts


def _written_again(spool: BinaryIO) -> dict[bytes, str]:
    """Kind of what is written at, or below, a path that is cleared or deleted first."""
    hidden: set[bytes] = set()
    kept: dict[bytes, str] = {}
    for change in changes_in(spool):
        if change.kind in ("clear", "delete"):
            hidden.add(change.path)
        elif not hidden:
            break
        elif change.kind != "data" and not hidden.isdisjoint(_at_and_above(change.path)):
            kept[change.path] = change.kind
    return kept


def _at_and_above(path: bytes) -> Iterator[bytes]:
    while path:
        yield path
        path = path.rpartition(b"/")[0]


def _write(spool: BinaryIO, folder: int, name: bytes, parts: list[Change]) -> None:
    change = parts[0]
    out = os.open(name, _DRAFT, 0o600, dir_fd=folder)
    try:
        for part in parts:
            _copy(spool, out, part)
        if change.size != parts[-1].offset + parts[-1].payload:
            os.ftruncate(out, change.size)
        os.fchmod(out, change.mode)
        os.utime(out, ns=(change.mtime_ns, change.mtime_ns))
    finally:
        os.close(out)


def _copy(spool: BinaryIO, out: int, part: Change) -> None:
    """Write one piece of content to its place; large ones do not pass through this process."""
    if part.payload <= 1 << 16:
        if part.payload:
            spool.seek(part.start)
            _write_all(out, spool.read(part.payload), part.offset)
        return
    done = 0
    while done < part.payload:
        count = min(part.payload - done, _COPY)
        copied = _copy_in_kernel(spool.fileno(), out, count, part.start + done, part.offset + done)
        if not copied:
            spool.seek(part.start + done)
            copied = _write_all(out, spool.read(part.payload - done), part.offset + done)
        done += copied


def _copy_in_kernel(source: int, target: int, count: int, at: int, to: int) -> int:
    try:
        return os.copy_file_range(source, target, count, at, to)
    except OSError:
        # Not between these file systems. If the disk is full, writing says it.
        return 0


def _write_all(out: int, data: bytes, offset: int) -> int:
    view = memoryview(data)
    while view:
        count = os.pwrite(out, view, offset)
        offset += count
        view = view[count:]
    return len(data)


def _same(spool: BinaryIO, places: Places, parts: list[Change]) -> bool:
    """Whether the file has this size, mode, time to the second, and content already."""
    change = parts[0]
    try:
        fd, name = places.parent(change.path)
        facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
        same = stat.S_ISREG(facts.st_mode) and facts.st_size == change.size
        same = same and stat.S_IMODE(facts.st_mode) == change.mode
        if not same or facts.st_mtime_ns // 1_000_000_000 != change.mtime_ns // 1_000_000_000:
            return False
        found = os.open(name, _READ, dir_fd=fd)
    except OSError:
        return False
    try:
        return all(os.read(found, len(piece)) == piece for piece in content_of(spool, parts))
    finally:
        os.close(found)


def content_of(spool: BinaryIO, parts: list[Change]) -> Iterator[bytes]:
    """The content of a file in pieces, holes as zeros."""
    at = 0
    for part in parts:
        yield from _zeros(part.offset - at)
        spool.seek(part.start)
        if part.payload:
            yield spool.read(part.payload)
        at = part.offset + part.payload
    yield from _zeros(parts[0].size - at)


def _zeros(count: int) -> Iterator[bytes]:
    while count > 0:
        yield bytes(min(count, _PIECE))
        count -= _PIECE
