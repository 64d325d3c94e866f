"""The tools that langchain-mcp-adapters makes for a LangChain agent."""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from contextlib import asynccontextmanager

from common import Target, run
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


class Session:
    def __init__(self, tools) -> None:
        self._tools = {tool.name: tool for tool in tools}

    async def tools(self) -> list[str]:
        return list(self._tools)

    async def call(self, tool: str, arguments: dict[str, str]) -> str:
        found = await self._tools[tool].ainvoke(dict(arguments))
        return found if isinstance(found, str) else found[0]["text"]


@asynccontextmanager
async def connect(target: Target):
    if target.command:
        connection = {
            "transport": "stdio",
            "command": target.command[0],
            "args": target.command[1:],
            "env": target.environ,
        }
    else:
        headers = {"Authorization": f"Bearer {target.token}"}
        connection = {"transport": "streamable_http", "url": target.url, "headers": headers}
    async with MultiServerMCPClient({"cloche": connection}).session("cloche") as session:
        yield Session(await load_mcp_tools(session))


run(connect)
