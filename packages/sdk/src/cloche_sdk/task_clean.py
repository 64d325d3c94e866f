"""A part of a task's stream as a terminal would show it.

A page may begin anywhere: in a line, in a control sequence, in a line that is drawn over and over. So it is shown
after what led to it, from the beginning of its line on, and what an earlier page showed of that line is left out.
Where the line was drawn again meanwhile, it is shown again, as a line of its own.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from .task_text import CHARACTER_BYTES, HIDDEN, OVERLAP_LIMIT_BYTES, Span, TaskText, bounds, visible
from .terminal_text import LINE_CHARS, TerminalLines

__all__ = ["clean_window", "cut_clean"]

# A progress bar shows less than a hundredth of what it prints: a page takes what has room in it.
READ_AHEAD_BYTES = 524_288


def clean_window(offset: int, limit: int, hide: Sequence[bytes]) -> tuple[int, int]:
    """The offset and limit to ask for, so that `cut_clean` knows the line that `offset` is in."""
    first = max(0, offset - LINE_CHARS)
    return first, offset - first + max(limit, READ_AHEAD_BYTES) + max(CHARACTER_BYTES, _overlap(hide))


def cut_clean(span: Span, offset: int, limit: int, hide: Sequence[bytes]) -> TaskText:
    """What a terminal shows from `offset` on, about `limit` bytes of it; of the stream this may be many more."""
    size = limit
    shown = _shown(span, offset, size, hide)
    while shown.next_offset < span.offset + len(span.data):
        size *= 2
        more = _shown(span, offset, size, hide)
        if len(more.text.encode()) > limit or more.next_offset == shown.next_offset:
            break
        shown = more
    return shown


def _shown(span: Span, offset: int, size: int, hide: Sequence[bytes]) -> TaskText:
    begin, end = bounds(span, offset, size, hide)
    done: list[str] = []
    lines = TerminalLines(done.append)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    line_begin = span.offset + span.data.rfind(b"\n", 0, begin - span.offset) + 1
    lines.feed(decoder.decode(visible(span, line_begin, begin, hide)))
    before = "".join(done) + lines.line
    raw = visible(span, begin, end, hide)
    text = decoder.decode(raw, end == span.size and not span.open_end)
    lines.feed(text)
    after = "".join(done) + lines.line
    new = after[len(before) :] if after.startswith(before) else "\n" + after
    for value in hide:
        # Control sequences between its characters hid it from us.
        new = new.replace(value.decode("utf-8", "replace"), HIDDEN.decode())
    return TaskText(
        text=new,
        next_offset=end,
        size=span.size,
        truncated=span.truncated,
        skipped=max(0, begin - offset),
        replaced=text.count("\ufffd") > raw.count(b"\xef\xbf\xbd"),
    )


def _overlap(hide: Sequence[bytes]) -> int:
    return min(max(map(len, hide), default=0), OVERLAP_LIMIT_BYTES)
