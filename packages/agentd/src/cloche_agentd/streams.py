"""The three standard streams of a context, opened on its own descriptors."""

from __future__ import annotations

import contextlib
import io
import sys


def renew() -> None:
    """Replace the streams that the fork inherited, whose buffers and locks are init's."""
    sys.stdin = sys.__stdin__ = _reader()
    sys.stdout = sys.__stdout__ = _writer(1)
    sys.stderr = sys.__stderr__ = _writer(2)


def mend() -> None:
    """Replace streams that user code has closed; `exit()` closes standard input."""
    if _unusable(sys.stdin):
        sys.stdin = sys.__stdin__ = _reader()
    if _unusable(sys.stdout):
        sys.stdout = sys.__stdout__ = _writer(1)
    if _unusable(sys.stderr):
        sys.stderr = sys.__stderr__ = _writer(2)


def flush() -> None:
    """Let what was printed leave."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _unusable(stream: object) -> bool:
    return bool(getattr(stream, "closed", stream is None))


def _reader() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")


def _writer(fd: int) -> io.TextIOWrapper:
    raw = io.FileIO(fd, "w", closefd=False)
    errors = "backslashreplace" if fd == 2 else "surrogateescape"
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors, newline="\n", line_buffering=True)
