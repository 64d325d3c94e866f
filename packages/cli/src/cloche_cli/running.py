"""Run a command's coroutine so that a signal ends it the way a return would.

The first SIGINT or SIGTERM cancels the command; its `finally` blocks then kill what it
made. Later ones are swallowed while that happens: clean-up is bounded.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable

import anyio

from cloche_cli.exit_status import INTERRUPTED, TERMINATED

_STATUS = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


def run_async(command: Callable[[], Awaitable[int]]) -> int:
    """Return the command's status, or 128 plus the number of the signal that ended it."""
    return anyio.run(_supervise, command, backend="asyncio")


async def _supervise(command: Callable[[], Awaitable[int]]) -> int:
    status = 0
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:

        def cancel(number: signal.Signals) -> None:
            nonlocal status
            if not scope.cancel_called:
                status = _STATUS[number]
                scope.cancel()

        for number in _STATUS:
            loop.add_signal_handler(number, cancel, number)
        status = await command()
    return status
