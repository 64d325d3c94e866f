"""Run a command's coroutine so that a signal ends it the way a return would.

The first SIGINT, SIGTERM or SIGHUP cancels the command; its `finally` blocks then kill what
it made. Later ones are swallowed while that happens: clean-up is bounded.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable

import anyio

from cloche_sdk import load_settings

# Loops of Windows take no signals: there KeyboardInterrupt is what ends a command.
_ENDING = [] if sys.platform == "win32" else [signal.SIGHUP, signal.SIGINT, signal.SIGTERM]


def run_async(command: Callable[[], Awaitable[int]]) -> int:
    """Return the command's status, or 128 plus the number of the signal that ended it.

    Raises:
        ConfigurationInvalid: a setting that every command reads is wrong.
    """
    level = load_settings().text("log_level") or "WARNING"
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
    return anyio.run(_supervise, command, backend="asyncio")


async def _supervise(command: Callable[[], Awaitable[int]]) -> int:
    status = 0
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:

        def cancel(number: int) -> None:
            nonlocal status
            if not scope.cancel_called:
                status = 128 + number
                scope.cancel()

        for number in _ENDING:
            loop.add_signal_handler(number, cancel, number)
        status = await command()
    return status
