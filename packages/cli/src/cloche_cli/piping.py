"""What is piped into `abx exec --stdin`, passed on to the command while its output comes back."""

import os
import stat
import sys
from contextlib import suppress
from typing import Final

import anyio

from cloche_contract.errors import ClocheError, InvalidArgument, ProcessNotFound
from cloche_sdk import AsyncCommandHandle, CommandResult, CommandTimeout

_READ_BYTES: Final = 131_072
_KILL_BOUND_S: Final = 5


async def fed_to_the_end(handle: AsyncCommandHandle) -> CommandResult:
    """Pass on stdin of this process until it or the command ends. A command that took too long has a result too.

    Raises:
        ClocheError: the input or the output broke off; the command was killed.
    """
    result: CommandResult | None = None
    failures: list[ClocheError] = []
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, handle, failures, tasks.cancel_scope)
            try:
                result = await handle.wait()
            except CommandTimeout as late:
                result = late.result
            except ClocheError as error:
                failures.append(error)
            tasks.cancel_scope.cancel()
    finally:
        if result is None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_KILL_BOUND_S), suppress(ClocheError):
                await handle.kill()
    if result is None:
        raise failures[0]
    return result


async def _feed(handle: AsyncCommandHandle, failures: list[ClocheError], everything: anyio.CancelScope) -> None:
    fd = sys.stdin.fileno()
    mode = os.fstat(fd).st_mode
    # A file and /dev/null are always ready, and the kernel refuses to wait for them.
    waits = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
    try:
        while data := await _piped(fd, waits=waits):
            await handle.send_stdin(data)
        await handle.close_stdin()
    except (ProcessNotFound, InvalidArgument):
        return  # it wants no more
    except ClocheError as error:
        # A command that got a part of its input must not take it for all of it.
        failures.append(error)
        everything.cancel()


async def _piped(fd: int, *, waits: bool) -> bytes:
    if waits:
        await anyio.wait_readable(fd)
    return os.read(fd, _READ_BYTES)
