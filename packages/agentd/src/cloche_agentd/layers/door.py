"""The door to the disk, the clock and randomness. Tests hand in one that fails at any step.

Every path is a name below a folder's handle; links are never followed.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import stat
import time
from typing import Final

_libc = ctypes.CDLL(None, use_errno=True)

_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW
WHITEOUT_DEVICE: Final = os.makedev(0, 0)


class Door:
    """What the engine may do to the disk. `before` and `after` surround each change."""

    def before(self, step: str) -> None:
        """The next change is about to be made."""

    def after(self, step: str) -> None:
        """The change was made."""

    def now_ns(self) -> int:
        """Return the wall clock."""
        return time.time_ns()

    def token(self) -> str:
        """Return eight hexadecimal digits."""
        return secrets.token_hex(4)

    # -- folders and names --------------------------------------------------------------------------------------

    def mkdir(self, folder: int, name: str, mode: int) -> None:
        """Make a folder with exactly this mode."""
        self.before("mkdir")
        os.mkdir(name, 0o700, dir_fd=folder)
        if mode != 0o700:
            os.chmod(name, mode, dir_fd=folder)
        self.after("mkdir")

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        """Move a name; what has the new one is replaced."""
        self.before("rename")
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
        self.after("rename")

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        """Give a file another name."""
        self.before("link")
        os.link(name, new_name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        self.after("link")

    def symlink(self, destination: str, folder: int, name: str) -> None:
        """Make a symbolic link."""
        self.before("symlink")
        os.symlink(destination, name, dir_fd=folder)
        self.after("symlink")

    def whiteout(self, folder: int, name: str) -> None:
        """Make the mark of a deleted name: a character device 0:0, which needs no right to make devices."""
        self.before("mknod")
        os.mknod(name, stat.S_IFCHR, WHITEOUT_DEVICE, dir_fd=folder)
        self.after("mknod")

    def unlink(self, folder: int, name: str) -> None:
        """Remove a name that is no folder."""
        self.before("unlink")
        os.unlink(name, dir_fd=folder)
        self.after("unlink")

    def rmdir(self, folder: int, name: str) -> None:
        """Remove an empty folder."""
        self.before("rmdir")
        os.rmdir(name, dir_fd=folder)
        self.after("rmdir")

    # -- content ------------------------------------------------------------------------------------------------

    def create(self, folder: int, name: str, mode: int) -> int:
        """Make a file and return it open for writing."""
        self.before("create")
        made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=folder)
        os.fchmod(made, mode)
        self.after("create")
        return made

    def write(self, file: int, data: bytes) -> None:
        """Write all of it."""
        self.before("write")
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        self.after("write")

    def copy(self, source: int, target: int, offset: int, count: int) -> int:
        """Copy a part of a file to the same place of another, in the kernel; return how many bytes."""
        self.before("write")
        done = os.copy_file_range(source, target, count, offset, offset)
        self.after("write")
        return done

    def truncate(self, file: int, size: int) -> None:
        """Set the size of a file."""
        self.before("truncate")
        os.ftruncate(file, size)
        self.after("truncate")

    def fsync(self, fd: int) -> None:
        """Bring a file or folder to the disk."""
        self.before("fsync")
        os.fsync(fd)
        self.after("fsync")

    def syncfs(self, fd: int) -> None:
        """Bring everything of this file system to the disk, once for any number of files (syncfs(2))."""
        self.before("syncfs")
        if _libc.syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
        self.after("syncfs")

    # -- attributes ---------------------------------------------------------------------------------------------

    def chmod(self, folder: int, name: str, mode: int) -> None:
        """Set the mode of what is no link."""
        self.before("chmod")
        os.chmod(name, mode, dir_fd=folder)
        self.after("chmod")

    def chown(self, folder: int, name: str, uid: int, gid: int) -> None:
        """Set the owner."""
        self.before("chown")
        os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)
        self.after("chown")

    def utime(self, folder: int, name: str, times_ns: tuple[int, int]) -> None:
        """Set the times of the last access and the last change."""
        self.before("utime")
        os.utime(name, ns=times_ns, dir_fd=folder, follow_symlinks=False)
        self.after("utime")

    def setxattr(self, folder: int, name: str, attribute: str, value: bytes) -> None:
        """Set an extended attribute."""
        self.before("setxattr")
        os.setxattr(below(folder, name), attribute, value, follow_symlinks=False)
        self.after("setxattr")

    def removexattr(self, folder: int, name: str, attribute: str) -> None:
        """Remove an extended attribute."""
        self.before("removexattr")
        os.removexattr(below(folder, name), attribute, follow_symlinks=False)
        self.after("removexattr")


def below(folder: int, name: str) -> str:
    """Return a path for the calls that take no handle: still below that very folder, whatever its path is now."""
    return f"/proc/self/fd/{folder}/{name}"


def open_folder(folder: int, name: str) -> int:
    """Open a folder for reading; a link is an error.

    Raises:
        OSError: ENOENT, or ENOTDIR where something else has the name.
    """
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=folder)


def open_file(folder: int, name: str) -> int:
    """Open a regular file for reading; never waits, as on a pipe it would."""
    return os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FLAGS, dir_fd=folder)


def lstat(folder: int, name: str) -> os.stat_result | None:
    """Return what a name is, or None."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def names(folder: int) -> list[str]:
    """Return the names in a folder, in the order of their bytes."""
    return sorted(os.listdir(folder), key=os.fsencode)
