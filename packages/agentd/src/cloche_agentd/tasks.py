"""The cloche.Tasks service: background tasks that belong to the sandbox, and not to whoever started them."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from . import fields, limits
from .config import AgentConfig, KeeperHooks, User
from .failures import AgentError, invalid_argument
from .output_budget import limit_of
from .process_rpc import folders
from .redact import secrets_of
from .server import run_in_background
from .spawner import Launch, Spawner
from .task_log import Page
from .task_run import Task, Wanted
from .workspaces import Workspaces

_TASK_ID: Final = re.compile(r"[0-9a-f]{32}\Z")
_DENIALS_TOLD: Final = 16
_ANSWER_STEPS: Final = 16
"""Steps of the event loop in which those who wait for a task are answered; a few are enough."""

Json = Mapping[str, object]


class TaskService:
    """Answers the Tasks RPCs and keeps every task until the sandbox ends, as far as there is room."""

    def __init__(
        self,
        config: AgentConfig,
        hooks: KeeperHooks,
        spawner: Spawner,
        background: asyncio.TaskGroup,
        workspaces: Workspaces | None = None,
    ) -> None:
        self._config = config
        self._hooks = hooks
        self._spawner = spawner
        self._background = background
        self._workspaces = workspaces
        self._tasks: dict[str, Task] = {}
        self._starting: dict[str, asyncio.Lock] = {}
        self._kept_bytes = 0
        self._reading = 0
        self.unary = {"Start": self._start, "Get": self._get, "Cancel": self._cancel, "List": self._list}

    async def _start(self, request: Json, user: User) -> Json:
        task_id = _task_id(request)
        wanted = self._wanted(request, user)
        # A repeated request must find the task, also while the first one is still starting it.
        lock = self._starting.setdefault(task_id, asyncio.Lock())
        try:
            async with lock:
                task = self._tasks.get(task_id) or await self._begin(task_id, wanted)
        finally:
            self._starting.pop(task_id, None)
        if task.wanted != wanted:
            raise AgentError("failed_precondition", "the task id stands for another task", "idempotency_conflict")
        return self._summary(task)

    async def _begin(self, task_id: str, wanted: Wanted) -> Task:
        if sum(task.running for task in self._tasks.values()) >= limits.TASKS_RUNNING:
            raise AgentError("resource_exhausted", "too many tasks run", "task_limit")
        secrets = secrets_of({**self._config.envs, **wanted.launch.envs})
        task = Task(task_id, wanted, self._hooks, self._spawner, secrets, self._keep)
        self._tasks[task_id] = task
        try:
            if self._workspaces is not None:
                task.live_in(self._workspaces, await self._workspaces.enter_alone("task"))
            child = await task.start(self._config.clock())
        except BaseException:
            run_in_background(self._background, task.settle())
            del self._tasks[task_id]
            raise
        run_in_background(self._background, task.run(child, self._config.clock))
        self._collect()
        return task

    async def _get(self, request: Json, _user: User) -> Json:
        task = self._find(request)
        offsets, limit = _range_of(request)
        wait_ms = fields.whole(request, "wait_ms", 0)
        if not 0 <= wait_ms <= limits.TASK_WAIT_MAX_S * 1000:
            raise invalid_argument("wait_ms is out of range", "wait_ms")
        if wait_ms:
            self._reading += 1
            try:
                await task.changed(*offsets, wait_ms / 1000)
            finally:
                self._reading -= 1
        return self._report(task, offsets, limit)

    async def lose(self) -> None:
        """The sandbox is lost: whoever waits for a task is answered with what it printed, before the agent ends."""
        for task in self._tasks.values():
            task.lose(self._config.clock())
        for _ in range(_ANSWER_STEPS):
            if self._reading == 0:
                return
            await asyncio.sleep(0)

    async def _cancel(self, request: Json, _user: User) -> Json:
        task = self._find(request)
        offsets, limit = _range_of(request)
        await task.cancel()
        return self._report(task, offsets, limit)

    async def _list(self, _request: Json, _user: User) -> Json:
        return {"tasks": [self._summary(task) for task in self._tasks.values()]}

    # -- inside -------------------------------------------------------------------------------------------------

    def _find(self, request: Json) -> Task:
        task = self._tasks.get(_task_id(request))
        if task is None:
            raise AgentError("not_found", "task not found", "task_not_found")
        return task

    def _wanted(self, request: Json, user: User) -> Wanted:
        command = fields.no_nul(fields.text(request, "command"), "command")
        if not command or len(command.encode()) > limits.ARGUMENT_BYTES:
            raise invalid_argument("the command is empty or too long", "command")
        timeout_s = fields.whole(request, "timeout")
        if not 1 <= timeout_s <= limits.COMMAND_TIMEOUT_MAX_S:
            raise invalid_argument("timeout is out of range", "timeout")
        cwd = fields.no_nul(fields.text(request, "cwd", ""), "cwd")
        envs = fields.environment(request, "envs")
        launch = Launch(user, folders(self._config, user, cwd), envs, ("/bin/sh", "-c", command))
        return Wanted(launch, timeout_s, limit_of(fields.whole(request, "output_limit", 0)))

    def _summary(self, task: Task) -> Json:
        told: dict[str, object] = {"task_id": task.task_id, "state": task.state, "started_at": _time(task.started_at)}
        if task.ending is not None:
            told["stop_reason"] = task.ending.stop_reason
            if task.state != "unknown":
                told["exit_code"] = task.ending.exit_code
        if task.finished_at is not None:
            told["finished_at"] = _time(task.finished_at)
        denied = [dict(entry) for entry in task.denials()[:_DENIALS_TOLD]]
        if denied:
            told["denied"] = denied
        if task.published:
            told["published"] = task.published
        return told

    def _report(self, task: Task, offsets: tuple[int, int], limit: int) -> Json:
        return {
            "task": self._summary(task),
            "stdout": _told(task.stdout.page(offsets[0], limit)),
            "stderr": _told(task.stderr.page(offsets[1], limit)),
        }

    def _keep(self, spent_bytes: int) -> None:
        """Account for kept output, and forget some of tasks that have ended where there is too much of it."""
        self._kept_bytes += spent_bytes
        if spent_bytes <= 0 or self._kept_bytes <= limits.TASK_LOG_TOTAL_BYTES:
            return
        for task in self._ended_first():
            task.stdout.drop()
            task.stderr.drop()
            if self._kept_bytes <= limits.TASK_LOG_TOTAL_BYTES:
                return

    def _collect(self) -> None:
        """Forget the tasks that ended first, where there are too many."""
        ended = self._ended_first()
        for task in ended[: max(0, len(ended) - limits.TASKS_KEPT)]:
            task.stdout.drop()
            task.stderr.drop()
            del self._tasks[task.task_id]

    def _ended_first(self) -> list[Task]:
        ended = [task for task in self._tasks.values() if task.finished_at is not None]
        return sorted(ended, key=lambda task: task.finished_at or 0.0)


def _task_id(request: Json) -> str:
    task_id = fields.text(request, "task_id")
    if not _TASK_ID.match(task_id):
        raise invalid_argument("a task id is 32 lowercase hex digits", "task_id")
    return task_id


def _range_of(request: Json) -> tuple[tuple[int, int], int]:
    offsets = (fields.whole(request, "stdout_offset", 0), fields.whole(request, "stderr_offset", 0))
    limit = fields.whole(request, "limit", limits.TASK_PAGE_BYTES)
    if min(offsets) < 0 or not 0 <= limit <= limits.TASK_PAGE_BYTES:
        raise invalid_argument("an offset or the limit is out of range", "limit")
    return offsets, limit


def _told(page: Page) -> Json:
    data = base64.b64encode(page.data).decode()
    return {"data": data, "offset": page.offset, "size": page.size, "truncated": page.truncated}


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
