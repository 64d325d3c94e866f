"""Background tasks of a sandbox: shell commands that outlive the call, the session and the client."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import anyio
from pydantic import MISSING

from cloche_contract import agent
from cloche_contract.common import TaskState
from cloche_contract.errors import (
    ClocheError,
    ProviderFailed,
    ProviderTimeout,
    ProviderUnavailable,
    UnsupportedOperation,
)

from .data_plane import AgentChannel, agent_client, answered
from .emulated_tasks import EmulatedTasks
from .link import SandboxLink
from .output_limit import output_limit_bytes
from .requests import build
from .results import Denial
from .task_clean import clean_window, cut_clean
from .task_text import Span, TaskText
from .task_text import cut as plain_cut
from .task_text import window as plain_window
from .unpublished import Unpublished, unpublished

if TYPE_CHECKING:
    from cloche_contract.client import AgentClient

    Operations: TypeAlias = AgentClient | EmulatedTasks

__all__ = ["AsyncTasks", "TaskInfo", "TaskReport"]

logger = logging.getLogger(__name__)

TASK_TIMEOUT_S = 300
TASK_PAGE_BYTES = 16_384
CANCEL_BOUND_S = 2.0

_T = TypeVar("_T")


@dataclass(frozen=True)
class TaskInfo:
    """Where a task is.

    `state` is running, succeeded, failed, cancelled, timed_out or unknown; `exit_code` and `stop_reason` are None
    while it is not known how it ended. `denied` lists what the network allowlist denied while it ran; `unpublished`
    tells of changes of a workspace in layers that were refused.
    """

    task_id: str
    state: TaskState
    exit_code: int | None = None
    stop_reason: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    denied: tuple[Denial, ...] = ()
    unpublished: Unpublished | None = None


@dataclass(frozen=True)
class TaskReport:
    """Where a task is, and a part of each of its streams."""

    info: TaskInfo
    stdout: TaskText
    stderr: TaskText


class AsyncTasks:
    """Starts, reads and cancels background tasks of one sandbox."""

    def __init__(self, link: SandboxLink) -> None:
        self._link = link
        self._channel = AgentChannel(link)

    async def start(
        self,
        command: str,
        *,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout: int = TASK_TIMEOUT_S,
        output_limit: int | None = None,
    ) -> TaskInfo:
        """Start a shell command in the background and return at once.

        It runs until it ends, until it is cancelled, or for `timeout` seconds; everything that it started ends with
        it. Where the answer is lost, the state is `unknown`: the task may run. It is never submitted twice.

        Args:
            output_limit: bytes that it may print in all before it is ended, with stop reason `output_limit`; 0 is no
                limit. Left out: ABX_OUTPUT_LIMIT (256 MiB).

        Raises:
            CwdNotFound, CommandFailedToStart, TaskLimit: it was not started.
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        task_id = self._link.new_id()
        request = build(
            agent.StartTaskRequest,
            task_id=task_id,
            command=command,
            cwd=cwd,
            envs=None if envs is None else dict(envs),
            timeout=timeout,
            output_limit=output_limit_bytes(self._link, output_limit),
        )
        try:
            return _info(await self._asked(lambda tasks: tasks.tasks_start(request)))
        except anyio.get_cancelled_exc_class():
            # Nobody will ever know its id.
            with anyio.CancelScope(shield=True), anyio.move_on_after(CANCEL_BOUND_S):
                await self._abandon(task_id)
            raise
        except (ProviderTimeout, ProviderUnavailable) as error:
            logger.warning("task submission unknown", extra={"error": error.code})
            return TaskInfo(task_id, "unknown")

    async def get(
        self,
        task_id: str,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
        limit: int = TASK_PAGE_BYTES,
        wait: int = 0,
        hide: Sequence[str] = (),
        clean: bool = False,
    ) -> TaskReport:
        """Read the state of a task and a part of its output.

        Args:
            stdout_offset, stderr_offset: where to begin, in bytes; `next_offset` of the report before.
            limit: bytes of each stream at most.
            wait: seconds to wait, at most, for its end or for output beyond the offsets.
            hide: texts that are replaced in the output.
            clean: as a terminal would show it: without colours, and of a progress bar its last state. `limit` then
                counts what is shown, and `next_offset` goes on counting the bytes of the stream.

        Raises:
            TaskNotFound: there is none of that id.
        """
        request = _Read(
            task_id, stdout_offset, stderr_offset, limit, tuple(text.encode() for text in hide if text), clean
        )
        return await self._read(request, wait)

    async def cancel(
        self,
        task_id: str,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
        limit: int = TASK_PAGE_BYTES,
        hide: Sequence[str] = (),
        clean: bool = False,
    ) -> TaskReport:
        """End a task and everything that it started, first by SIGTERM and then by SIGKILL.

        Returns when it is gone; one that has ended is left as it is.

        Raises:
            TaskNotFound: there is none of that id.
        """
        request = _Read(
            task_id, stdout_offset, stderr_offset, limit, tuple(text.encode() for text in hide if text), clean
        )
        which = build(agent.TaskRequest, task_id=task_id, limit=0)
        await self._asked(lambda tasks: tasks.tasks_cancel(which))
        return await self._read(request, 0)

    async def list(self) -> tuple[TaskInfo, ...]:
        """Every task that the sandbox still knows, oldest first."""
        found = await self._asked(lambda tasks: tasks.tasks_list(agent.TaskListRequest()))
        return tuple(map(_info, found.tasks))

    async def _read(self, wanted: _Read, wait: int) -> TaskReport:
        window, cut = (clean_window, cut_clean) if wanted.clean else (plain_window, plain_cut)
        stdout_first, stdout_most = window(wanted.stdout_offset, wanted.limit, wanted.hide)
        stderr_first, stderr_most = window(wanted.stderr_offset, wanted.limit, wanted.hide)
        limit = max(stdout_most, stderr_most)
        if wait and (stdout_first, stderr_first) != (wanted.stdout_offset, wanted.stderr_offset):
            # What the windows show before the offsets is there already, and not what is waited for.
            await self._report(wanted.task_id, wanted.stdout_offset, wanted.stderr_offset, 0, wait)
            wait = 0
        found = await self._report(wanted.task_id, stdout_first, stderr_first, limit, wait)
        stdout, stderr = _spans(found)
        if stdout.misses(wanted.stdout_offset) or stderr.misses(wanted.stderr_offset):
            found = await self._report(wanted.task_id, wanted.stdout_offset, wanted.stderr_offset, stdout_most)
            stdout, stderr = _spans(found)
        return TaskReport(
            _info(found.task),
            cut(stdout, wanted.stdout_offset, wanted.limit, wanted.hide),
            cut(stderr, wanted.stderr_offset, wanted.limit, wanted.hide),
        )

    async def _report(
        self, task_id: str, stdout_offset: int, stderr_offset: int, limit: int, wait: int = 0
    ) -> agent.TaskReport:
        request = build(
            agent.TaskRequest,
            task_id=task_id,
            stdout_offset=stdout_offset,
            stderr_offset=stderr_offset,
            limit=limit,
            wait_ms=wait * 1000 or None,
        )
        return await self._asked(lambda tasks: tasks.tasks_get(request))

    async def _asked(self, call: Callable[[Operations], Awaitable[_T]]) -> _T:
        """Ask the agent; where it has no tasks, do it over its processes, now and from then on."""
        if "tasks" not in self._link.lacks:
            try:
                return await answered(call(agent_client(self._channel)))
            except UnsupportedOperation as error:
                if error.details.get("capability") != "tasks":
                    raise
                self._link.lacks.add("tasks")
        return await answered(call(EmulatedTasks(self._channel)))

    async def _abandon(self, task_id: str) -> None:
        try:
            await self._asked(lambda tasks: tasks.tasks_cancel(agent.TaskRequest(task_id=task_id, limit=0)))
        except ClocheError as error:
            logger.info("task not cancelled", extra={"error": error.code})


