"""A root file system that is put together from names that nobody vouches for.

Every name is looked up below the root, links included, as the kernel does for a process whose root it is: none leads
out. No device, pipe or socket is made, and no file keeps a set-id bit. The folder belongs to us alone while it grows.

Source: security.md ("extract by dir handles"), faults P6, P14.
"""

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Final

_MOST_LINKS: Final = 40
_NOBODY: Final = 65534
_COPY_BYTES: Final = 1 << 20
MOST_BYTES: Final = 32 << 30
MOST_ENTRIES: Final = 2_000_000


class TreeRefused(Exception):
    """The content cannot be a root file system; the text says what of it, without a name from it."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Mode, owner and time of an entry."""

    mode: int
    uid: int = 0
    gid: int = 0
    mtime: float = 0


@dataclass
class Counts:
    """What was written, and what was left out."""

    entries: int = 0
    bytes: int = 0
    skipped: int = 0


@dataclass
class Tree:
    """A root file system in the making.

    Attributes:
        root: an empty folder that nobody else writes to.
        owners: whether entries get the owners that they name. Without, they are this user's.
    """

    root: str
    owners: bool
    most_bytes: int = MOST_BYTES
    most_entries: int = MOST_ENTRIES
    counts: Counts = field(default_factory=Counts)
    _folders: dict[str, Facts] = field(default_factory=dict[str, Facts])

    # -- entries ----------------------------------------------------------------------------------------------------

    def folder(self, name: str, facts: Facts) -> None:
        """Make a folder, or give one that is there other facts."""
        self._count()
        path = self.where(name)
        if not _is(path, stat.S_ISDIR):
            self._clear(path)
            os.mkdir(path, 0o700)
        self._folders[path] = facts

    def file(self, name: str, facts: Facts, content: IO[bytes], size: int) -> None:
        """Write a file of that many bytes.

        Raises:
            TreeRefused: the content ends early, or there is too much of it.
        """
        self._count()
        path = self._new(name)
        self.counts.bytes += size
        if self.counts.bytes > self.most_bytes:
            raise TreeRefused("it has more bytes than a template may have")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            left = size
            while left and (part := content.read(min(left, _COPY_BYTES))):
                file.write(part)
                left -= len(part)
            if left:
                raise TreeRefused("a file of it ends early")
            file.flush()
            if self.owners:
                os.fchown(fd, _id(facts.uid), _id(facts.gid))
            os.fchmod(fd, facts.mode & 0o777)
            os.utime(fd, (facts.mtime, facts.mtime))

    def link(self, name: str, facts: Facts, target: str) -> None:
        """Make a symbolic link; where it leads is for the sandbox to find out."""
        self._count()
        if not target or "\0" in target:
            raise TreeRefused("a link of it leads nowhere")
        path = self._new(name)
        os.symlink(target, path)
        if self.owners:
            os.lchown(path, _id(facts.uid), _id(facts.gid))

    def hard_link(self, name: str, target: str) -> None:
        """Give a file of the tree another name.

        Raises:
            TreeRefused: there is no such file in the tree.
        """
        self._count()
        parts = self._parts(target)
        source = self._place(parts, make=False) if parts else self.root
        if not _is(source, stat.S_ISREG) and not _is(source, stat.S_ISLNK):
            raise TreeRefused("a hard link of it is to no file of it")
        if self.where(name) == source:
            return
        os.link(source, self._new(name), follow_symlinks=False)

    def skip(self) -> None:
        """Leave out a device, a pipe or a socket."""
        self._count()
        self.counts.skipped += 1

    # -- whiteouts --------------------------------------------------------------------------------------------------

    def where(self, name: str) -> str:
        """Where an entry of that name is, or would be."""
        parts = self._parts(name)
        return self._place(parts) if parts else self.root

    def remove(self, name: str, keep: frozenset[str] | set[str]) -> None:
        """Remove what a lower layer has there; what is in `keep` is of the same layer and stays."""
        self._count()
        path = self.where(name)
        if path in keep:
            self.empty(name, keep)
        elif path != self.root:
            self._clear(path)

    def empty(self, name: str, keep: frozenset[str] | set[str]) -> None:
        """Remove what lower layers have in a folder, but not what is in `keep`."""
        path = self.where(name)
        if not _is(path, stat.S_ISDIR):
            return
        for entry in sorted(os.listdir(path)):
            below = f"{path}/{entry}"
            if below not in keep:
                self._clear(below)
            elif _is(below, stat.S_ISDIR):
                self.empty(below[len(self.root) :], keep)

    # -- the end ----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Give folders what they were told last: until now we could write into all of them."""
        for path in sorted(self._folders, key=lambda path: path.count("/"), reverse=True):
            facts = self._folders[path]
            if not _is(path, stat.S_ISDIR):
                continue
            if self.owners:
                os.lchown(path, _id(facts.uid), _id(facts.gid))
            os.chmod(path, facts.mode & 0o1777)
            os.utime(path, (facts.mtime, facts.mtime))

    # -- names ------------------------------------------------------------------------------------------------------

    def _count(self) -> None:
        self.counts.entries += 1
        if self.counts.entries > self.most_entries:
            raise TreeRefused("it has more entries than a template may have")

    def _parts(self, name: str) -> list[str]:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if ".." in parts or "\0" in name:
            raise TreeRefused("a name in it leads out of it")
        return parts

    def _place(self, parts: list[str], *, make: bool = True) -> str:
        """The path of an entry: its folders are followed below the root, it itself is not."""
        real: list[str] = []
        waiting = list(reversed(parts[:-1]))
        followed = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                del real[-1:]
                continue
            path = "/".join([self.root, *real, part])
            if _is(path, stat.S_ISLNK):
                followed += 1
                if followed > _MOST_LINKS:
                    raise TreeRefused("links of it go round in circles")
                target = os.readlink(path)
                real = [] if target.startswith("/") else real
                waiting += [step for step in reversed(target.split("/")) if step not in ("", ".")]
                continue
            if not _is(path, stat.S_ISDIR):
                self._need_folder(path, make=make)
            real.append(part)
        return "/".join([self.root, *real, parts[-1]])

    def _need_folder(self, path: str, *, make: bool) -> None:
        """A folder that is needed and was not named, or not yet."""
        if os.path.lexists(path):
            raise TreeRefused("a file of it is used as a folder")
        if not make:
            raise TreeRefused("a hard link of it is to no file of it")
        os.mkdir(path, 0o700)
        self._folders[path] = Facts(0o755)

    def _new(self, name: str) -> str:
        parts = self._parts(name)
        if not parts:
            raise TreeRefused("its root is no folder")
        path = self._place(parts)
        self._clear(path)
        return path

    def _clear(self, path: str) -> None:
        if _is(path, stat.S_ISDIR):
            shutil.rmtree(path)
        else:
            with suppress(FileNotFoundError):
                os.unlink(path)


def remove_tree(path: str) -> None:
    """Remove a tree whose folders may not be this user's to change.

    Raises:
        OSError: something of it stays.
    """
    os.chmod(path, 0o700)
    for folder, names, _files in os.walk(path):
        for name in names:
            below = f"{folder}/{name}"
            if not os.path.islink(below):
                os.chmod(below, 0o700)  # before it is listed
    shutil.rmtree(path)


def _is(path: str, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _id(number: int) -> int:
    """An id that a sandbox has; everybody else is nobody."""
    return number if 0 <= number < 65536 else _NOBODY
