"""A look at a workspace: every entry by descriptor, no link followed, nothing read but names and facts.

Source: checklist 241, 252; systems 5.5 ("any special, unreadable or changing file aborts the build").
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cloche_contract.errors import BaseUnusable, WorkspaceNotFound

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    """One folder, file or link, by its path below the root."""

    path: bytes
    facts: os.stat_result

    @property
    def kind(self) -> int:
        return stat.S_IFMT(self.facts.st_mode)


def open_workspace(path: str) -> int:
    """Open the root of a workspace.

    Raises:
        WorkspaceNotFound: it is not there, no directory, or not readable.
    """
    try:
        return os.open(path, OPEN_FOLDER & ~os.O_NOFOLLOW)
    except OSError as exc:
        raise WorkspaceNotFound from exc


def entries_of(root: int) -> Iterator[Entry]:
    """Every entry below an open folder, a folder before what is in it, names sorted.

    Raises:
        BaseUnusable: something is no file, folder or link, may not be read, or vanished meanwhile.
    """
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        found = list(_inside(root, folder))
        yield from found
        waiting += [entry.path for entry in reversed(found) if entry.kind == stat.S_IFDIR]


def _inside(root: int, folder: bytes) -> Iterator[Entry]:
    with told(), open_below(root, folder) as fd:
        for name in sorted(os.fsencode(name) for name in os.listdir(fd)):
            facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_IFMT(facts.st_mode) not in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
                raise BaseUnusable(reason="special_file")
            yield Entry(os.path.join(folder, name), facts)


@contextmanager
def open_below(root: int, folder: bytes) -> Generator[int]:
    """Open a folder below an open one, part by part: a link in the way is an error, whoever put it there when."""
    fd = os.dup(root)
    try:
        for part in folder.split(b"/") if folder else ():
            below = os.open(part, OPEN_FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


@contextmanager
def told() -> Generator[None]:
    """Turn what the file system refuses into the reason that a model may read."""
    try:
        yield
    except PermissionError as exc:
        raise BaseUnusable(reason="unreadable") from exc
    except OSError as exc:
        full = exc.errno in (errno.ENOSPC, errno.EDQUOT)
        raise BaseUnusable(reason="disk_full" if full else "changing") from exc


def signature(entries: list[Entry]) -> str:
    """What changes whenever somebody changes an entry: size, times, inode and mode of each."""
    digest = hashlib.sha256()
    for entry in sorted(entries, key=lambda one: one.path):
        facts = entry.facts
        numbers = (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev)
        digest.update(entry.path + b"\0" + ",".join(map(str, numbers)).encode() + b"\n")
    return digest.hexdigest()
