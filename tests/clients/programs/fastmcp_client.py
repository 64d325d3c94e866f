"""The client of fastmcp, and what it makes of a URL with a header."""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from contextlib import asynccontextmanager

from common import Target, run
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


class Session:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def call(self, tool: str, arguments: dict[str, str]) -> str:
        return (await self._client.call_tool(tool, dict(arguments), raise_on_error=False)).content[0].text


@asynccontextmanager
async def connect(target: Target):
    if target.command:
        transport = StdioTransport(target.command[0], target.command[1:], env=target.environ, keep_alive=False)
    else:
        transport = StreamableHttpTransport(target.url, headers={"Authorization": f"Bearer {target.token}"})
    async with Client(transport) as client:
        yield Session(client)


run(connect)
