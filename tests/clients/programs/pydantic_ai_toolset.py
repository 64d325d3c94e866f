"""The toolset that a pydantic-ai agent would be given."""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

import json
from contextlib import asynccontextmanager

from common import Target, run
from fastmcp.client.transports import StdioTransport
from pydantic_ai import ModelRetry
from pydantic_ai.mcp import MCPToolset


class Session:
    def __init__(self, toolset: MCPToolset) -> None:
        self._toolset = toolset

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._toolset.list_tools()]

    async def call(self, tool: str, arguments: dict[str, str]) -> str:
        try:
            found = await self._toolset.direct_call_tool(tool, dict(arguments))
        except ModelRetry as error:
            return error.message
        return found if isinstance(found, str) else json.dumps(found)


@asynccontextmanager
async def connect(target: Target):
    if target.command:
        transport = StdioTransport(target.command[0], target.command[1:], env=target.environ, keep_alive=False)
        toolset = MCPToolset(transport)
    else:
        toolset = MCPToolset(target.url, headers={"Authorization": f"Bearer {target.token}"})
    async with toolset:
        yield Session(toolset)


run(connect)
