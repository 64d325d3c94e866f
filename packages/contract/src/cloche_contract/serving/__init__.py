"""The MCP server over a tool set, shared by every transport. Needs the extra `[mcp]`."""

from cloche_contract.kernel.enabled import ToolFilter, UnusableFilter
from cloche_contract.serving.messages import parse_message, refusal
from cloche_contract.serving.server import MAX_MESSAGE_BYTES, ToolServer
from cloche_contract.serving.session import LazySession, installed_session

__all__ = [
    "MAX_MESSAGE_BYTES",
    "LazySession",
    "ToolFilter",
    "ToolServer",
    "UnusableFilter",
    "installed_session",
    "parse_message",
    "refusal",
]
