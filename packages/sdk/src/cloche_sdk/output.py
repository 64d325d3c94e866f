"""Program output, bounded while it is read.

One rule everywhere (D9): of each stream up to 1 MiB is kept, its beginning and its
end; everything is counted; a result that goes to a model shows at most 30,000
characters. Bytes that are not UTF-8 are replaced by U+FFFD and the result says so;
all other bytes come through unchanged.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = [
    "KEPT_BYTES",
    "SHOWN_HEAD_CHARS",
    "SHOWN_TAIL_CHARS",
    "CapturedText",
    "OutputCallback",
    "OutputCapture",
    "TextDecoder",
]

OutputCallback = Callable[[str], object]

KEPT_BYTES = 1_048_576
SHOWN_HEAD_CHARS = 20_000
SHOWN_TAIL_CHARS = 10_000

# "surrogateescape" maps each undecodable byte to one lone surrogate, so text can be cut
# by characters and still be counted in the bytes that the program wrote.
_ESCAPED = re.compile("[\udc80-\udcff]")


def _clean(text: str) -> str:
    return text if text.isascii() else _ESCAPED.sub("\ufffd", text)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


@dataclass(frozen=True)
class CapturedText:
    """What was kept of one stream: its beginning, its end, and how much lies between."""

    head: str
    tail: str
    total_bytes: int
    omitted_bytes: int

    @property
    def truncated(self) -> bool:
        return self.omitted_bytes > 0

    @property
    def replaced(self) -> bool:
        """Whether bytes that are not UTF-8 were replaced in `text`."""
        return any(not part.isascii() and _ESCAPED.search(part) is not None for part in (self.head, self.tail))

    @property
    def text(self) -> str:
        """The kept output, with one line that says how much is left out."""
        if not self.truncated:
            return _clean(self.head + self.tail)
        marker = f"\n[... {self.omitted_bytes} bytes left out ...]\n"
        return _clean(self.head) + marker + _clean(self.tail)

    def clipped(self, head_chars: int = SHOWN_HEAD_CHARS, tail_chars: int = SHOWN_TAIL_CHARS) -> CapturedText:
        """The same output cut to `head_chars` at the beginning and `tail_chars` at the end."""
        if not self.truncated and len(self.head) + len(self.tail) <= head_chars + tail_chars:
            return self
        end = self.tail if self.truncated else self.head + self.tail
        start = self.head if self.truncated else end
        head, tail = start[:head_chars], end[-tail_chars:]
        dropped = start[head_chars:] + end[:-tail_chars] if self.truncated else end[head_chars:-tail_chars]
        return CapturedText(head, tail, self.total_bytes, self.omitted_bytes + _size(dropped))


class OutputCapture:
    """Takes a stream chunk by chunk and never holds more than about `kept_bytes` of it."""

    __slots__ = ("_head", "_head_limit", "_tail", "_tail_limit", "total_bytes")

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._tail_limit = kept_bytes // 3
        self._head_limit = kept_bytes - self._tail_limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0

    def feed(self, data: bytes) -> None:
        """Count `data` and keep the part of it that belongs to the beginning or the end."""
        self.total_bytes += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail += data[-self._tail_limit :]
        # Cut late, at twice the limit: cutting on each chunk would copy the tail each time.
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def result(self) -> CapturedText:
        """What has been kept so far, as text."""
        tail = self._tail[-self._tail_limit :]
        omitted = self.total_bytes - len(self._head) - len(tail)
        if omitted <= 0:
            text = bytes(self._head + tail).decode("utf-8", "surrogateescape")
            return CapturedText(text, "", self.total_bytes, 0)
        # A cut may fall inside a character: drop its rest instead of reporting it as broken.
        head_text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(bytes(self._head), False)
        start = 0
        while start < min(3, len(tail)) and 0x80 <= tail[start] < 0xC0:
            start += 1
        tail_text = bytes(tail[start:]).decode("utf-8", "surrogateescape")
        kept = _size(head_text) + _size(tail_text)
        return CapturedText(head_text, tail_text, self.total_bytes, self.total_bytes - kept)


class TextDecoder:
    """Decodes a stream for a callback, chunk by chunk, without splitting characters."""

    __slots__ = ("_decoder", "replaced")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.replaced = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """The text of `data`, as far as it ends with a whole character."""
        text = self._decoder.decode(data, final)
        clean = _clean(text)
        self.replaced = self.replaced or clean != text
        return clean
