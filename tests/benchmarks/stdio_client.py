"""The smallest MCP client: one request line out, one response line back. It adds no library of its own to a trial."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

_INITIALIZE: Mapping[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}


class StdioClient:
    """A server process and the conversation with it. Leaving it ends the process by closing its input."""

    def __init__(self, command: Sequence[str]) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._last_id = 0

    def __enter__(self) -> StdioClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send one request and wait for its answer; notifications in between are skipped."""
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._last_id:
                if "result" not in message:
                    raise RuntimeError(f"{method} was refused")
                return message["result"]
        raise RuntimeError(f"the server ended before it answered {method}")

    def initialize(self) -> None:
        self.request("initialize", _INITIALIZE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> float:
        """Call a tool and return the seconds until its successful answer."""
        started = time.perf_counter()
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        seconds = time.perf_counter() - started
        if result.get("isError"):
            raise RuntimeError(f"{tool} failed: {result.get('structuredContent')}")
        return seconds

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
