"""The smallest MCP client over HTTP: many requests at a time, each on a connection that stays open.

It adds no library of its own to a trial, so that what is measured is the server.
"""

from __future__ import annotations

import asyncio
import json
import re
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
_SAYS_WHERE = re.compile(rb"http://127\.0\.0\.1:(\d+)/mcp")


class HttpServerProcess:
    """A server process that says its URL on standard error. Leaving it ends the process."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert self._process.stderr is not None
        said = b""
        while (found := _SAYS_WHERE.search(said)) is None:
            line = self._process.stderr.readline()
            if not line:
                raise RuntimeError(f"the server did not start: {said.decode(errors='replace')[-200:]}")
            said += line
        self.port = int(found[1])

    def __enter__(self) -> HttpServerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()


class HttpSession:
    """One session of the handshake era, on one connection at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._session = ""
        self._last_id = 0
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self) -> None:
        """Take a fresh connection: servers close one that was idle for some seconds."""
        await self.close()
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def open(self) -> None:
        """Say hello."""
        await self.connect()
        head, body = await self._post(self._request("initialize", _INITIALIZE))
        if b"result" not in body:
            raise RuntimeError("initialize was refused")
        found = re.search(r"(?im)^mcp-session-id: (\S+)\r$", head)
        self._session = f"Mcp-Session-Id: {found[1]}\r\n" if found else ""
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def close(self) -> None:
        """Give the connection back; the session stays."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Call a tool.

        Raises:
            RuntimeError: the answer is not that of a success.
        """
        _, body = await self._post(self._request("tools/call", {"name": tool, "arguments": arguments}))
        message = json.loads(body.rpartition(b"data: ")[2] if b"data: " in body else body)
        if "result" not in message or message["result"].get("isError"):
            raise RuntimeError(f"{tool} failed: {str(message)[:200]}")

    def _request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self._last_id += 1
        return {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}

    async def _post(self, message: Mapping[str, Any]) -> tuple[str, bytes]:
        body = json.dumps(message).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n{self._session}"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        assert self._writer is not None
        self._writer.write(head.encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        return answer, await self._body(answer)

    async def _body(self, head: str) -> bytes:
        lower = head.lower()
        if "transfer-encoding: chunked" in lower:
            found = b""
            while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
                found += await self._reader.readexactly(size)
                await self._reader.readexactly(2)
            await self._reader.readexactly(2)
            return found
        length = re.search(r"content-length: (\d+)", lower)
        return await self._reader.readexactly(int(length[1])) if length else b""


async def seconds_of(sessions: Sequence[HttpSession], each: int, tool: str, arguments: Mapping[str, Any]) -> float:
    """Seconds of one call, where all sessions call one after the other as fast as they can."""

    async def calls(session: HttpSession) -> None:
        for _ in range(each):
            await session.call(tool, arguments)

    for session in sessions:
        await session.connect()
    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for session in sessions:
            tasks.create_task(calls(session))
    return (time.perf_counter() - started) / (len(sessions) * each)
