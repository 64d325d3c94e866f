"""Serve one tool set over MCP on this process's stdin and stdout.

Importing this package loads next to nothing: a command that is going to serve
calls `reserve` before it imports anything that might print.
"""

import gc
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cloche_mcp_stdio.wire import Wire, reserve

if TYPE_CHECKING:
    from cloche_contract.kernel.enabled import ToolFilter

__all__ = ["Wire", "reserve", "serve"]


def serve(
    set_name: str,
    *,
    template: str | None = None,
    provider: str | None = None,
    environ: Mapping[str, str] | None = None,
    tools: "ToolFilter | None" = None,
    mirror_text: bool = False,
) -> int:
    """Serve the tool set until the client is gone; return the exit status of the process.

    Args:
        set_name: a tool set that an installed distribution provides, such as `sandbox`.
        template: template of sandboxes that are created without one.
        provider: provider of sandboxes that are created without one.
        environ: settings; default: the environment of the process.
        tools: which tools of the set are offered; default: all.
        mirror_text: show results as text, too, where the set leaves the content empty.

    Returns:
        0 after an orderly end, 1 when cleaning up did not finish or there is no stdout to
        answer on, 2 when the tool set is not installed, or the filter cannot be used.
    """
    wire = reserve()
    # Imports make half a million objects and next to no garbage; `server` resumes collection.
    gc.disable()
    from cloche_contract.kernel import plugins

    if set_name not in plugins.names(plugins.TOOLSETS):
        installed = ", ".join(plugins.names(plugins.TOOLSETS)) or "none"
        sys.stderr.write(f"sandbox-mcp: --set: no such tool set is installed; installed: {installed}\n")
        return 2
    if not wire.can_answer:
        sys.stderr.write("sandbox-mcp: stdout is closed, so no client can be answered\n")
        return 1
    from cloche_mcp_stdio.server import run

    settings = os.environ if environ is None else environ
    return run(wire, set_name, tools, template=template, provider=provider, environ=settings, mirror_text=mirror_text)