@dataclass(frozen=True)
class _Read:
    task_id: str
    stdout_offset: int
    stderr_offset: int
    limit: int
    hide: tuple[bytes, ...]
    clean: bool


def _info(found: agent.TaskSummary) -> TaskInfo:
    denied = () if found.denied is MISSING else found.denied
    published = {} if found.published is MISSING else found.published.model_dump(mode="json", exclude_unset=True)
    return TaskInfo(
        task_id=found.task_id,
        state=found.state,
        exit_code=_given(found.exit_code),
        stop_reason=_given(found.stop_reason),
        started_at=found.started_at,
        finished_at=_given(found.finished_at),
        denied=tuple(Denial(entry.target, _given(entry.rule)) for entry in denied),
        unpublished=unpublished(published),
    )


def _given(value: _T | MISSING) -> _T | None:
    return None if value is MISSING else value


def _spans(found: agent.TaskReport) -> tuple[Span, Span]:
    running = found.task.state == "running"
    return _span(found.stdout, running), _span(found.stderr, running)


def _span(page: agent.TaskPage, running: bool) -> Span:
    try:
        data = base64.b64decode(page.data, validate=True)
    except binascii.Error as error:
        raise ProviderFailed from error
    return Span(data, page.offset, page.size, page.truncated, open_end=running)
