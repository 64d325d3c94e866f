"""Pipes between the keeper and children: readers with backpressure, writers with a bounded queue. No polling."""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import termios
from collections import deque
from collections.abc import Callable

from . import limits
from .failures import AgentError


class OutputPipe:
    """Reads a child's output stream and hands pieces to `on_data` until it is closed."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._loop = asyncio.get_running_loop()
        self._reading = False
        self._timer: asyncio.TimerHandle | None = None
        self.resume()

    @property
    def open(self) -> bool:
        """Whether some process may still write."""
        return self._fd >= 0

    def pause(self) -> None:
        """Leave output in the pipe: the writer waits when it is full."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Read again."""
        if not self._reading and self._fd >= 0:
            self._reading = True
            self._loop.add_reader(self._fd, self._on_readable)

    def drain(self) -> None:
        """Hand over what is in the pipe now, and not a byte that is written later."""
        waiting = self._waiting_bytes()
        while waiting > 0 and self._fd >= 0:
            piece = self._read(min(waiting, limits.PIPE_CHUNK_BYTES))
            if piece is None or not piece:
                return
            waiting -= len(piece)
            self._on_data(piece)

    def discard(self) -> None:
        """Read on and drop it, so that a writer neither blocks for ever nor dies of SIGPIPE; close at the end."""
        self.pause()
        if self._fd >= 0:
            self._reading = True
            self._loop.add_reader(self._fd, self._drop)

    def close(self) -> None:
        """Close our end."""
        self.pause()
        if self._timer is not None:
            self._timer.cancel()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _on_readable(self) -> None:
        piece = self._read(limits.PIPE_CHUNK_BYTES)
        if piece:
            self._on_data(piece)

    def _read(self, size: int) -> bytes | None:
        """Return output, b"" at the end of the stream (then closed), None when there is nothing now."""
        try:
            piece = os.read(self._fd, size)
        except BlockingIOError:
            return None
        except OSError:
            piece = b""
        if not piece:
            self.close()
        return piece

    def _drop(self) -> None:
        piece = self._read(limits.PIPE_CHUNK_BYTES * 2)
        if piece and len(piece) >= limits.PIPE_CHUNK_BYTES:
            # A writer that never stops must not keep the keeper busy: let the pipe hold it back for a while.
            self.pause()
            self._timer = self._loop.call_later(limits.DISCARD_PAUSE_S, self.discard)

    def _waiting_bytes(self) -> int:
        if self._fd < 0:
            return 0
        count = array.array("i", [0])
        try:
            fcntl.ioctl(self._fd, termios.FIONREAD, count)
        except OSError:
            return 0
        return count[0]


class InputPipe:
    """Writes to a child's input. A child that does not read is waited for, up to a bound."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._closing = False
        self._writing = False
        self._waiters: list[asyncio.Future[None]] = []
        self._loop = asyncio.get_running_loop()

    @property
    def open(self) -> bool:
        """Whether input can still be sent."""
        return self._fd >= 0 and not self._closing

    def send(self, data: bytes) -> None:
        """Queue bytes for the child.

        Raises:
            AgentError: resource_exhausted, the child does not read what it was sent.
        """
        if self._queued + len(data) > limits.STDIN_QUEUE_BYTES:
            raise AgentError("resource_exhausted", "the process does not read its input", "invalid_argument")
        if data:
            self._queue.append(data)
            self._queued += len(data)
            self._on_writable()

    async def room(self) -> None:
        """Wait until the child has read enough of what it was sent, or takes no more."""
        while self.open and self._queued > limits.STDIN_ROOM_BYTES:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def finish(self) -> None:
        """Close once everything queued is written: the child then reads end of file."""
        self._closing = True
        self._on_writable()

    def close(self) -> None:
        """Close now."""
        if self._fd >= 0:
            self._watch(writing=False)
            os.close(self._fd)
            self._fd = -1
            self._queue.clear()
        self._wake()

    def _on_writable(self) -> None:
        while self._queue and self._fd >= 0:
            piece = self._queue[0]
            try:
                written = os.write(self._fd, piece)
            except BlockingIOError:
                break
            except OSError:
                self.close()
                return
            self._queued -= written
            if written == len(piece):
                self._queue.popleft()
            else:
                self._queue[0] = piece[written:]
        self._watch(writing=bool(self._queue))
        if self._queued <= limits.STDIN_ROOM_BYTES:
            self._wake()
        if self._closing and not self._queue:
            self.close()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _watch(self, *, writing: bool) -> None:
        if self._fd < 0 or writing == self._writing:
            return
        self._writing = writing
        if writing:
            self._loop.add_writer(self._fd, self._on_writable)
        else:
            self._loop.remove_writer(self._fd)
