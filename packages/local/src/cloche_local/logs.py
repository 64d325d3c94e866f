"""The log of a sandbox for its owner: read while it lives and a while after, waited on where there is nothing new."""

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.to_thread

from cloche_contract.errors import SandboxNotFound
from cloche_contract.provider import LogEvent, LogsRequest, LogsResult
from cloche_local import journal
from cloche_local import syscalls as sys_
from cloche_local.state import StateFolder, is_sandbox_id

_KNOWN = frozenset({"started", "call", "command_ended", "code_ended", "denied", "ended"})


async def read(state: StateFolder, request: LogsRequest) -> LogsResult:
    """The newest events of one sandbox; waits for one where there is none and the sandbox lives.

    Raises:
        SandboxNotFound: no sandbox of this user had the id, or its log is gone.
    """
    if not is_sandbox_id(request.sandbox_id):
        raise SandboxNotFound
    path = journal.path_of(state.path, request.sandbox_id)
    if request.wait and journal.read(path) is not None:
        # Before the first look: what is written between the look and the wait must wake the wait.
        with suppress(OSError), _Watch(path) as watch, anyio.move_on_after(request.wait):
            while _is_quiet(state, path, request):
                await watch.next()
    return await anyio.to_thread.run_sync(_result, state, path, request)


def _is_quiet(state: StateFolder, path: str, request: LogsRequest) -> bool:
    """Whether nothing is there to tell, and something may yet come."""
    events = journal.read(path)
    if events is None or journal.has_ended(events):
        return False
    return not any(event["seq"] > request.after for event in events[-1:]) and state.is_alive(request.sandbox_id)


def _result(state: StateFolder, path: str, request: LogsRequest) -> LogsResult:
    events = journal.read(path)
    alive = state.is_alive(request.sandbox_id)
    if events is None:
        if not alive:
            raise SandboxNotFound
        events = []
    told = [_told(event) for event in events if event["event"] in _KNOWN and event["seq"] > request.after]
    ended = journal.has_ended(events)
    return LogsResult(sandbox_id=request.sandbox_id, alive=alive and not ended, events=told[-request.limit :])


def _told(event: Mapping[str, Any]) -> LogEvent:
    facts = {name: _text(value) for name, value in event.items() if name not in ("seq", "time", "event")}
    at = datetime.fromtimestamp(float(event["time"]), UTC).isoformat(timespec="milliseconds")
    return LogEvent(number=int(event["seq"]), at=at, event=event["event"], facts=facts)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Watch:
    """Wakes when a file is written. Source: inotify(7)."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> "_Watch":
        """Begin to watch.

        Raises:
            OSError: there is no such file, or no watch left.
        """
        self._fd = sys_.watch_writes(self._path)
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._fd)

    async def next(self) -> None:
        """Wait until it was written since the last time."""
        await anyio.wait_readable(self._fd)
        with suppress(BlockingIOError):
            os.read(self._fd, 65536)
