"""What a stack of layers shows, read by handles as the kernel's overlay would."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Self

from .door import lstat, open_folder
from .whiteout import is_opaque, is_whiteout


class Found:
    """A name that a folder shows, and the layer's folder that has it."""

    __slots__ = ("folder", "name", "status")

    def __init__(self, folder: int, name: str, status: os.stat_result) -> None:
        self.folder = folder
        self.name = name
        self.status = status

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)


class Folder:
    """One folder of the merged view: the folders of that path that show something of it, newest first.

    It owns the handles; close it, or use it as a context.
    """

    __slots__ = ("fds",)

    def __init__(self, fds: Sequence[int]) -> None:
        self.fds = list(fds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handles."""
        while self.fds:
            os.close(self.fds.pop())

    def find(self, name: str) -> Found | None:
        """Return what this name is, or None where nothing has it."""
        for fd in self.fds:
            status = lstat(fd, name)
            if status is not None:
                return None if is_whiteout(status) else Found(fd, name, status)
        return None

    def enter(self, name: str) -> Folder | None:
        """Open the folder of this name; None where there is none."""
        merged, _ = gather(self.fds, name)
        return Folder(merged) if merged else None

    def names(self) -> list[str]:
        """Return the names that it shows, in the order of their bytes."""
        return sorted((name for name, gone in self._marks() if not gone), key=os.fsencode)

    def _marks(self) -> Iterator[tuple[str, bool]]:
        seen: set[str] = set()
        for fd in self.fds:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if entry.name not in seen:
                        seen.add(entry.name)
                        yield entry.name, _is_mark(entry)


def _is_mark(entry: os.DirEntry[str]) -> bool:
    plain = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False) or entry.is_symlink()
    return not plain and is_whiteout(entry.stat(follow_symlinks=False))


def gather(fds: Sequence[int], name: str) -> tuple[list[int], bool]:
    """Open the folders of this name that merge, newest first.

    Returns:
        Them, and whether the last one hides everything below: it is opaque, or something that is no folder, or a
        mark, is below it.
    """
    merged: list[int] = []
    try:
        for fd in fds:
            try:
                inner = open_folder(fd, name)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    return merged, True
                raise
            merged.append(inner)
            if is_opaque(inner):
                return merged, True
    except BaseException:
        for each in merged:
            os.close(each)
        raise
    return merged, False
