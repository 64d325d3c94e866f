"""`abx mcp start`: hand this process to the stdio server."""

from typing import TYPE_CHECKING, Final

from cloche_mcp_stdio import reserve
from cloche_mcp_stdio import serve as serve_toolset

if TYPE_CHECKING:
    from cloche_contract.registry import ToolFilter

DEFAULT_TEMPLATE: Final = "code-interpreter-v1"
"""Template of an agent's sandboxes where no setting names one. Source: seed 001."""


def serve(tools: "ToolFilter | None" = None) -> int:
    """Serve the sandbox tools, or those that are given, until the client is gone."""
    reserve()  # before anything else is imported: what an import prints must not reach the client
    return serve_toolset("sandbox", template=_template(), tools=tools)


def _template() -> str | None:
    from cloche_contract.errors import ConfigurationInvalid
    from cloche_sdk import load_settings

    try:
        return load_settings().text("default_template") or DEFAULT_TEMPLATE
    except ConfigurationInvalid:
        return None  # the tools read the same settings and tell the client
