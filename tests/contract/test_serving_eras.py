"""Which protocol a connection speaks, and what a server of tools only does not speak."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from cloche_contract.serving import LazySession, ToolServer
from tests.contract.serving_session import Session, opening

pytestmark = pytest.mark.anyio

Frame = dict[str, Any]
ENVELOPE: Frame = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wire:
    """The server's answers to frames that a test writes itself."""

    def __init__(self, streams: Any) -> None:
        self._read, self._write = streams

    async def send(self, method: str, params: Frame, request_id: int | None = None) -> None:
        frame: Frame = {"jsonrpc": "2.0", "method": method, "params": params}
        if request_id is not None:
            frame["id"] = request_id
        await self._write.send(SessionMessage(jsonrpc_message_adapter.validate_python(frame)))

    async def receive(self) -> Frame:
        message: JSONRPCMessage = (await self._read.receive()).message
        return message.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def ask(self, method: str, params: Frame, request_id: int = 1) -> Frame:
        await self.send(method, params, request_id)
        answer = await self.receive()
        assert answer["id"] == request_id
        return answer


@asynccontextmanager
async def wire() -> AsyncGenerator[Wire]:
    server = ToolServer("sandbox", LazySession(opening(Session()))).server
    with anyio.fail_after(10):
        async with create_client_server_memory_streams() as (client, ours), anyio.create_task_group() as tasks:
            tasks.start_soon(server.run, *ours, server.create_initialization_options())
            yield Wire(client)
            tasks.cancel_scope.cancel()


def hello(version: str) -> Frame:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ],
)
async def test_initialize_echoes_a_version_that_is_spoken_and_else_offers_one(asked: str, answered: str) -> None:
    """Checklist 295: never an error."""
    async with wire() as connection:
        result = (await connection.ask("initialize", hello(asked)))["result"]
        assert result["protocolVersion"] == answered
        await connection.send("notifications/initialized", {})
        tools = (await connection.ask("tools/list", {}, 2))["result"]["tools"]
        assert [tool["name"] for tool in tools][:2] == ["create_sandbox", "list_sandboxes"]


async def test_notifications_get_no_answer() -> None:
    """Checklist 296."""
    async with wire() as connection:
        await connection.ask("initialize", hello("2025-11-25"))
        for method in ("notifications/initialized", "notifications/cancelled", "notifications/no_such_thing"):
            await connection.send(method, {})
        assert (await connection.ask("ping", {}, 9))["result"] == {}


@pytest.mark.parametrize("method", ["prompts/list", "resources/list", "completion/complete", "no/such/method"])
async def test_a_server_of_tools_only_has_no_other_methods(method: str) -> None:
    """Checklist 330."""
    params = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "x", "value": ""}}
    async with wire() as connection:
        capabilities = (await connection.ask("initialize", hello("2025-11-25")))["result"]["capabilities"]
        assert capabilities == {"tools": {"listChanged": False}}
        assert (await connection.ask(method, params, 2))["error"]["code"] == -32601


async def test_the_era_2026_needs_no_handshake_and_refuses_one() -> None:
    async with wire() as connection:
        found = (await connection.ask("server/discover", {"_meta": ENVELOPE}))["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        listed = (await connection.ask("tools/list", {"_meta": ENVELOPE}, 2))["result"]
        assert (listed["resultType"], listed["cacheScope"]) == ("complete", "public")
        assert listed["ttlMs"] > 0
        assert (await connection.ask("initialize", hello("2025-11-25"), 3))["error"]["code"] == -32022


async def test_a_version_that_nobody_speaks_is_refused_with_those_that_we_speak() -> None:
    unknown: Frame = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    async with wire() as connection:
        error = (await connection.ask("tools/list", {"_meta": unknown}))["error"]
        assert error["code"] == -32022
        assert error["data"]["supported"] == ["2026-07-28"]


@pytest.mark.parametrize("arguments", [[], "x", 3])
async def test_arguments_that_are_no_object_are_invalid_params(arguments: object) -> None:
    async with wire() as connection:
        await connection.ask("initialize", hello("2025-11-25"))
        answer = await connection.ask("tools/call", {"name": "kill_sandbox", "arguments": arguments}, 2)
        assert answer["error"]["code"] == -32602
