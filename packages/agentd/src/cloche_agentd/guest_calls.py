"""System calls that Python does not have, by ctypes. Imported before the root is switched."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36

_libc = ctypes.CDLL(None, use_errno=True)
# Called with the interpreter's lock held: the child has it, too.
_fork = ctypes.PyDLL(None, use_errno=True).fork


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "prctl")


def fork() -> int:
    """Fork a process with one thread, and call none of what modules have registered to be called after a fork.

    That renews locks which only another thread could hold, and random numbers, which a context renews itself; and each
    sandbox would pay for it three times, a hundred pages of memory each.

    Raises:
        OSError: no process.
    """
    return _checked(_fork(), "fork")


def die_with_parent(signal_number: int) -> None:
    """Get this signal when the parent ends (prctl(2), PR_SET_PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def set_dumpable() -> None:
    """Own our files in /proc again: init clears it, user code needs /proc/self (prctl(2), PR_SET_DUMPABLE)."""
    _prctl(_PR_SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Become the parent of orphans below us, as pid 1 is by nature (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def inotify_open() -> int:
    """Return a descriptor to watch folders with (inotify(7))."""
    return _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1")


def inotify_add(fd: int, path: str, mask: int) -> int:
    """Watch a path; return the number that its events carry."""
    return _checked(_libc.inotify_add_watch(fd, os.fsencode(path), ctypes.c_uint32(mask)), "inotify_add_watch")


def inotify_remove(fd: int, number: int) -> None:
    """Watch a path no more."""
    _checked(_libc.inotify_rm_watch(fd, number), "inotify_rm_watch")


def filesystem_type(path: str) -> int:
    """Return the magic number of the filesystem of a path (statfs(2))."""
    # struct statfs is smaller, and starts with the type in one word.
    buffer = (ctypes.c_long * 64)()
    _checked(_libc.statfs(os.fsencode(path), buffer), "statfs")
    return buffer[0] & 0xFFFFFFFF


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result
