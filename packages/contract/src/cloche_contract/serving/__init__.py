"""The MCP server over a tool set, shared by every transport. Needs the extra `[mcp]`."""

from cloche_contract.serving.server import ToolServer
from cloche_contract.serving.session import LazySession, installed_session

__all__ = ["LazySession", "ToolServer", "installed_session"]
