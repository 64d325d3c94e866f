"""One stream of a task: its beginning and its end are kept, everything is counted, secrets are replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import limits
from .redact import Redactor


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a stream, from `offset` on."""

    data: bytes
    offset: int
    size: int
    truncated: bool


class TaskLog:
    """Takes a stream as it comes. Offsets count what is shown, so that a reader never has to know of secrets."""

    def __init__(self, secrets: Iterable[bytes], on_growth: Callable[[int], None]) -> None:
        self._redactor = Redactor(secrets)
        self._on_growth = on_growth
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = False
        self.size = 0

    @property
    def cost(self) -> int:
        """Bytes that it keeps."""
        return len(self._head) + len(self._tail)

    def feed(self, data: bytes) -> None:
        """Take output of the program."""
        self._add(self._redactor.feed(data))

    def finish(self) -> None:
        """Take what was held back: nothing follows."""
        self._add(self._redactor.finish())

    def drop(self) -> None:
        """Forget the output, not that there was some."""
        self._dropped = self._dropped or bool(self.size)
        before, self._head, self._tail = self.cost, bytearray(), bytearray()
        self._on_growth(-before)

    def page(self, offset: int, limit: int) -> Page:
        """Return what is kept from an offset on; from a later one where there is a gap."""
        tail = self._tail[-limits.TASK_TAIL_BYTES :]
        begin = self.size - len(tail)
        if offset < len(self._head):
            data = self._head[offset : offset + limit]
            if begin == len(self._head):
                data += tail[: limit - len(data)]
            return self._page(bytes(data), offset)
        offset = min(max(offset, begin), self.size)
        return self._page(bytes(tail[offset - begin : offset - begin + limit]), offset)

    def _page(self, data: bytes, offset: int) -> Page:
        kept = len(self._head) + min(len(self._tail), limits.TASK_TAIL_BYTES)
        return Page(data, offset, self.size, self._dropped or kept < self.size)

    def _add(self, data: bytes) -> None:
        if not data:
            return
        before = self.cost
        self.size += len(data)
        if not self._dropped:
            room = limits.TASK_HEAD_BYTES - len(self._head)
            self._head += data[:room]
            self._tail += data[room:][-limits.TASK_TAIL_BYTES :]
            # Cut late, at twice the limit: cutting on each piece would copy the tail each time.
            if len(self._tail) > 2 * limits.TASK_TAIL_BYTES:
                del self._tail[: -limits.TASK_TAIL_BYTES]
        self._on_growth(self.cost - before)
