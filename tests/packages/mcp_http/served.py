"""The application behind a real uvicorn in this process, and clients that talk to it over real HTTP."""

import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

import anyio
import httpx

from cloche_mcp_http import create_mcp_app
from cloche_mcp_http.server import HttpServer, bind

SCRIPTED = {"ABX_PROVIDER": "scripted", "ABX_AUDIT_FILE": "off"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


class Listening(Protocol):
    """A server that can be reached."""

    @property
    def url(self) -> str: ...


@dataclass(frozen=True)
class Served:
    """A server that listens."""

    port: int
    server: HttpServer | None
    """None where it runs in another process."""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"


@asynccontextmanager
async def served(**arguments: Any) -> AsyncGenerator[Served]:
    """Serve `create_mcp_app(**arguments)` until the block ends; then every session has ended too."""
    arguments.setdefault("environ", SCRIPTED)
    app = create_mcp_app(**arguments)
    listener: socket.socket = bind("127.0.0.1", 0, guarded=True)
    server = HttpServer(app)
    with anyio.fail_after(60), listener:
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                await server.serve(sockets=[listener])

            tasks.start_soon(serve)
            try:
                yield Served(listener.getsockname()[1], server)
            finally:
                server.end()


class Raw:
    """Sends requests as they are. One object is one client; `session_id` is what it was told."""

    def __init__(self, http: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> None:
        self.http = http
        self.url = url
        self.headers = dict(headers)
        self.session_id: str | None = None
        self._next_id = 0

    async def post(self, message: object, **headers: str) -> httpx.Response:
        """Post one message; header names are written with underscores."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        sent = {**HEADERS, **self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.session_id is not None:
            sent.setdefault("Mcp-Session-Id", self.session_id)
        return await self.http.post(self.url, content=body, headers=sent)

    async def hello(self) -> None:
        answer = await self.post(HELLO)
        assert answer.status_code == 200, answer.text
        self.session_id = answer.headers["mcp-session-id"]
        done = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (done.status_code, done.content) == (202, b"")

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self._next_id += 1
        return {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": dict(params or {})}

    def calling(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": dict(arguments or {})})

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool and return its result, whether it is an error or not."""
        return result_of(await self.post(self.calling(tool, arguments)))

    async def value(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool that must succeed."""
        result = await self.call(tool, arguments)
        assert not result["isError"], result
        return result["structuredContent"]

    async def error(self, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Call a tool that must fail, and return the code of its error."""
        result = await self.call(tool, arguments)
        assert result["isError"], result
        return json.loads(result["content"][0]["text"])["code"]

    async def bye(self) -> httpx.Response:
        assert self.session_id is not None
        return await self.http.delete(self.url, headers={**self.headers, "Mcp-Session-Id": self.session_id})


class Modern(Raw):
    """A client of 2026-07-28: every request carries everything."""

    async def post(self, message: object, **headers: str) -> httpx.Response:
        if isinstance(message, dict):
            message = cast("dict[str, Any]", message)
            sent = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": message["method"]}
            if message["method"] == "tools/call":
                sent["Mcp_Name"] = message["params"]["name"]
            headers = {**sent, **headers}
        return await super().post(message, **headers)

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return super().request(method, {**(params or {}), "_meta": META})


def message_of(answer: httpx.Response) -> dict[str, Any]:
    """The JSON-RPC message of an answer, as JSON or as the last event of a stream."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        return json.loads(data[-1])
    return answer.json()


def result_of(answer: httpx.Response) -> dict[str, Any]:
    message = message_of(answer)
    assert "result" in message, message
    return message["result"]


@asynccontextmanager
async def modern(server: Listening, token: str | None = None) -> AsyncGenerator[Modern]:
    """A client of the era without sessions that shows what is on the wire."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        yield Modern(http, server.url, headers)


@asynccontextmanager
async def raw(server: Listening, token: str | None = None, *, greet: bool = True) -> AsyncGenerator[Raw]:
    """A client of the handshake era that shows what is on the wire."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
        client = Raw(http, server.url, headers)
        if greet:
            await client.hello()
        yield client
