"""Overlay mounts over layers, as root with CAP_SYS_ADMIN or inside a user namespace of our own.

Folders are named by descriptors, relative to /proc/self/fd as it was before a session got a /proc of its own: no path
has to be quoted, and none can be exchanged.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence
from typing import Final

from . import namespace_calls as calls

_CLONE_NEWUSER: Final = 0x10000000
_CAP_SYS_ADMIN: Final = 21
_MNT_DETACH: Final = 2
_libc = ctypes.CDLL(None, use_errno=True)


def privileged() -> bool:
    """Whether this process may mount where it is (capabilities(7), CAP_SYS_ADMIN)."""
    with open("/proc/self/status", encoding="ascii") as stream:
        line = next(line for line in stream if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> _CAP_SYS_ADMIN & 1)


def enter_user_namespace() -> None:
    """Become privileged in a user namespace of our own, where we keep our ids (user_namespaces(7)).

    Raises:
        OSError: the kernel or a security module refuses it.
    """
    # Read before: afterwards they are nobody's until the maps are written.
    uid, gid = os.geteuid(), os.getegid()
    calls.unshare(_CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as stream:
            stream.write(text)


def mount_overlay(own_fds: int, lower: Sequence[int], upper: int, work: int, target: str) -> None:
    """Mount a stack: `lower` newest first, all of them descriptors that were opened in this mount namespace.

    Args:
        own_fds: /proc/self/fd, open; the working directory is changed to it and back to the root.

    Raises:
        OSError: the kernel refuses it.
    """
    stack = ":".join(str(fd) for fd in lower)
    # userxattr: marks are user attributes in both modes, and a session cannot set them itself. It rules out
    # redirected folders and files without content, which a layer on its own could not stand for.
    options = f"lowerdir={stack},upperdir={upper},workdir={work},userxattr,index=off,xino=off"
    os.fchdir(own_fds)
    try:
        calls.mount("overlay", target, "overlay", calls.MS_NOSUID | calls.MS_NODEV, options)
    finally:
        os.chdir("/")
    if os.statvfs(target).f_flag & os.ST_RDONLY:
        # The kernel falls back to this, without an error, where it cannot make its work folder.
        unmount(target)
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "overlay")


def unmount(target: str) -> None:
    """Unmount, only if nothing uses it (umount(2)).

    Raises:
        OSError: EBUSY, somebody does.
    """
    if _libc.umount2(os.fsencode(target), 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "umount")


def detach(path: str) -> None:
    """Take a mount away; what is still open of it goes on (umount(2), MNT_DETACH).

    Raises:
        OSError: nothing is mounted there.
    """
    if _libc.umount2(os.fsencode(path), _MNT_DETACH) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "umount")


def hide(path: str) -> None:
    """Put an empty folder over one that a session has no business in."""
    flags = calls.MS_NOSUID | calls.MS_NODEV | calls.MS_NOEXEC | calls.MS_RDONLY
    calls.mount("none", path, "tmpfs", flags, "size=4k,mode=000")
