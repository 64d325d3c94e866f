"""prctl, by ctypes. Imported before the root is switched."""

from __future__ import annotations

import ctypes
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "prctl")


def die_with_parent(signal_number: int) -> None:
    """Get this signal when the parent ends (prctl(2), PR_SET_PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def set_dumpable() -> None:
    """Own our files in /proc again: init clears it, user code needs /proc/self (prctl(2), PR_SET_DUMPABLE)."""
    _prctl(_PR_SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Become the parent of orphans below us, as pid 1 is by nature (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
