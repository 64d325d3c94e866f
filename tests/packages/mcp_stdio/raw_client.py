"""A client that reads the server's stdout as it is: every line must be a JSON-RPC frame."""

import json
import math
import os
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import anyio.abc

Era = Literal["legacy", "modern"]
ERAS: tuple[Era, ...] = ("legacy", "modern")
Frame = dict[str, Any]

_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}


class RawClient:
    """One server process and what it wrote."""

    def __init__(self, process: anyio.abc.Process, era: Era) -> None:
        self.process = process
        self.era = era
        self.frames: list[Frame] = []
        self.stderr = b""
        self.stdout_ended = anyio.Event()
        self._arrived = anyio.Event()
        self._next_id = 0

    async def start(self) -> None:
        if self.era == "legacy":
            answer = await self.request(
                "initialize",
                {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
            )
            assert answer["result"]["protocolVersion"] == "2025-11-25"
            await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def send(self, message: Mapping[str, Any]) -> None:
        await self.send_bytes(json.dumps(message).encode() + b"\n")

    async def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(data)

    async def post(self, method: str, params: Mapping[str, Any] | None = None, meta: Mapping[str, Any] = {}) -> int:
        """Send a request and return its id without waiting."""
        self._next_id += 1
        whole = dict(params or {})
        envelope = {**(_ENVELOPE if self.era == "modern" else {}), **meta}
        if envelope:
            whole["_meta"] = envelope
        await self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": whole})
        return self._next_id

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, meta: Mapping[str, Any] = {}
    ) -> Frame:
        return await self.answer(await self.post(method, params, meta))

    async def call(self, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] = {}) -> Frame:
        """Call a tool and return the result, which must not be a protocol error."""
        answer = await self.request("tools/call", {"name": tool, "arguments": arguments}, meta)
        assert "result" in answer, answer
        return answer["result"]

    async def post_call(self, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] = {}) -> int:
        return await self.post("tools/call", {"name": tool, "arguments": arguments}, meta)

    async def answer(self, request_id: int | str | None) -> Frame:
        return await self.find(lambda frame: "method" not in frame and frame.get("id") == request_id)

    async def find(self, wanted: Callable[[Frame], bool]) -> Frame:
        """Wait for the first frame that the condition accepts."""
        while True:
            for frame in self.frames:
                if wanted(frame):
                    return frame
            assert not self.stdout_ended.is_set(), f"stdout ended; stderr: {self.stderr.decode(errors='replace')}"
            await self._arrived.wait()

    async def close_stdin(self) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def pump_stdout(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        async for chunk in self.process.stdout:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                frame = json.loads(line)
                assert frame["jsonrpc"] == "2.0", line
                self.frames.append(frame)
            arrived, self._arrived = self._arrived, anyio.Event()
            arrived.set()
        assert rest == b"", f"stdout ended inside a line: {rest!r}"
        self.stdout_ended.set()
        self._arrived.set()

    async def pump_stderr(self) -> None:
        assert self.process.stderr is not None
        async for chunk in self.process.stderr:
            self.stderr += chunk


@asynccontextmanager
async def raw_client(
    command: Sequence[str], environ: Mapping[str, str], era: Era = "legacy", within_s: float = 60
) -> AsyncGenerator[RawClient]:
    """Start the server, handshake where the era has one, and make sure that it is gone afterwards."""
    with anyio.fail_after(within_s):
        process = await anyio.open_process(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(environ)
        )
        client = RawClient(process, era)
        try:
            async with anyio.create_task_group() as pumps:
                pumps.start_soon(client.pump_stdout)
                pumps.start_soon(client.pump_stderr)
                await client.start()
                yield client
                await client.close_stdin()
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
            with anyio.CancelScope(shield=True, deadline=math.inf):
                await process.aclose()


def clean_environ(**settings: str) -> dict[str, str]:
    """The least that a server needs, so that no setting of the machine decides a test."""
    return {"PATH": os.environ["PATH"], "HOME": settings.pop("HOME", "/nonexistent"), **settings}
