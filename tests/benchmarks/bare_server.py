"""The yardstick for the stdio server: the `mcp` library's low-level server with one tool that does nothing."""

from __future__ import annotations

from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NOOP = types.Tool.model_validate(
    {"name": "noop", "description": "Do nothing.", "inputSchema": {"type": "object", "properties": {}}}
)


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[NOOP])


async def call_tool(_context: Any, _params: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text="{}")], structured_content={})


async def main() -> None:
    server: Server[Any] = Server("bare", version="0", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
