"""An agent that answers what a test says, for what the real one never does: silence, nonsense, sudden death."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import MISSING, SecretStr

from cloche_contract.errors import SandboxNotFound
from cloche_contract.lifecycle import AgentEndpoint, SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    DiffRequest,
    DiffResult,
    GetRequest,
    InspectRequest,
    InspectResult,
    KillRequest,
    ListRequest,
    ListResult,
    LogsRequest,
    LogsResult,
    NetworkRules,
    PauseRequest,
    ProbeReport,
    ProviderOptions,
    PruneRequest,
    PruneResult,
    ResumeRequest,
    SetTimeoutRequest,
    UpdateNetworkRequest,
)
from cloche_contract.wire import connect
from cloche_sdk import Doors, load_settings

TOKEN = "token-of-the-stub"


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Peer:
    """The client's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> bytes:
        """Whatever comes next.

        Raises:
            ConnectionError: the client has left.
        """
        data = await self._reader.read(65_536)
        if not data:
            raise ConnectionResetError
        return data

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def cut(self) -> None:
        """Close the connection, whatever was promised."""
        self._writer.close()


Answer = Callable[[Peer, Request], Awaitable[None]]


@dataclass
class StubAgent:
    """Records requests; `answer` writes the response."""

    socket_path: str
    answer: Answer
    requests: list[Request] = field(default_factory=list[Request])
    connections: int = 0
    gone: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        peer = Peer(reader, writer)
        buffer = b""
        try:
            while True:
                request, buffer = await _read_request(peer, buffer)
                self.requests.append(request)
                await self.answer(peer, request)
        except (ConnectionError, asyncio.CancelledError):
            self.gone += 1
        finally:
            peer.cut()


async def _read_request(stream: Peer, buffer: bytes) -> tuple[Request, bytes]:
    while b"\r\n\r\n" not in buffer:
        buffer += await stream.receive()
    head, _, rest = buffer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    size = int(headers.get("content-length", 0))
    while len(rest) < size:
        rest += await stream.receive()
    return Request(method, target, headers, rest[:size]), rest[size:]


async def send_json(stream: Peer, status: int, body: object) -> None:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    await stream.send(head.encode() + content)


async def begin_stream(stream: Peer) -> None:
    await stream.send(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/connect+json\r\ntransfer-encoding: chunked\r\n\r\n"
    )


async def send_chunk(stream: Peer, data: bytes) -> None:
    await stream.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def send_event(stream: Peer, event: Mapping[str, Any]) -> None:
    await send_chunk(stream, connect.encode_message({"event": event}))


async def end_stream(stream: Peer) -> None:
    await send_chunk(stream, connect.encode_message({}, end=True))
    await stream.send(b"0\r\n\r\n")


class StubProvider:
    """One sandbox `sb1`, whose agent is the stub; `alive` tells what the platform knows."""

    id = "stub"

    def __init__(self, socket_path: str | None, base_url: str, *, renew_on_request: bool) -> None:
        self.alive = True
        self.gone_after: int | None = None
        self.asked: list[str] = []
        self.on_renewed: Callable[[], None] | None = None
        self._record = SandboxRecord(
            sandbox_id="sb1",
            template="base",
            status="running",
            agent=AgentEndpoint(
                base_url=base_url,
                socket_path=socket_path,
                headers={"E2b-Sandbox-Id": "sb1"},
                access_token=SecretStr(TOKEN),
                version="1",
                renew_on_request=renew_on_request,
            ),
        )

    async def create(self, request: CreateRequest) -> SandboxRecord:
        self.asked.append("create")
        return self._record

    async def get(self, request: GetRequest) -> SandboxRecord:
        self.asked.append("get")
        if not self.alive or (self.gone_after is not None and self.asked.count("get") > self.gone_after):
            raise SandboxNotFound
        return self._record

    async def list(self, request: ListRequest) -> ListResult:
        return ListResult(sandboxes=[self._record])

    async def set_timeout(self, request: SetTimeoutRequest) -> None:
        self.asked.append("set_timeout")
        if self.on_renewed is not None:
            self.on_renewed()

    def label(self, labels: dict[str, str]) -> None:
        """What the platform says that its maker attached."""
        self._record = self._record.model_copy(update={"user_metadata": labels})

    async def kill(self, request: KillRequest) -> None:
        self.asked.append("kill")

    async def connect(self, request: ConnectRequest) -> SandboxRecord:
        self.asked.append("connect")
        return self._record

    async def inspect(self, request: InspectRequest) -> InspectResult:
        raise SandboxNotFound

    async def diff(self, request: DiffRequest) -> DiffResult:
        raise SandboxNotFound

    async def logs(self, request: LogsRequest) -> LogsResult:
        raise SandboxNotFound

    async def pause(self, request: PauseRequest) -> None:
        raise SandboxNotFound

    async def resume(self, request: ResumeRequest) -> SandboxRecord:
        raise SandboxNotFound

    async def prune(self, request: PruneRequest) -> PruneResult:
        raise SandboxNotFound

    async def update_network(self, request: UpdateNetworkRequest) -> NetworkRules:
        self.asked.append("update_network")
        return NetworkRules(rules=[] if request.allow is MISSING else request.allow)

    async def probe(self) -> ProbeReport:
        return ProbeReport(provider=self.id, usable=True, checks=[], capabilities=[], limits=[])

    async def close(self) -> None:
        return None


@dataclass
class Stub:
    """The stub agent, its provider, and the doors that lead to both."""

    agent: StubAgent
    provider: StubProvider
    doors: Doors


@asynccontextmanager
async def stub(
    folder: Path,
    answer: Answer,
    *,
    renew_on_request: bool = True,
    http_timeout: str = "30",
    over_tcp: bool = False,
) -> AsyncGenerator[Stub]:
    """Serve `answer` on a unix socket, or behind a path of a TCP port, while the block runs."""
    socket_path = str(folder / "agent.sock")
    agent = StubAgent(socket_path, answer)
    # asyncio's own server: the listener of anyio for unix sockets loses a race when it is cancelled.
    if over_tcp:
        server = await asyncio.start_server(agent.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        provider = StubProvider(None, f"http://127.0.0.1:{port}/prefix/", renew_on_request=renew_on_request)
    else:
        server = await asyncio.start_unix_server(agent.serve, socket_path)
        provider = StubProvider(socket_path, "http://agent", renew_on_request=renew_on_request)

    @asynccontextmanager
    async def open_provider(options: ProviderOptions) -> AsyncGenerator[StubProvider]:
        yield provider

    doors = Doors(
        settings=load_settings({}).override(provider="stub", http_timeout=http_timeout),
        environ={},
        providers=lambda: frozenset({"stub"}),
        load=lambda name: open_provider,
    )
    try:
        yield Stub(agent, provider, doors)
    finally:
        server.close()
