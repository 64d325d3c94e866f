"""Changing places: a new entry takes the place of an old one in one step, and nobody ever finds neither. Blocks."""

from __future__ import annotations

import ctypes
import errno
import os

_RENAME_EXCHANGE = 2
_NOT_HERE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_libc = ctypes.CDLL(None, use_errno=True)


def exchange(fd: int, name: bytes, other_fd: int, other: bytes) -> None:
    """Let two entries of one file system change their places (renameat2(2), RENAME_EXCHANGE).

    Where the file system cannot do that it takes three renames.

    Raises:
        OSError: nothing has changed; ENOENT where one of them is not there.
    """
    call = getattr(_libc, "renameat2", None)
    if call is not None:
        if call(fd, name, other_fd, other, _RENAME_EXCHANGE) == 0:
            return
        number = ctypes.get_errno()
        if number not in _NOT_HERE:
            raise OSError(number, os.strerror(number))
    aside = other + b".aside"
    os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=other_fd)
    try:
        os.rename(other, name, src_dir_fd=other_fd, dst_dir_fd=fd)
    except OSError:
        os.rename(aside, name, src_dir_fd=other_fd, dst_dir_fd=fd)
        raise
    os.rename(aside, other, src_dir_fd=other_fd, dst_dir_fd=other_fd)
