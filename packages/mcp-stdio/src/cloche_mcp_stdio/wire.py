"""The two descriptors that carry the protocol, taken away from everything else in the process.

Any dependency may print, and a child process inherits stdin and stdout: both would corrupt
the stream that the client parses. Only the standard library is used here, because this runs
before anything else is imported.

Source: faults M1; dup(2), fcntl(2).
"""

import fcntl
import os
import sys
from typing import NamedTuple

_FIRST_PRIVATE_FD = 3


class Wire(NamedTuple):
    """What connects this process with its client.

    `read_fd` and `write_fd` are private duplicates of stdin and stdout. A process that was
    started without stdin reads nothing; without stdout it cannot answer. `parent_pid` is the
    process that started this one.
    """

    read_fd: int
    write_fd: int
    can_answer: bool
    parent_pid: int


_reserved: Wire | None = None


def reserve() -> Wire:
    """Move stdin and stdout to private descriptors.

    Afterwards descriptor 0 reads as empty and descriptor 1 is stderr, for this process and
    for its children. A second call returns the same wire.
    """
    global _reserved
    if _reserved is None:
        # Copied before anything is opened: a descriptor that is missing must not be taken by the null device.
        stdin, stdout = _private_copy(0), _private_copy(1)
        null = os.open(os.devnull, os.O_RDWR)
        spare = _private_copy(null)
        assert spare is not None, "a descriptor that was just opened can be copied"
        _reserved = Wire(
            read_fd=spare if stdin is None else stdin,
            write_fd=spare if stdout is None else stdout,
            can_answer=stdout is not None,
            parent_pid=os.getppid(),
        )
        _divert(null)
    return _reserved


def _private_copy(fd: int) -> int | None:
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE_FD)
    except OSError:
        return None


def _divert(null: int) -> None:
    try:
        os.fstat(2)
    except OSError:
        os.dup2(null, 2)
    os.dup2(null, 0)
    os.dup2(2, 1)
    for fd in (0, 1, 2):  # where `null` is one of them it was not made inheritable by a copy
        os.set_inheritable(fd, True)
    if null >= _FIRST_PRIVATE_FD:
        os.close(null)
    # A print must appear now, in order with the log, not when a buffer is full.
    sys.stdout = sys.stderr
