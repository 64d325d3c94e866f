"""End a keeper that does not answer: by a descriptor of the process, never by a number that may be reused."""

import os
import signal
from contextlib import suppress

import anyio

from cloche_local.keeper import read_start_time
from cloche_local.state import Record

_WAIT_S = 3.0


async def end_keeper(record: Record) -> bool:
    """Kill the keeper of `record` and with it everything inside; True when all of it is gone."""
    keeper_fd = _open_process(record.keeper_pid)
    if keeper_fd is None:
        return True
    init_fd = _open_process(record.init_pid)
    try:
        # Checked after the descriptor is open: from here on it names this process and no other.
        if not _is_same(record.keeper_pid, record.keeper_start):
            return True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(keeper_fd, signal.SIGKILL)
        with anyio.move_on_after(_WAIT_S):
            await anyio.wait_readable(keeper_fd)
            if init_fd is not None:
                await anyio.wait_readable(init_fd)
            return True
        return False
    finally:
        os.close(keeper_fd)
        if init_fd is not None:
            os.close(init_fd)


def _open_process(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _is_same(pid: int, start: int) -> bool:
    try:
        return read_start_time(pid) == start
    except OSError:
        return False
