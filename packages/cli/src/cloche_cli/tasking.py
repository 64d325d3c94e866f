"""`abx task`: shell commands that go on in a sandbox when whoever started them is gone."""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Final

from cloche_cli.exit_status import OK, OTHER, TIMEOUT
from cloche_cli.invocation import Invocation, current, write_out
from cloche_cli.running import run_async
from cloche_cli.sizes import ago
from cloche_sdk import AsyncSandbox
from cloche_sdk.shown_tasks import start_note
from cloche_sdk.task_text import TaskText
from cloche_sdk.tasks import TaskInfo, TaskReport

_PAGE_BYTES: Final = 262_144
_WAIT_S: Final = 30


@dataclass(frozen=True)
class StartRequest:
    """What `abx task start` was asked for."""

    sandbox_id: str
    command: str
    timeout_s: int
    cwd: str | None = None
    envs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def start_task(request: StartRequest) -> int:
    """Start a task, and tell its id."""
    invocation = current()
    return run_async(lambda: _start(request, invocation))


def list_tasks(sandbox_id: str) -> int:
    """List the tasks that a sandbox still knows."""
    invocation = current()
    return run_async(lambda: _list(sandbox_id, invocation))


def show_task(sandbox_id: str, task_id: str, *, follow: bool) -> int:
    """Tell what a task printed, and how it ended; following, to its end and with its exit status."""
    invocation = current()
    return run_async(lambda: _show(sandbox_id, task_id, follow, invocation))


def cancel_task(sandbox_id: str, task_id: str) -> int:
    """End a task with everything that it started."""
    invocation = current()
    return run_async(lambda: _cancel(sandbox_id, task_id, invocation))


async def _start(request: StartRequest, invocation: Invocation) -> int:
    async with _connected(request.sandbox_id) as sandbox:
        info = await sandbox.tasks.start(
            request.command, cwd=request.cwd, envs=request.envs or None, timeout=request.timeout_s
        )
        note = start_note(info, request.timeout_s, sandbox.link.remaining_s)
    if invocation.json:
        invocation.emit({"sandbox_id": request.sandbox_id, **asdict(info), "note": note})
    else:
        invocation.write(info.task_id + "\n")
        if note is not None:
            invocation.note(f"{note} `abx sandbox timeout {request.sandbox_id} SECONDS` gives it more.")
    return OK


async def _list(sandbox_id: str, invocation: Invocation) -> int:
    from cloche_cli.tables import print_table

    async with _connected(sandbox_id) as sandbox:
        found = await sandbox.tasks.list()
    if invocation.json:
        invocation.emit({"sandbox_id": sandbox_id, "tasks": [asdict(info) for info in found]})
        return OK
    now = datetime.now(timezone.utc)
    rows = [(info.task_id, _ending(info), ago(info.started_at, now), ago(info.finished_at, now)) for info in found]
    print_table(("TASK", "STATE", "STARTED", "ENDED"), rows, empty="No task was started in this sandbox.")
    return OK


async def _show(sandbox_id: str, task_id: str, follow: bool, invocation: Invocation) -> int:
    shown = _Shown(invocation)
    async with _connected(sandbox_id) as sandbox:
        while True:
            report = await sandbox.tasks.get(
                task_id,
                stdout_offset=shown.stdout_offset,
                stderr_offset=shown.stderr_offset,
                limit=_PAGE_BYTES,
                wait=_WAIT_S if follow else 0,
            )
            more = shown.take(report)
            if not more and (not follow or report.info.state != "running"):
                break
    if invocation.json:
        printed = {"stdout": "".join(shown.stdout), "stderr": "".join(shown.stderr), "skipped": shown.skipped}
        invocation.emit({"sandbox_id": sandbox_id, **asdict(report.info), **printed})
    else:
        invocation.note(_ending(report.info))
    return _status(report.info) if follow else OK


async def _cancel(sandbox_id: str, task_id: str, invocation: Invocation) -> int:
    async with _connected(sandbox_id) as sandbox:
        info = (await sandbox.tasks.cancel(task_id)).info
    if invocation.json:
        invocation.emit({"sandbox_id": sandbox_id, **asdict(info)})
    else:
        invocation.write(f"{_ending(info)}\n")
    return OK


@dataclass
class _Shown:
    """What has been told of a task's streams so far."""

    invocation: Invocation
    stdout_offset: int = 0
    stderr_offset: int = 0
    skipped: int = 0
    stdout: list[str] = field(default_factory=list[str])
    stderr: list[str] = field(default_factory=list[str])

    def take(self, report: TaskReport) -> bool:
        """Tell the next part of both; whether there is more to read at once."""
        before = (self.stdout_offset, self.stderr_offset)
        self._tell(report.stdout, self.stdout, "stdout")
        self._tell(report.stderr, self.stderr, "stderr")
        self.stdout_offset, self.stderr_offset = report.stdout.next_offset, report.stderr.next_offset
        unread = self.stdout_offset < report.stdout.size or self.stderr_offset < report.stderr.size
        return unread and before != (self.stdout_offset, self.stderr_offset)

    def _tell(self, part: TaskText, kept: list[str], name: str) -> None:
        if part.skipped:
            self.skipped += part.skipped
            self.invocation.note(f"({part.skipped} bytes of {name} are no longer kept)")
        if self.invocation.json:
            kept.append(part.text)
        elif name == "stdout":
            write_out(part.text)
        else:
            sys.stderr.write(part.text)
            sys.stderr.flush()


@asynccontextmanager
async def _connected(sandbox_id: str) -> AsyncGenerator[AsyncSandbox]:
    sandbox = await AsyncSandbox.connect(sandbox_id)
    try:
        yield sandbox
    finally:
        await sandbox.close()


def _ending(info: TaskInfo) -> str:
    """The state, and what a person would ask next."""
    if info.state == "failed" and info.stop_reason not in (None, "exit"):
        return f"{info.state} ({info.stop_reason})"
    return f"{info.state} (exit {info.exit_code})" if info.state == "failed" else info.state


def _status(info: TaskInfo) -> int:
    """The exit status for a task that has ended: its own, as `abx exec` gives it."""
    if info.state == "timed_out":
        return TIMEOUT
    return OK if info.state == "succeeded" else info.exit_code or OTHER
