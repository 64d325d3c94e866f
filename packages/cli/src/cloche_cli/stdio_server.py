"""`abx mcp start`: hand this process to the stdio server."""

import os
import time
from typing import TYPE_CHECKING, Final

from cloche_cli.running_servers import noted, notes_folder
from cloche_mcp_stdio import reserve
from cloche_mcp_stdio import serve as serve_toolset

if TYPE_CHECKING:
    from cloche_contract.registry import ToolFilter

DEFAULT_TEMPLATE: Final = "code-interpreter-v1"
"""Template of an agent's sandboxes where no setting names one. Source: seed 001."""


def serve(tools: "ToolFilter | None" = None) -> int:
    """Serve the sandbox tools, or those that are given, until the client is gone."""
    reserve()  # before anything else is imported: what an import prints must not reach the client
    template, folder = _settings()
    with noted(folder, "stdio", None, time.time()):
        return serve_toolset("sandbox", template=template, tools=tools)


def _settings() -> tuple[str | None, str]:
    """The template of sandboxes that name none, and where servers are noted."""
    from cloche_contract.errors import ConfigurationInvalid
    from cloche_sdk import load_settings

    try:
        settings = load_settings()
        template = settings.text("default_template") or DEFAULT_TEMPLATE
        return template, notes_folder(os.environ, settings.text("mcp_runtime_dir"))
    except ConfigurationInvalid:
        return None, notes_folder(os.environ, None)  # the tools read the same settings and tell the client
