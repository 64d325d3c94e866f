"""Output as a terminal would show it: progress bars overwritten, colours and other control sequences left out."""

from __future__ import annotations

import re
from dataclasses import replace

from .output import CapturedText, OutputCapture, TextDecoder

__all__ = ["CleanCapture"]

# ECMA-48: control sequences, strings (OSC, DCS, APC, PM, SOS) with their end, and the other escapes.
_SEQUENCE = re.compile(
    r"\x1b(?:\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])|[\]PX^_].*?(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])",
    re.DOTALL,
)
_TOKEN = re.compile(r"[\r\n\b]|\x1b|[^\r\n\b\x1b]+")
_PENDING_CHARS = 4096
_LINE_CHARS = 65_536


class CleanCapture(OutputCapture):
    """Keeps what a terminal would show of a stream in the end; its totals are those of the raw bytes."""

    __slots__ = ("_column", "_decoder", "_line", "_pending", "_raw_bytes")

    def __init__(self) -> None:
        super().__init__()
        self._decoder = TextDecoder()
        self._line = ""
        self._column = 0
        self._pending = ""
        self._raw_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take a piece of the stream."""
        self._raw_bytes += len(data)
        self._show(self._pending + self._decoder.feed(data))

    def result(self) -> CapturedText:
        """What has been kept so far, as text."""
        self._show(self._pending + self._decoder.feed(b"", final=True))
        # The last line may still be overwritten: what is shown now is not taken for good.
        head, tail, total = bytes(self._head), bytes(self._tail), self.total_bytes
        super().feed(self._line.encode())
        found = replace(super().result(), total_bytes=self._raw_bytes)
        self._head[:], self._tail[:], self.total_bytes = head, tail, total
        return found

    def _show(self, text: str) -> None:
        position = 0
        self._pending = ""
        while position < len(text):
            if text[position] == "\x1b":
                found = _SEQUENCE.match(text, position)
                if found is None:
                    if len(text) - position < _PENDING_CHARS:
                        self._pending = text[position:]  # its end is in the next piece
                        return
                    position += 1
                    continue
                self._control(found)
                position = found.end()
                continue
            found = _TOKEN.match(text, position)
            if found is not None:
                self._print(found[0])
                position = found.end()

    def _print(self, token: str) -> None:
        if token == "\n":
            super().feed((self._line + "\n").encode())
            self._line, self._column = "", 0
        elif token == "\r":
            self._column = 0
        elif token == "\b":
            self._column = max(0, self._column - 1)
        else:
            end = self._column + len(token)
            self._line = self._line[: self._column] + token + self._line[end:]
            self._column = end
            if len(self._line) > _LINE_CHARS:
                super().feed(self._line.encode())
                self._line, self._column = "", 0

    def _control(self, sequence: re.Match[str]) -> None:
        """Obey what changes the text of this line; colours, titles and the rest are left out."""
        if sequence["final"] == "K":
            match sequence["parameters"]:
                case "" | "0":
                    self._line = self._line[: self._column]
                case "1":
                    self._line = " " * self._column + self._line[self._column :]
                case _:
                    self._line = ""
                    self._column = 0
        elif sequence["final"] == "G":
            wanted = sequence["parameters"]
            self._column = min(len(self._line), max(0, int(wanted) - 1 if wanted.isdigit() else 0))
