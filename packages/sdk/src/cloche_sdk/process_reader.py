"""What a process wrote and how it ended, collected from the events that its agent sends."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from .endings import KILLED_EXIT_CODE, UNKNOWN_EXIT_CODE, denials
from .output import OutputCallback, OutputCapture, TextDecoder
from .results import CommandResult, Denial
from .terminal_text import CleanCapture
from .unpublished import Unpublished, unpublished

__all__ = ["ProcessReader"]

# A terminal has one stream, and a result shows it as the output.
_CAPTURED_AS = {"stdout": "stdout", "stderr": "stderr", "pty": "stdout"}


class ProcessReader:
    """Collects the events of one process."""

    def __init__(
        self,
        on_stdout: OutputCallback | None = None,
        on_stderr: OutputCallback | None = None,
        *,
        on_terminal: Callable[[bytes], object] | None = None,
        clean: bool = False,
    ) -> None:
        self.pid: int | None = None
        self.offset = 0
        make = CleanCapture if clean else OutputCapture
        self._captures = {"stdout": make(), "stderr": make()}
        callbacks = {"stdout": on_stdout, "stderr": on_stderr}
        self._callbacks = {name: (call, TextDecoder()) for name, call in callbacks.items() if call is not None}
        self._on_terminal = on_terminal
        self._end: Mapping[str, Any] | None = None
        self._denied: tuple[Denial, ...] = ()
        self._unpublished: Unpublished | None = None
        self._skipped_bytes = 0
        self._fresh = b""

    @property
    def ended(self) -> bool:
        """Whether the end was told."""
        return self._end is not None

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of the stream."""
        event: Mapping[str, Any] = message.get("event", {})
        output: Mapping[str, str] | None = event.get("data")
        if output is not None:
            for name, encoded in output.items():
                self._take_output(name, base64.b64decode(encoded))
        elif "start" in event:
            self.pid = int(event["start"]["pid"])
            self.offset = int(event["start"].get("offset", 0))
        elif "skipped" in event:
            self.offset += int(event["skipped"]["bytes"])
            self._skipped_bytes += int(event["skipped"]["bytes"])
        elif "denied" in event:
            self._denied = denials(event["denied"].get("targets", ()))
        elif "published" in event:
            self._unpublished = unpublished(event["published"])
        elif "end" in event:
            self._end = event["end"]

    def take_fresh(self) -> bytes:
        """The output of the last message, once."""
        fresh, self._fresh = self._fresh, b""
        return fresh

    def _take_output(self, name: str, data: bytes) -> None:
        captured_as = _CAPTURED_AS.get(name)
        if captured_as is None:
            return
        # Counted before anybody is told: a callback that fails must not have the piece sent again.
        self.offset += len(data)
        self._captures[captured_as].feed(data)
        self._fresh = data
        if name in self._callbacks:
            call, decoder = self._callbacks[name]
            call(decoder.feed(data))
        elif name == "pty" and self._on_terminal is not None:
            self._on_terminal(data)

    def result(self, interrupted_by: str | None = None) -> CommandResult:
        """How it ended; `interrupted_by` where no end was sent."""
        for call, decoder in self._callbacks.values():
            rest = decoder.feed(b"", final=True)
            if rest:
                call(rest)
        end = self._end
        if end is None:
            exit_code = KILLED_EXIT_CODE if interrupted_by == "timeout" else UNKNOWN_EXIT_CODE
            stop_reason = interrupted_by or "sandbox_lost"
        else:
            exit_code, stop_reason = int(end.get("exitCode", 0)), str(end.get("stopReason") or "exit")
        return CommandResult(
            exit_code=exit_code,
            stop_reason=stop_reason,
            stdout_captured=self._captures["stdout"].result(),
            stderr_captured=self._captures["stderr"].result(),
            denied=self._denied,
            skipped_bytes=self._skipped_bytes,
            unpublished=self._unpublished,
        )
