"""The yardstick for the HTTP server: the `mcp` library's own application with a tool that does nothing, on uvicorn."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server

from tests.benchmarks.bare_server import call_tool, list_tools


def main() -> None:
    server: Server[Any] = Server("bare", version="0", on_list_tools=list_tools, on_call_tool=call_tool)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    sys.stderr.write(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    config = uvicorn.Config(server.streamable_http_app(), log_config=None, access_log=False, ws="none", http="h11")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
