"""An MCP client connected to a tool set in the same process, in either era of the protocol.

Needs the extra `mcp`.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Literal

import anyio
from mcp import Client

from cloche_contract.kernel.toolset import ToolSetOptions
from cloche_contract.serving import ToolServer, installed_session

Era = Literal["handshake", "modern"]
_MODE: Final = {"handshake": "legacy", "modern": "auto"}


@asynccontextmanager
async def connected_client(
    set_name: str = "sandbox", options: ToolSetOptions | None = None, *, era: Era = "modern"
) -> AsyncGenerator[Client]:
    """Connect a client to an installed tool set; leaving the context ends the session.

    Args:
        options: what the session is opened with; give `provider="scripted"` with a plane installed.
        era: `handshake` says initialize first, `modern` is 2026-07-28.
    """
    session = installed_session(set_name, options or ToolSetOptions())
    server = ToolServer(set_name, session)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        try:
            async with Client(server.server, mode=_MODE[era]) as client:
                yield client
        finally:
            session.begin_close()
