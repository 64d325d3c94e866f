"""A tool session for the tests of the serving core: its handlers are handed in."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from mcp import Client
from mcp.client._transport import TransportStreams  # the type that `Client` accepts has no public name
from mcp.shared.memory import create_client_server_memory_streams

from cloche_contract.kernel.toolset import ToolSession
from cloche_contract.sandbox import RunCommandOutput
from cloche_contract.serving import LazySession, ToolServer

MODES = ("legacy", "auto")  # auto finds the server in the era 2026-07-28


class Session:
    """Has the handlers that it is given, and nothing else."""

    def __init__(self, **handlers: Callable[..., Any]) -> None:
        self.handlers = type("Handlers", (), {name: staticmethod(handler) for name, handler in handlers.items()})()


def opening(session: ToolSession) -> Callable[[], AbstractAsyncContextManager[ToolSession]]:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[ToolSession]:
        yield session

    return opened


@asynccontextmanager
async def serving(mode: str, options: dict[str, Any] | None = None, **handlers: Any) -> AsyncGenerator[Client]:
    """A client of a server with these handlers, connected by streams of JSON-RPC messages."""
    session = LazySession(opening(Session(**handlers)))
    tools = ToolServer("sandbox", session, **(options or {}))

    @asynccontextmanager
    async def connected() -> AsyncGenerator[TransportStreams]:
        async with create_client_server_memory_streams() as (client_streams, server_streams):
            initialization = tools.server.create_initialization_options()
            owner.start_soon(tools.server.run, *server_streams, initialization)
            yield client_streams

    with anyio.fail_after(10):
        async with anyio.create_task_group() as owner:
            owner.start_soon(session.run)
            async with Client(connected(), mode=mode) as client:
                yield client
            session.begin_close()


def ran(stdout: str = "") -> RunCommandOutput:
    return RunCommandOutput(
        stdout=stdout,
        stderr="",
        exit_code=0,
        stop_reason="exit",
        timed_out=False,
        truncated=False,
        stdout_bytes=len(stdout),
        stderr_bytes=0,
        replaced=False,
    )
