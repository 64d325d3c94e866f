"""New entries beside their places, and the old ones that they replaced, until all is done or all is undone. Blocks.

What takes space on the disk happens in here first. Putting it in place is renames alone, each of them is written down,
and where one fails, those before it are taken back.

Source: checklist 279, 345; issue 7, part 5.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Literal

from .exchange import exchange
from .places import Places
from .prune import remove_folder
from .workspace_tree import OPEN_FOLDER

# What was done at a path, and the number of the staged entry that has to do with it.
_Step = tuple[Literal["away", "put", "swapped", "made"], bytes, int]


class Staging:
    """A folder inside of the destination, on its file system. It is made when it is first needed."""

    def __init__(self, places: Places, name: bytes) -> None:
        self._places = places
        self._name = name
        self._fd = -1
        self._next = 0
        self._steps: list[_Step] = []
        self._facts: dict[bytes, tuple[int, int, int]] = {}

    @property
    def folder(self) -> int:
        """The open staging folder."""
        if self._fd < 0:
            self._remember(b"")
            os.mkdir(self._name, 0o700, dir_fd=self._places.root)
            self._fd = os.open(self._name, OPEN_FOLDER, dir_fd=self._places.root)
        return self._fd

    def number(self) -> int:
        """A number that no staged entry has."""
        self._next += 1
        return self._next

    # -- changing the destination -------------------------------------------------------------------------------------

    def put(self, path: bytes, number: int) -> None:
        """Give a staged entry its place. What is there, a folder with all in it as well, is kept in its stead."""
        fd, name = self._parent(path)
        try:
            exchange(fd, name, self.folder, entry_name(number))
        except FileNotFoundError:
            os.rename(entry_name(number), name, src_dir_fd=self.folder, dst_dir_fd=fd)
            self._steps.append(("put", path, number))
        else:
            self._steps.append(("swapped", path, number))
            self._places.forget()

    def take_away(self, path: bytes) -> None:
        """Take an entry out of the destination, a folder with all in it."""
        number = self.number()
        fd, name = self._parent(path)
        os.rename(name, entry_name(number), src_dir_fd=fd, dst_dir_fd=self.folder)
        self._steps.append(("away", path, number))
        self._places.forget()

    def make_folder(self, path: bytes) -> None:
        """Make a folder that is not there."""
        fd, name = self._parent(path)
        os.mkdir(name, 0o700, dir_fd=fd)
        self._steps.append(("made", path, 0))

    def set_facts(self, path: bytes, mode: int, mtime_ns: int) -> None:
        """Set mode and time of a folder, unless it has them."""
        fd = self._places.folder(path)
        found = os.fstat(fd)
        if found.st_mode & 0o7777 != mode or found.st_mtime_ns != mtime_ns:
            self._remember(path)
            os.fchmod(fd, mode)
            os.utime(fd, ns=(mtime_ns, mtime_ns))

    def open_up(self, path: bytes) -> None:
        """Let us work in a folder of ours whose mode forbids it; its mode is set at the end."""
        fd, name = self._places.parent(path)
        mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode & 0o7777
        if mode & 0o700 != 0o700:
            os.chmod(name, mode | 0o700, dir_fd=fd)
            self._remember(path, mode)

    def _parent(self, path: bytes) -> tuple[int, bytes]:
        self._remember(path.rpartition(b"/")[0])
        return self._places.parent(path)

    def _remember(self, path: bytes, mode: int = -1) -> None:
        """Keep what a folder was like before the first step in it."""
        if path not in self._facts:
            found = os.fstat(self._places.folder(path))
            self._facts[path] = (found.st_mode & 0o7777 if mode < 0 else mode, found.st_atime_ns, found.st_mtime_ns)

    # -- the end ------------------------------------------------------------------------------------------------------

    def done(self) -> None:
        """Forget what was replaced. The folder around it has changed if something was put into it, else it has not."""
        self._remove()
        if not self._steps and b"" in self._facts:
            self._set_back(b"")

    def undo(self) -> None:
        """Take every step back, the last one first, and remove what was staged."""
        for step in reversed(self._steps):
            self._places.forget()
            with suppress(OSError):
                self._take_back(*step)
        self._remove()
        for path in sorted(self._facts, reverse=True):
            with suppress(OSError):
                self._set_back(path)

    def _take_back(self, what: str, path: bytes, number: int) -> None:
        fd, name = self._places.parent(path)
        match what:
            case "away":
                os.rename(entry_name(number), name, src_dir_fd=self._fd, dst_dir_fd=fd)
            case "put":
                os.rename(name, entry_name(number), src_dir_fd=fd, dst_dir_fd=self._fd)
            case "swapped":
                exchange(fd, name, self._fd, entry_name(number))
            case _:
                os.rmdir(name, dir_fd=fd)

    def _set_back(self, path: bytes) -> None:
        fd, (mode, accessed_ns, changed_ns) = self._places.folder(path), self._facts[path]
        os.fchmod(fd, mode)
        os.utime(fd, ns=(accessed_ns, changed_ns))

    def _remove(self) -> None:
        self._places.forget()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            _remove_folder(self._places.root, self._name)


def _remove_folder(root: int, name: bytes) -> None:
    if os.geteuid() == 0:
        with suppress(OSError):
            shutil.rmtree(os.fsdecode(name), dir_fd=root)
    else:
        # What was replaced may have folders that are closed to their owner.
        remove_folder(Path(f"/proc/self/fd/{root}", os.fsdecode(name)))


def entry_name(number: int) -> bytes:
    """The name of a staged entry in the staging folder."""
    return b"%d" % number
