"""A person at a terminal: starts a program on a real pseudo-terminal, types, reads, resizes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

WITHIN_S = 30


class Person:
    """Sits before one program."""

    def __init__(self, pid: int, fd: int, other: int) -> None:
        self.pid = pid
        self.shown = b""
        self._fd = fd
        # Held open, so that the terminal outlives the program and can be looked at.
        self._other = other
        self._status: int | None = None

    def types(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def sees(self, text: str) -> None:
        """Wait for text that is shown after what was seen before."""
        give_up = time.monotonic() + WITHIN_S
        while text.encode() not in self.shown:
            left = give_up - time.monotonic()
            assert left > 0, f"{text!r} is not shown, but {self.shown!r}"
            if not select.select([self._fd], [], [], left)[0]:
                continue
            self.shown += os.read(self._fd, 65536)
        self.shown = self.shown.partition(text.encode())[2]

    def resizes(self, cols: int, rows: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def settings(self) -> list[Any]:
        """The modes of the terminal: whether it echoes, and what Ctrl+C does."""
        return termios.tcgetattr(self._other)

    def leaves(self) -> None:
        """Close the window."""
        for fd in (self._other, self._fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._other = -1

    def status(self) -> int:
        """Wait for the program's end and return its status."""
        if self._status is None:
            pidfd = os.pidfd_open(self.pid)
            try:
                give_up = time.monotonic() + WITHIN_S
                while not select.select([pidfd], [], [], 0)[0]:
                    assert time.monotonic() < give_up, f"it does not end; shown: {self.shown!r}"
                    # What it still writes is read: a full terminal would hold it up.
                    watched = [pidfd] if self._fd < 0 else [pidfd, self._fd]
                    if self._fd in select.select(watched, [], [], give_up - time.monotonic())[0]:
                        self.shown += os.read(self._fd, 65536)
            finally:
                os.close(pidfd)
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def close(self) -> None:
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.leaves()


@contextmanager
def person_at(
    command: Sequence[str], environ: Mapping[str, str], *, cols: int = 99, rows: int = 31
) -> Generator[Person]:
    """Start a program on a terminal of that size; it is ended with the block."""
    fd, other = pty.openpty()
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
    pid = os.fork()
    if pid == 0:
        try:
            os.login_tty(other)
            os.chdir(environ["HOME"])
            os.execve(command[0], list(command), dict(environ))
        finally:
            os._exit(127)
    person = Person(pid, fd, other)
    try:
        yield person
    finally:
        person.close()
