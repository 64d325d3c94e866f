"""System calls of a boot that confines: namespaces, mounts, capabilities. By ctypes; imported before any fork."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Final

# unshare(2), namespaces(7)
CLONE_NEWNS: Final = 0x00020000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWPID: Final = 0x20000000

# mount(2)
MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000

_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38
_CAP_VERSION_3: Final = 0x20080522
_CAPSET: Final = {"x86_64": 126, "aarch64": 91}

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Move this process into new namespaces; its next child into a new pid namespace (unshare(2))."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount; `kind` None for binds and remounts (mount(2))."""
    options = None if data is None else os.fsencode(data)
    filesystem = None if kind is None else kind.encode()
    done = _libc.mount(os.fsencode(source), os.fsencode(target), filesystem, ctypes.c_ulong(flags), options)
    _checked(done, f"mount {target}")


def drop_capabilities() -> None:
    """Give up every capability, for good where no_new_privs is set (capabilities(7))."""
    header = struct.pack("=Ii", _CAP_VERSION_3, 0)
    data = struct.pack("=IIIIII", 0, 0, 0, 0, 0, 0)
    _checked(_libc.syscall(ctypes.c_long(_CAPSET[os.uname().machine]), header, data), "capset")


def set_no_new_privileges() -> None:
    """Gain nothing by running a program, root's ids included (prctl(2), PR_SET_NO_NEW_PRIVS)."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def hide_memory() -> None:
    """Let no process of the same id trace us or read our memory (prctl(2), PR_SET_DUMPABLE)."""
    _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero), "prctl")


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
