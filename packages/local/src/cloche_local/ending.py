"""End a sandbox: by asking its agent, and where that does not answer by killing its keeper.

By a descriptor of the process, never by a number that may be reused.
"""

import os
import signal
from contextlib import suppress

import anyio

from cloche_contract.errors import ProviderTimeout, SandboxIncompatible
from cloche_local import agent_call, journal
from cloche_local.description import find
from cloche_local.paths import Paths, SocketFolder
from cloche_local.state import Record, StateFolder, read_start_time, remove_left

_WAIT_S = 3.0
_AGENT_TIMEOUT_S = 5.0


async def end_sandbox(state: StateFolder, sockets: SocketFolder, paths: Paths, sandbox_id: str) -> None:
    """Destroy a sandbox; returns when nothing of it runs. Safe to repeat.

    Raises:
        SandboxNotFound: no live sandbox of this user has the id.
        SandboxIncompatible: its record cannot be read, and its agent does not answer.
        ProviderTimeout: it did not end.
    """
    try:
        record = find(state, sandbox_id)
    except SandboxIncompatible as refusal:
        # Every version so far keeps its socket here and takes this one request.
        if not await _ask_to_end(state, sandbox_id, sockets.address(paths.runtime, sandbox_id)):
            raise refusal from None
        remove_left(state.folder(sandbox_id), f"{paths.runtime}/{sandbox_id}")
        return
    if not await _ask_to_end(state, sandbox_id, sockets.address(record.runtime_folder, record.socket_name)):
        if not await end_keeper(record):
            raise ProviderTimeout
        journal.add_end(journal.path_of(state.path, sandbox_id), "killed")
    # The zygote would do it too, but it may end with us first.
    remove_left(state.folder(sandbox_id), record.socket_path)


async def _ask_to_end(state: StateFolder, sandbox_id: str, socket_path: str) -> bool:
    try:
        token = state.read_token(sandbox_id)
        await agent_call.kill(socket_path, token, timeout_s=_AGENT_TIMEOUT_S)
    except FileNotFoundError:
        # It ended while we looked.
        return not state.is_alive(sandbox_id)
    except (OSError, agent_call.AgentSilent):
        return False
    return True


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
