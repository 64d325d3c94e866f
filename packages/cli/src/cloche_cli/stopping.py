"""`abx mcp stop`: end servers in order, and know that they have ended."""

import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final

from cloche_cli.exit_status import OTHER
from cloche_cli.invocation import current
from cloche_cli.running_servers import RunningServer, is_running, notes_folder, running_servers
from cloche_cli.usage import Refused
from cloche_sdk import load_settings

WITHIN_S: Final = 10.0
"""A server has 5 s to destroy its sandboxes."""


def stop_servers(pids: Sequence[int], *, every: bool) -> int:
    """Send SIGTERM to servers and wait for their end.

    Raises:
        Refused: several run and none was named, or a process is no server of ours.
    """
    invocation = current()
    running = running_servers(notes_folder(os.environ, load_settings().text("mcp_runtime_dir")))
    chosen = _chosen(running, pids, every=every)
    stopped = [server for server in chosen if _stop(server)]
    left = [server.pid for server in chosen if server not in stopped]
    if invocation.json:
        invocation.emit({"stopped": [server.pid for server in stopped], "still_running": left})
    elif not chosen:
        invocation.write("No server runs.\n")
    else:
        invocation.write("".join(f"stopped {server.pid} ({_shown(server)})\n" for server in stopped))
        for pid in left:
            invocation.note(
                f"error: {pid} still runs after {WITHIN_S:.0f} s\nfix: look at its log; `kill -9 {pid}` ends it hard"
            )
    return OTHER if left else 0


def _chosen(running: Sequence[RunningServer], pids: Sequence[int], *, every: bool) -> list[RunningServer]:
    if every:
        return list(running)
    if pids:
        known = {server.pid: server for server in running}
        if any(pid not in known for pid in pids):
            raise Refused(
                "not_found",
                "must be the process of a server that runs.",
                field="PID",
                fix="Run `abx mcp status` to see which run.",
            )
        return [known[pid] for pid in dict.fromkeys(pids)]
    if len(running) > 1:
        raise Refused(
            "required",
            f"is missing: {len(running)} servers run.",
            field="PID",
            fix="Run `abx mcp status` to see them, then name one, or all with --all.",
        )
    return list(running)


def _stop(server: RunningServer) -> bool:
    """Whether the server has ended."""
    if sys.platform.startswith("linux"):
        return _stop_by_handle(server)
    if is_running(server):
        os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + WITHIN_S
    while is_running(server) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(server)


def _stop_by_handle(server: RunningServer) -> bool:
    """With a pidfd the signal reaches this process or none: see pidfd_open(2)."""
    try:
        handle = os.pidfd_open(server.pid)
    except ProcessLookupError:
        return True
    try:
        if not is_running(server):  # looked at again, now that the handle holds the process
            return True
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        ended, _, _ = select.select([handle], [], [], WITHIN_S)
        return bool(ended)
    except ProcessLookupError:
        return True
    finally:
        os.close(handle)


def _shown(server: RunningServer) -> str:
    return server.url or server.transport
