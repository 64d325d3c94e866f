"""One client, from its first byte to the end of whatever the session owns."""

from collections.abc import Callable
from typing import Any, Protocol

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from cloche_mcp_stdio.ending import Ending, end_on_signal, end_with_parent
from cloche_mcp_stdio.transport import FrameReader, FrameWriter, OpenRequests
from cloche_mcp_stdio.wire import Wire

# A client that pipes its requests in and closes stdin still gets the answers that are nearly ready.
_LAST_ANSWERS_S = 0.5


class Session(Protocol):
    """What this connection owns; `cloche_contract.serving` has the implementation."""

    async def run(self) -> None:
        """Own the session until it is closed."""
        ...

    def begin_close(self) -> None:
        """Start to destroy what the session owns."""
        ...


async def serve_connection(wire: Wire, server: Server[Any], session: Session, on_answer: Callable[[], None]) -> None:
    """Serve until the client is gone or a signal arrives; return when the session is destroyed."""
    ending = Ending()
    async with anyio.create_task_group() as watchers:
        # First of all: what starts a process below must not hand it signals that are held back.
        await watchers.start(end_on_signal, ending)
        watchers.start_soon(end_with_parent, ending, wire.parent_pid)
        async with anyio.create_task_group() as owner:
            owner.start_soon(session.run)
            with anyio.CancelScope() as talking:
                # Calls that unwind and sandboxes that end share one deadline, so both start at once.
                watchers.start_soon(_at_the_end, ending, session.begin_close, talking.cancel)
                await _talk(wire, server, ending, on_answer)
            ending.begin("the connection is closed")
        watchers.cancel_scope.cancel()


async def _at_the_end(ending: Ending, *actions: Callable[[], None]) -> None:
    await ending.wait()
    for action in actions:
        action()


async def _talk(wire: Wire, server: Server[Any], ending: Ending, on_answer: Callable[[], None]) -> None:
    requests = OpenRequests()
    to_server, server_input = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    from_server, output = anyio.create_memory_object_stream[SessionMessage](0)
    answers = from_server.clone()

    async def read() -> None:
        async with to_server, answers:
            try:
                await FrameReader(wire.read_fd, requests).run(to_server, answers)
            except anyio.BrokenResourceError:  # nobody is left to hand a message to
                return
            with anyio.move_on_after(_LAST_ANSWERS_S):
                await requests.wait_until_answered()
            ending.begin("stdin is closed")

    async def write() -> None:
        async with output:
            await FrameWriter(wire.write_fd, requests, on_answer).run(output)
        ending.begin("stdout is closed")

    async with anyio.create_task_group() as pumps:
        pumps.start_soon(read)
        pumps.start_soon(write)
        await server.run(server_input, from_server, server.create_initialization_options())
        pumps.cancel_scope.cancel()
