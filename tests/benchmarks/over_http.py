"""The group about requests per second over HTTP, in sessions of the handshake era."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio.to_thread

from tests.benchmarks.http_client import HttpServerProcess, HttpSession, seconds_of
from tests.benchmarks.measure import Contender, Goal, Group
from tests.benchmarks.programs import ABX

SESSIONS = 8
CALLS = 25


@asynccontextmanager
async def http_group() -> AsyncGenerator[Group]:
    """Seconds of a call where eight clients call at once: what they are held against is the library's own server."""
    async with AsyncExitStack() as stack:
        cloche = await _sessions(stack, [str(ABX), "mcp", "start", "--transport", "http", "--port", "0"])
        bare = await _sessions(stack, [sys.executable, "-m", "tests.benchmarks.bare_http_server"])
        for session in cloche:
            await session.connect()
            await session.call("run_command", {"command": "true"})

        def contender(name: str, sessions: Sequence[HttpSession], tool: str, arguments: Mapping[str, str]) -> Contender:
            return Contender(name, partial(seconds_of, sessions, CALLS, tool, arguments))

        noop = contender("bare mcp server, no-op tool", bare, "noop", {})
        cheapest = contender("get_sandbox", cloche, "get_sandbox", {})
        true = contender('run_command("true")', cloche, "run_command", {"command": "true"})
        # Requests per second are the other way round: 0.6 times as many are 1/0.6 times as long.
        goals = [
            Goal(cheapest.name, noop.name, at_most_ratio=1 / 0.6),
            Goal(true.name, noop.name, at_most_ratio=1 / 0.3),
        ]
        yield Group(f"One call over MCP HTTP, {SESSIONS} sessions at once", [noop, cheapest, true], goals)


async def _sessions(stack: AsyncExitStack, command: Sequence[str]) -> list[HttpSession]:
    server = await anyio.to_thread.run_sync(partial(HttpServerProcess, command))
    # The processes end after the sandboxes that are in them; ending waits, so it is left to a thread.
    stack.push_async_callback(partial(anyio.to_thread.run_sync, partial(server.__exit__, None, None, None)))
    sessions = [HttpSession(server.port) for _ in range(SESSIONS)]
    for session in sessions:
        await session.open()
        stack.push_async_callback(session.close)
    return sessions
