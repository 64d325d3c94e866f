"""Pseudo-terminals: the keeper holds the master, a command has the other end as its controlling terminal.

Source: pty(7), ioctl_tty(2).
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from . import fields, limits
from .config import KeeperHooks, User
from .failures import AgentError, invalid_argument
from .pumps import OutputPipe

# termios has no names for them; the numbers are those of x86_64 and aarch64.
_TIOCSPTLCK: Final = 0x40045431
_TIOCGPTN: Final = 0x80045430
_UNLOCK: Final = struct.pack("i", 0)
_NUMBER: Final = struct.Struct("I")
_SIZE: Final = struct.Struct("HHHH")
_SIZE_MAX: Final = 65535


class Size(NamedTuple):
    """Rows and columns of a terminal."""

    rows: int
    cols: int


def size_of(request: Mapping[str, object]) -> Size:
    """Return the size that a request's `pty` field asks for; what it leaves out is 24 rows of 80.

    Raises:
        AgentError: invalid_argument.
    """
    asked = fields.inner(fields.inner(request, "pty"), "size")
    size = Size(fields.whole(asked, "rows", 24) or 24, fields.whole(asked, "cols", 80) or 80)
    if not (0 < size.rows <= _SIZE_MAX and 0 < size.cols <= _SIZE_MAX):
        raise invalid_argument("a terminal has 1 to 65535 rows and columns", "size")
    return size


class Terminal:
    """One pseudo-terminal. The other end stays open here too, so that a command may close and reopen it."""

    def __init__(self, user: User, hooks: KeeperHooks, size: Size) -> None:
        self._master = self._other = -1
        try:
            # Opened as the user, who then owns the other end and may reopen /dev/tty and /dev/stdout.
            with hooks.become(user):
                self._master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
                fcntl.ioctl(self._master, _TIOCSPTLCK, _UNLOCK)
                number = fcntl.ioctl(self._master, _TIOCGPTN, bytes(_NUMBER.size))
                self.path = f"/dev/pts/{_NUMBER.unpack(number)[0]}"
                # Without O_NOCTTY it could become the terminal of the keeper.
                self._other = os.open(self.path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            self.resize(size)
        except OSError:
            self.close()
            raise AgentError(
                "resource_exhausted", "no terminal is left; end other terminals first", "command_failed_to_start"
            ) from None

    def resize(self, size: Size) -> None:
        """Change the size; the foreground program gets SIGWINCH."""
        if self._master >= 0:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, _SIZE.pack(size.rows, size.cols, 0, 0))

    def writer_fd(self) -> int:
        """Return a descriptor to type into the terminal, to be closed by its owner."""
        return os.dup(self._master)

    def reader(self, on_data: Callable[[bytes], None]) -> TerminalOutput:
        """Read what appears on the terminal."""
        return TerminalOutput(os.dup(self._master), on_data)

    def close(self) -> None:
        """Hang up, once the reader and the writer are closed too."""
        for fd in (self._master, self._other):
            if fd >= 0:
                os.close(fd)
        self._master = self._other = -1


class TerminalOutput(OutputPipe):
    """Output of a terminal, which ends with its command and not with its last writer."""

    def drain(self) -> None:
        """Hand over what was printed before now, bounded: what the kernel holds is less than the bound."""
        left = limits.TERMINAL_DRAIN_BYTES
        # FIONREAD does not count what is on its way through the terminal; a read does wait for it.
        while left > 0 and (piece := self._read(limits.PIPE_CHUNK_BYTES)):
            left -= len(piece)
            self._on_data(piece)

    def discard(self) -> None:
        """Hang up: programs left behind get an end of input and an error for output."""
        self.close()
