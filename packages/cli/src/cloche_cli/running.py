"""Run a command's coroutine so that a signal ends it the way a return would.

The first SIGINT or SIGTERM cancels the command; its `finally` blocks then kill what it
made. Later ones are swallowed while that happens: clean-up is bounded by the SDK.
"""

import signal
from collections.abc import Awaitable, Callable

import anyio

_STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def run_async(command: Callable[[], Awaitable[int]]) -> int:
    """Return the command's status, or 128 plus the number of the signal that ended it."""
    return anyio.run(_supervise, command)


async def _supervise(command: Callable[[], Awaitable[int]]) -> int:
    status = 1
    with anyio.open_signal_receiver(*_STATUS) as signals:

        async def cancel_on_signal() -> None:
            nonlocal status
            async for number in signals:
                if not scope.cancel_called:
                    status = _STATUS[number]
                    scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_on_signal)
            with anyio.CancelScope() as scope:
                status = await command()
            tasks.cancel_scope.cancel()
    return status
