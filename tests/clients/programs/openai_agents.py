"""OpenAI's library for agents, without a model: the servers that an agent would be given."""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from contextlib import asynccontextmanager

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from common import Target, run


class Session:
    def __init__(self, server) -> None:
        self._server = server

    async def tools(self) -> list[str]:
        tools = await self._server.list_tools()
        for tool in tools:  # what the model would be told of each
            assert MCPUtil.to_function_tool(tool, self._server, convert_schemas_to_strict=False).params_json_schema
        return [tool.name for tool in tools]

    async def call(self, tool: str, arguments: dict[str, str]) -> str:
        return (await self._server.call_tool(tool, dict(arguments))).content[0].text


@asynccontextmanager
async def connect(target: Target):
    if target.command:
        server = MCPServerStdio(
            {"command": target.command[0], "args": target.command[1:], "env": target.environ},
            client_session_timeout_seconds=60,
        )
    else:
        server = MCPServerStreamableHttp(
            {"url": target.url, "headers": {"Authorization": f"Bearer {target.token}"}},
            client_session_timeout_seconds=60,
        )
    async with server:
        yield Session(server)


run(connect)
