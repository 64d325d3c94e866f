"""Background tasks where the agent of a platform has none: over its processes and their tags.

It answers what the agent of this project answers, by scripts in the sandbox. What it cannot do as well: what a task
prints is limited for each stream by itself, secrets of the sandbox's environment are not replaced in it, a process
that left its session and cleared its environment outlives the task, and a supervisor that is killed leaves its task
`unknown`.

Source: decision D24; systems facts 1.3.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import MISSING

from cloche_contract import agent
from cloche_contract.errors import (
    ClocheError,
    IdempotencyConflict,
    ProviderFailed,
    TaskLimit,
    TaskNotFound,
)

from . import task_scripts
from .data_plane import AgentChannel, agent_client, answered
from .requests import build
from .scripts import first_line, run_script, script_message

__all__ = ["EmulatedTasks", "tag_of"]

TASKS_RUNNING = 32
TASKS_KEPT = 256
SCRIPT_BOUND_S = 30
HEAD_BYTES = 1024
PAGE_BYTES = 2_097_152
LIST_BYTES = 262_144

_STATES: Mapping[str, tuple[str, str]] = {
    "cancelled": ("cancelled", "cancelled"),
    "timeout": ("timed_out", "timeout"),
    "output_limit": ("failed", "output_limit"),
}


def tag_of(task_id: str) -> str:
    """The tag of the process that supervises a task."""
    return f"cloche-task-{task_id}"


class EmulatedTasks:
    """The task operations of the generated client, over the processes of an agent that has no tasks."""

    def __init__(self, channel: AgentChannel) -> None:
        self._channel = channel

    async def tasks_start(self, request: agent.StartTaskRequest) -> agent.TaskSummary:
        """Start a task; the same id and request again answer with the task that there is."""
        asked = request.model_dump_json(exclude={"task_id"})
        arguments = [
            request.task_id,
            request.command,
            str(request.timeout),
            str(0 if request.output_limit is MISSING else request.output_limit),
            hashlib.sha256(asked.encode()).hexdigest(),
            str(TASKS_RUNNING),
            str(TASKS_KEPT),
            *([] if request.envs is MISSING else [f"{name}={value}" for name, value in request.envs.items()]),
        ]
        cwd = None if request.cwd is MISSING else request.cwd
        mark = {"CLOCHE_SUPERVISOR": request.task_id}
        message = script_message(task_scripts.START, arguments, cwd=cwd, tag=tag_of(request.task_id), envs=mark)
        word, _, started_at = (await first_line(self._channel, message)).partition(" ")
        if word == "started":
            return build(agent.TaskSummary, task_id=request.task_id, state="running", started_at=started_at)
        if word == "same":
            return (await self.tasks_get(build(agent.TaskRequest, task_id=request.task_id, limit=0))).task
        refusal = {"conflict": IdempotencyConflict, "full": TaskLimit}.get(word, ProviderFailed)
        raise refusal

    async def tasks_get(self, request: agent.TaskRequest) -> agent.TaskReport:
        """State of a task, and a part of each of its streams."""
        wait_s = 0 if request.wait_ms is MISSING else -(-request.wait_ms // 1000)
        return await self._read(task_scripts.READ, request, [str(wait_s)], within_s=wait_s + SCRIPT_BOUND_S)

    async def tasks_cancel(self, request: agent.TaskRequest) -> agent.TaskReport:
        """End a task and what it started, by SIGTERM and then SIGKILL; returns when it is gone."""
        try:
            return await self._read(task_scripts.CANCEL, request, [], within_s=SCRIPT_BOUND_S)
        except TaskNotFound:
            # What it wrote down may have been removed by what runs there; its supervisor still listens.
            with suppress(ClocheError):
                await self._signal(request.task_id)
            raise

    async def tasks_list(self, request: agent.TaskListRequest) -> agent.TaskListResponse:
        """Every task that is still known, oldest first."""
        found = await run_script(
            self._channel, task_scripts.LIST, [""], within_s=SCRIPT_BOUND_S, limit_bytes=LIST_BYTES
        )
        return build(agent.TaskListResponse, tasks=[_line(line).summary for line in found.stdout.splitlines()])

    async def _read(
        self, script: str, request: agent.TaskRequest, more: list[str], *, within_s: float
    ) -> agent.TaskReport:
        limit = PAGE_BYTES if request.limit is MISSING else request.limit
        offsets = [0 if value is MISSING else value for value in (request.stdout_offset, request.stderr_offset)]
        arguments = [request.task_id, *map(str, (*offsets, limit)), *more]
        most = 2 * limit + HEAD_BYTES
        found = await run_script(self._channel, script, arguments, within_s=within_s, limit_bytes=most)
        head, _, data = found.stdout.partition(b"\n")
        if head == b"missing":
            raise TaskNotFound
        line = _line(head)
        if len(data) != line.stdout.part + line.stderr.part:
            raise ProviderFailed
        return agent.TaskReport(
            task=line.summary,
            stdout=line.stdout.page(data[: line.stdout.part]),
            stderr=line.stderr.page(data[line.stdout.part :]),
        )

    async def _signal(self, task_id: str) -> None:
        request = build(agent.SendSignalRequest, process={"tag": tag_of(task_id)}, signal="SIGNAL_SIGTERM")
        await answered(agent_client(self._channel).process_send_signal(request))


@dataclass(frozen=True)
class _Part:
    """Which part of a stream follows a line."""

    offset: int
    size: int
    part: int

    def page(self, data: bytes) -> agent.TaskPage:
        return agent.TaskPage(data=base64.b64encode(data).decode(), offset=self.offset, size=self.size, truncated=False)


@dataclass(frozen=True)
class _Line:
    """A task as a script printed it."""

    summary: agent.TaskSummary
    stdout: _Part
    stderr: _Part


def _line(line: bytes) -> _Line:
    """Take a line apart.

    Raises:
        ProviderFailed: it is none of ours.
    """
    words = line.decode("ascii", "replace").split(" ")
    try:
        mark, task_id, state, reason, code, started_at, finished_at, *numbers = words
        out_offset, out_size, out_part, err_offset, err_size, err_part = map(int, numbers)
        told: dict[str, Any] = {"task_id": task_id, "state": state, "started_at": started_at}
        if state == "lost":
            told |= {"state": "unknown", "stop_reason": "sandbox_lost"}
        elif state == "ended":
            told |= _ended(reason, int(code), finished_at)
        if mark != "task":
            raise ProviderFailed
        summary = build(agent.TaskSummary, **told)
    except (ValueError, ClocheError) as error:
        raise ProviderFailed from error
    return _Line(summary, _Part(out_offset, out_size, out_part), _Part(err_offset, err_size, err_part))


def _ended(reason: str, code: int, finished_at: str) -> dict[str, Any]:
    by_itself = ("succeeded" if code == 0 else "failed", "exit")
    state, stop_reason = _STATES.get(reason, by_itself)
    return {"state": state, "stop_reason": stop_reason, "exit_code": code, "finished_at": finished_at}
