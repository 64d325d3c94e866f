"""The Python library `mcp`."""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from contextlib import asynccontextmanager

import httpx2
from common import Target, run
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent


class Session:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(self, tool: str, arguments: dict[str, str]) -> str:
        (text,) = (await self._client.call_tool(tool, dict(arguments))).content
        assert isinstance(text, TextContent)
        return text.text


@asynccontextmanager
async def connect(target: Target):
    if target.command:
        parameters = StdioServerParameters(command=target.command[0], args=target.command[1:], env=target.environ)
        async with Client(stdio_client(parameters)) as client:
            yield Session(client)
        return
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {target.token}"}) as http,
        Client(streamable_http_client(target.url, http_client=http)) as client,
    ):
        yield Session(client)


run(connect)
