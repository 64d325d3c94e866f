"""The answer of /execute: newline-delimited JSON, with output decoded as UTF-8."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from . import limits
from .exchange import Exchange
from .process_rpc import Keepalive

NDJSON_TYPE: Final = "application/x-ndjson"
_KEEPALIVE: Final = b'{"type":"keepalive"}\n'


def encode_line(value: Mapping[str, object]) -> bytes:
    """Return one line."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


class ExecutionSink:
    """Writes the lines of one execution. `held` collects small pieces that leave together."""

    def __init__(self, exchange: Exchange, clock: Callable[[], float]) -> None:
        self._exchange = exchange
        self._clock = clock
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._keepalive = Keepalive(exchange, _KEEPALIVE, limits.NDJSON_KEEPALIVE_S)
        self.byte_counts = {"stdout": 0, "stderr": 0}
        self.replaced = False

    @property
    def paused(self) -> bool:
        """Whether the client reads more slowly than the code writes."""
        return self._exchange.paused

    def line(self, value: Mapping[str, object]) -> None:
        """Send one line."""
        self._keepalive.touch()
        self._exchange.write(encode_line(value))

    def output(self, stream: str, data: bytes) -> None:
        """Send output bytes as text; bytes that are not UTF-8 are replaced, and that is told at the end."""
        self.byte_counts[stream] += len(data)
        self._text(stream, self._decode(stream, data, final=False))

    def end(self, value: Mapping[str, object]) -> None:
        """Send what is left of a broken character and the last line."""
        self.flush()
        self._keepalive.stop()
        counts = {f"{name}_bytes": count for name, count in self.byte_counts.items()}
        last = {"type": "end_of_execution", **value, **counts, "replaced": self.replaced}
        self._exchange.finish(encode_line(last))

    def flush(self) -> None:
        """Send what is left of a broken character."""
        for stream in self._decoders:
            self._text(stream, self._decode(stream, b"", final=True))

    def stop(self) -> None:
        """Send no more keepalives: the client is gone."""
        self._keepalive.stop()

    def _decode(self, stream: str, data: bytes, *, final: bool) -> str:
        text = self._decoders[stream].decode(data, final)
        # A program may also print U+FFFD itself: only then are the bytes asked.
        if not self.replaced and "\ufffd" in text:
            self.replaced = final or text.count("\ufffd") > data.count(b"\xef\xbf\xbd")
        return text

    def _text(self, stream: str, text: str) -> None:
        if text:
            stamp = datetime.fromtimestamp(self._clock(), UTC).isoformat().replace("+00:00", "Z")
            self.line({"type": stream, "text": text, "timestamp": stamp})
