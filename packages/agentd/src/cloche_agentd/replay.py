"""Output that is kept for clients that come back: the first and the last of it, by position."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from . import limits

_OVERHEAD_BYTES: Final = 160
"""What a segment costs beside its bytes: output that alternates between streams has many small ones."""


@dataclass(slots=True)
class _Segment:
    stream: str
    start: int
    data: bytearray

    @property
    def cost(self) -> int:
        return len(self.data) + _OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class Piece:
    """Kept bytes of one stream; or, with an empty `stream`, how many bytes are not kept here."""

    stream: str
    data: bytes
    skipped: int = 0


class History:
    """The output of one process. A position counts the bytes of all its streams, in the order they came."""

    def __init__(self, spend: Callable[[int], None]) -> None:
        self.total = 0
        self.cost = 0
        self._spend = spend
        self._head: list[_Segment] = []
        self._head_cost = 0
        self._tail: deque[_Segment] = deque()
        self._tail_cost = 0

    def add(self, stream: str, data: bytes) -> None:
        """Keep bytes; what lies between the first and the last of them is forgotten."""
        before = self.cost
        if self._head_cost < limits.REPLAY_HEAD_BYTES and not self._tail:
            self._head_cost += self._append(self._head, stream, data)
        else:
            self._tail_cost += self._append(self._tail, stream, data)
            while self._tail_cost > limits.REPLAY_TAIL_BYTES:
                self._tail_cost -= self._tail.popleft().cost
        self.total += len(data)
        self.cost = self._head_cost + self._tail_cost
        self._spend(self.cost - before)

    def drop(self) -> None:
        """Forget everything so far."""
        self._head.clear()
        self._tail.clear()
        self._head_cost, self._tail_cost = 0, 0
        self._spend(-self.cost)
        self.cost = 0

    def since(self, position: int) -> Iterator[Piece]:
        """Yield what was printed from a position on, and how much is missing where it is missing."""
        for segment in itertools.chain(self._head, self._tail):
            end = segment.start + len(segment.data)
            if end <= position:
                continue
            if segment.start > position:
                yield Piece("", b"", segment.start - position)
                position = segment.start
            yield Piece(segment.stream, bytes(segment.data[position - segment.start :]))
            position = end
        if position < self.total:
            yield Piece("", b"", self.total - position)

    def _append(self, segments: list[_Segment] | deque[_Segment], stream: str, data: bytes) -> int:
        """Add to the last segment or as a new one; return what that costs."""
        last = segments[-1] if segments else None
        fits = last is not None and len(last.data) + len(data) <= limits.PIPE_CHUNK_BYTES
        if last is not None and fits and last.stream == stream and last.start + len(last.data) == self.total:
            last.data += data
            return len(data)
        segment = _Segment(stream, self.total, bytearray(data))
        segments.append(segment)
        return segment.cost
