"""A part of a task's stream as text: whole characters, and none of the values that must stay here.

Pages are cut by bytes. So that neither a character nor a value that is to be hidden is lost between two of them, a
page is cut out of a window that reaches a little further on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CHARACTER_BYTES", "HIDDEN", "OVERLAP_LIMIT_BYTES", "Span", "TaskText", "bounds", "cut", "visible", "window"]

HIDDEN = b"[REDACTED]"
CHARACTER_BYTES = 4
OVERLAP_LIMIT_BYTES = 32_768


@dataclass(frozen=True)
class TaskText:
    """A part of one stream of a task.

    `next_offset` is where to read on; `size` how many bytes there are so far. `skipped` bytes between the offset that
    was asked for and this text are no longer kept; `truncated` says that such bytes are anywhere in the stream.
    """

    text: str
    next_offset: int
    size: int
    truncated: bool = False
    skipped: int = 0
    replaced: bool = False


@dataclass(frozen=True)
class Span:
    """Bytes of a stream as the agent sent them, and whether more may follow after `size`."""

    data: bytes
    offset: int
    size: int
    truncated: bool
    open_end: bool

    def misses(self, offset: int) -> bool:
        """Whether it ends, at a gap in what is kept, before the offset that its window was made for."""
        return self.offset + len(self.data) <= offset < self.size


def window(offset: int, limit: int, hide: Sequence[bytes]) -> tuple[int, int]:
    """The offset and limit to ask for, so that `cut` can tell what lies on the borders."""
    overlap = min(max(map(len, hide), default=1) - 1, OVERLAP_LIMIT_BYTES)
    first = max(0, offset - overlap)
    return first, offset - first + limit + max(overlap, CHARACTER_BYTES)


def cut(span: Span, offset: int, limit: int, hide: Sequence[bytes]) -> TaskText:
    """The text from `offset` on, at most `limit` bytes of the stream."""
    begin, end = bounds(span, offset, limit, hide)
    shown = visible(span, begin, end, hide)
    text = shown.decode("utf-8", "replace")
    return TaskText(
        text=text,
        next_offset=end,
        size=span.size,
        truncated=span.truncated,
        skipped=max(0, begin - offset),
        replaced=text.count("\ufffd") > shown.count(b"\xef\xbf\xbd"),
    )


def bounds(span: Span, offset: int, limit: int, hide: Sequence[bytes]) -> tuple[int, int]:
    """Where the text from `offset` on begins and ends: between characters, and before what may become a value."""
    begin = min(max(offset, span.offset), span.size)
    available = span.offset + len(span.data)
    end = max(begin, min(begin + limit, available))
    more = available < span.size or span.open_end
    end = _before_secret(span, begin, end, hide) if more and end == available else end
    return begin, _whole_characters(span, begin, end, at_end=end == span.size and not span.open_end)


def _before_secret(span: Span, begin: int, end: int, hide: Sequence[bytes]) -> int:
    """An end before what may become one of the values when more arrives."""
    data = span.data[: end - span.offset]
    for start in range(max(begin - span.offset, len(data) - max(map(len, hide), default=1) + 1), len(data)):
        if any(len(data) - start < len(value) and data.startswith(value[: len(data) - start], start) for value in hide):
            return span.offset + start
    return end


def _whole_characters(span: Span, begin: int, end: int, *, at_end: bool) -> int:
    """An end that splits no character: before the last one, or after it where nothing would be left."""
    if at_end or end == begin:
        return end
    data = span.data[begin - span.offset : end - span.offset]
    for back in range(1, min(CHARACTER_BYTES, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if needed <= back:
                return end
            if back < len(data):
                return end - back
            whole = begin + needed
            return whole if whole <= span.offset + len(span.data) else begin if span.open_end else end
    return end


def visible(span: Span, begin: int, end: int, hide: Sequence[bytes]) -> bytes:
    """The bytes between two offsets, each value replaced once, on the page where it begins."""
    found = sorted(
        (place, place + len(value)) for value in hide for place in _places(span.data, value) if len(value) > 0
    )
    shown = bytearray()
    position, last = begin - span.offset, end - span.offset
    for start, stop in found:
        if stop <= position or start >= last:
            continue
        if start >= position:
            shown += span.data[position:start] + HIDDEN
        position = min(max(position, stop), last)
    return bytes(shown + span.data[position:last])


def _places(data: bytes, value: bytes) -> list[int]:
    places: list[int] = []
    place = data.find(value)
    while place >= 0:
        places.append(place)
        place = data.find(value, place + 1)
    return places
