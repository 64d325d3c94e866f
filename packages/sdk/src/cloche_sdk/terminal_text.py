"""Output as a terminal would show it: progress bars overwritten, colours and other control sequences left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from .output import CapturedText, OutputCapture, TextDecoder

__all__ = ["LINE_CHARS", "CleanCapture", "TerminalLines"]

# ECMA-48: control sequences, strings (OSC, DCS, APC, PM, SOS) with their end, and the other escapes.
_SEQUENCE = re.compile(
    r"\x1b(?:\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])|[\]PX^_].*?(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])",
    re.DOTALL,
)
_TOKEN = re.compile(r"[\r\n\b]|\x1b|[^\r\n\b\x1b]+")
_PENDING_CHARS = 4096
LINE_CHARS = 65_536


class TerminalLines:
    """The line that a terminal is at. Lines that are done, which nothing changes any more, go to `on_done`."""

    __slots__ = ("_column", "_on_done", "_pending", "line")

    def __init__(self, on_done: Callable[[str], object]) -> None:
        self.line = ""
        self._column = 0
        self._pending = ""
        self._on_done = on_done

    def feed(self, text: str) -> None:
        """Show what a program printed."""
        text = self._pending + text
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
            self._done(self.line + "\n")
        elif token == "\r":
            self._column = 0
        elif token == "\b":
            self._column = max(0, self._column - 1)
        else:
            end = self._column + len(token)
            self.line = self.line[: self._column] + token + self.line[end:]
            self._column = end
            if len(self.line) > LINE_CHARS:
                self._done(self.line)

    def _done(self, text: str) -> None:
        self._on_done(text)
        self.line, self._column = "", 0

    def _control(self, sequence: re.Match[str]) -> None:
        """Obey what changes the text of this line; colours, titles and the rest are left out."""
        if sequence["final"] == "K":
            match sequence["parameters"]:
                case "" | "0":
                    self.line = self.line[: self._column]
                case "1":
                    self.line = " " * self._column + self.line[self._column :]
                case _:
                    self.line = ""
                    self._column = 0
        elif sequence["final"] == "G":
            wanted = sequence["parameters"]
            self._column = min(len(self.line), max(0, int(wanted) - 1 if wanted.isdigit() else 0))


class CleanCapture(OutputCapture):
    """Keeps what a terminal would show of a stream in the end; its totals are those of the raw bytes."""

    __slots__ = ("_decoder", "_lines", "_raw_bytes")

    def __init__(self) -> None:
        super().__init__()
        self._decoder = TextDecoder()
        self._lines = TerminalLines(self._keep)
        self._raw_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take a piece of the stream."""
        self._raw_bytes += len(data)
        self._lines.feed(self._decoder.feed(data))

    def result(self) -> CapturedText:
        """What has been kept so far, as text."""
        self._lines.feed(self._decoder.feed(b"", final=True))
        # The last line may still be overwritten: what is shown now is not taken for good.
        head, tail, total = bytes(self._head), bytes(self._tail), self.total_bytes
        self._keep(self._lines.line)
        found = replace(super().result(), total_bytes=self._raw_bytes)
        self._head[:], self._tail[:], self.total_bytes = head, tail, total
        return found

    def _keep(self, text: str) -> None:
        super().feed(text.encode())
