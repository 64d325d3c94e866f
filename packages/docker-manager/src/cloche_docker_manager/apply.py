"""A checked export written into a folder: by folder handles, no link followed, each file whole or not at all. Blocks.

Source: checklist 279, 287, 289, 342, 343, 349; faults F18, F25, P6, P14, W6.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from .export_stream import Change, changes_in
from .workspace_tree import OPEN_FOLDER

_PIECE = 1 << 20
# What a tool of the host runs or obeys when it next looks at the folder.
_EXECUTED = (b".git/hooks/", b".git/config", b".claude/", b".cursor/", b".vscode/", b".idea/", b".envrc", b".mcp.json")


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


def executed_by_the_host(path: bytes) -> bool:
    """Whether a tool of the host would run or obey this file later, wherever in the tree it lies."""
    whole = b"/" + path
    return any(f"/{mark.decode()}".encode() in whole + (b"/" if not mark.endswith(b"/") else b"") for mark in _EXECUTED)


def wanted(spool: BinaryIO, written: Written) -> Iterator[Change]:
    """The changes of a spool less those that the host would execute, which are told instead."""
    skipping = False
    for change in changes_in(spool):
        if change.kind != "data":
            skipping = change.kind in ("file", "symlink") and executed_by_the_host(change.path)
            if skipping:
                written.left_out.append(change.path.decode(errors="replace"))
        if not skipping:
            yield change


def apply_to_folder(spool: BinaryIO, root: int, written: Written) -> None:
    """Apply every change below an open folder: clears, then deletions, then content.

    Raises:
        OSError: the file system refuses something; what was written until then stays.
    """
    kept = _below_cleared(spool)
    folders: list[Change] = []
    pending: list[Change] = []
    for change in wanted(spool, written):
        if change.kind == "data":
            pending.append(change)
            continue
        _write_file(spool, root, pending, written)
        pending = [change] if change.kind == "file" else []
        match change.kind:
            case "clear":
                written.clears += _clear(root, change.path, kept)
            case "delete":
                written.deletes += _delete(root, change.path)
            case "folder":
                _make_folder(root, change.path)
                folders.append(change)
            case "symlink":
                written.symlinks += _write_link(root, change)
            case _:
                pass
    _write_file(spool, root, pending, written)
    # Innermost first: a folder's time changes with what is put into it.
    for change in reversed(folders):
        with _parent(root, change.path + b"/.") as (fd, _name):
            os.fchmod(fd, change.mode)
            os.utime(fd, ns=(change.mtime_ns, change.mtime_ns))


@contextmanager
def _parent(root: int, path: bytes) -> Generator[tuple[int, bytes]]:
    """The open folder of a path and its last name. A link on the way is an error."""
    head, _, name = path.rpartition(b"/")
    fd = os.dup(root)
    try:
        for part in head.split(b"/") if head else ():
            below = os.open(part, OPEN_FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd, name
    finally:
        os.close(fd)


def _below_cleared(spool: BinaryIO) -> set[bytes]:
    """What is written again below folders that are emptied first: it stays, so that what is the same is not touched."""
    cleared: set[bytes] = set()
    kept: set[bytes] = set()
    for change in changes_in(spool):
        if change.kind == "clear":
            cleared.add(change.path)
        elif not cleared:
            break
        elif change.kind in ("folder", "file", "symlink") and not cleared.isdisjoint(_above(change.path)):
            kept.add(change.path)
    return kept


def _above(path: bytes) -> Iterator[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def _clear(root: int, path: bytes, kept: set[bytes]) -> int:
    with suppress(FileNotFoundError, NotADirectoryError), _parent(root, path + b"/.") as (fd, _name):
        for name in map(os.fsencode, os.listdir(fd)):
            if path + b"/" + name not in kept:
                _remove(fd, name)
            elif stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                _clear(root, path + b"/" + name, kept)
        return 1
    return 0


def _delete(root: int, path: bytes) -> int:
    with suppress(FileNotFoundError, NotADirectoryError), _parent(root, path) as (fd, name):
        return int(_remove(fd, name))
    return 0


def _remove(fd: int, name: bytes) -> bool:
    """Remove what is there, links as links."""
    try:
        facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(facts.st_mode):
        shutil.rmtree(os.fsdecode(name), dir_fd=fd)
    else:
        os.unlink(name, dir_fd=fd)
    return True


def _make_folder(root: int, path: bytes) -> None:
    with _parent(root, path) as (fd, name):
        try:
            os.mkdir(name, 0o700, dir_fd=fd)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=fd)
                os.mkdir(name, 0o700, dir_fd=fd)


def _write_link(root: int, change: Change) -> int:
    with _parent(root, change.path) as (fd, name):
        with suppress(OSError):
            if os.readlink(name, dir_fd=fd) == change.target:
                return 0
        _remove(fd, name)
        os.symlink(change.target, name, dir_fd=fd)
        os.utime(name, ns=(change.mtime_ns, change.mtime_ns), dir_fd=fd, follow_symlinks=False)
    return 1


def _write_file(spool: BinaryIO, root: int, parts: list[Change], written: Written) -> None:
    """Write a file beside its place and rename it there; one that is the same already is left alone."""
    if not parts:
        return
    change, draft = parts[0], f".cloche-{secrets.token_hex(8)}".encode()
    with _parent(root, change.path) as (fd, name):
        if _same(spool, fd, name, parts):
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        out = os.open(draft, flags, 0o600, dir_fd=fd)
        try:
            for part in parts:
                spool.seek(part.start)
                os.pwrite(out, spool.read(part.payload), part.offset)
            os.ftruncate(out, change.size)
            os.fchmod(out, change.mode)
            os.utime(out, ns=(change.mtime_ns, change.mtime_ns))
            with suppress(FileNotFoundError):
                if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    _remove(fd, name)
            os.rename(draft, name, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=fd)
            raise
        finally:
            os.close(out)
    written.files += 1
    written.bytes += change.size


def _same(spool: BinaryIO, fd: int, name: bytes, parts: list[Change]) -> bool:
    """Whether the file has this size, mode, time to the second, and content already."""
    change = parts[0]
    try:
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except OSError:
        return False
    try:
        facts = os.fstat(found)
        same = stat.S_ISREG(facts.st_mode) and facts.st_size == change.size
        same = same and stat.S_IMODE(facts.st_mode) == change.mode
        if not same or facts.st_mtime_ns // 1_000_000_000 != change.mtime_ns // 1_000_000_000:
            return False
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
