"""Compose wire, tool set and session, and run them to the end."""

import gc
import logging
import os
import sys
from collections.abc import Mapping

import anyio

from cloche_contract.kernel.registry import published_set
from cloche_contract.kernel.toolset import ToolSetOptions
from cloche_contract.serving import ToolFilter, ToolServer, UnusableFilter, installed_session
from cloche_mcp_stdio.connection import serve_connection
from cloche_mcp_stdio.log import log_to_stderr
from cloche_mcp_stdio.wire import Wire

logger = logging.getLogger(__name__)


def run(
    wire: Wire,
    set_name: str,
    tools: ToolFilter | None,
    *,
    template: str | None,
    provider: str | None,
    environ: Mapping[str, str],
    mirror_text: bool,
) -> int:
    """Serve one client; return the exit status of the process."""
    log_to_stderr(environ.get("ABX_LOG_LEVEL", ""))
    if tools is not None:
        try:
            tools.apply(published_set(set_name))
        except UnusableFilter as error:
            sys.stderr.write(f"the choice of tools {error}\n")
            return 2
    if os.isatty(wire.read_fd):
        sys.stderr.write("Serving MCP on stdin and stdout, for a client to start. End with Ctrl-D or Ctrl-C.\n")
    options = ToolSetOptions(template=template, provider=provider, environ=environ)
    try:
        anyio.run(_serve, wire, set_name, options, tools or ToolFilter(), mirror_text)
    except Exception:
        logger.exception("the server failed")
        return 1
    return 0


async def _serve(wire: Wire, set_name: str, options: ToolSetOptions, allowed: ToolFilter, mirror_text: bool) -> None:
    session = installed_session(set_name, options)
    tools = ToolServer(set_name, session, tools=allowed, mirror_text=mirror_text)
    settled = False

    def on_answer() -> None:
        nonlocal settled
        tools.on_answer()
        if not settled:
            settled = True
            _resume_collector()

    await serve_connection(wire, tools.server, tools.session, on_answer)


def _resume_collector() -> None:
    """Everything imported until now stays for ever: no collection has to look at it again."""
    gc.freeze()
    gc.enable()
