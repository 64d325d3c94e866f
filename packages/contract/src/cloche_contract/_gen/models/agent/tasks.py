"""Generated from schemas/agent/tasks.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    MISSING,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)
from typing_extensions import TypeAliasType

from ..common.network import Denial
from .layers import PublishResult

EnvsAdditionalProperty = TypeAliasType("EnvsAdditionalProperty", Annotated[StrictStr, Field(max_length=131072)])


class StartTaskRequest(BaseModel):
    """
    What to run. The id is chosen by the caller, so that a lost answer can be asked for again.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    task_id: Annotated[StrictStr, Field(max_length=32, min_length=32, pattern="^[0-9a-f]{32}$")]
    """
    Id of a task: 32 lowercase hex digits, as its start returned it. Never a process id.
    """
    command: Annotated[StrictStr, Field(max_length=65536, min_length=1)]
    """
    Shell command.
    """
    cwd: Annotated[StrictStr | MISSING, Field(max_length=4096)] = MISSING
    """
    Working directory; empty or left out is that of the template.
    """
    envs: Annotated[dict[str, EnvsAdditionalProperty] | MISSING, Field(max_length=1000)] = MISSING
    """
    Environment on top of that of the sandbox.
    """
    timeout: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "s"}, le=86400)]
    """
    Seconds until it is ended.
    """
    output_limit: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=1125899906842624),
    ] = MISSING
    """
    Bytes that it may print in all; beyond them it is ended with stop_reason output_limit. 0 or left out: no limit.
    """


class TaskSummary(BaseModel):
    """
    A task without its output.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    task_id: Annotated[StrictStr, Field(max_length=32, min_length=32, pattern="^[0-9a-f]{32}$")]
    """
    Id of a task: 32 lowercase hex digits, as its start returned it. Never a process id.
    """
    state: Literal["running", "succeeded", "failed", "cancelled", "timed_out", "unknown"]
    """
    Where a task is: running, succeeded (exit code 0), failed (any other end of its own, or a limit), cancelled, timed_out, or unknown when it cannot be told.
    """
    stop_reason: (
        Literal[
            "exit",
            "timeout",
            "cancelled",
            "memory_limit",
            "pids_limit",
            "output_limit",
            "disk_full",
            "policy",
            "interpreter_died",
            "sandbox_lost",
        ]
        | MISSING
    ) = MISSING
    """
    Why it stopped: exit is the normal end, whatever the exit code; every other value means that it was ended from outside. output_limit: it printed more than it may in all; policy: the kernel ended it for a system call that no sandbox may make.
    """
    exit_code: Annotated[StrictInt | MISSING, Field(ge=-1, json_schema_extra={"x-unit": "count"}, le=255)] = MISSING
    """
    Exit code, 128 plus the signal when it was killed; left out while it is not known.
    """
    started_at: Annotated[StrictStr, Field(max_length=64)]
    """
    When it started, RFC 3339.
    """
    finished_at: Annotated[StrictStr | MISSING, Field(max_length=64)] = MISSING
    """
    When it ended, RFC 3339; left out while it runs.
    """
    denied: Annotated[list[Denial] | MISSING, Field(max_length=16)] = MISSING
    """
    What the network allowlist denied while it ran, each destination once.
    """
    published: PublishResult | MISSING = MISSING


class TaskRequest(BaseModel):
    """
    Which task, and which part of its streams.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    task_id: Annotated[StrictStr, Field(max_length=32, min_length=32, pattern="^[0-9a-f]{32}$")]
    """
    Id of a task: 32 lowercase hex digits, as its start returned it. Never a process id.
    """
    stdout_offset: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    First byte of standard output to answer.
    """
    stderr_offset: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    First byte of standard error to answer.
    """
    limit: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=2097152),
    ] = MISSING
    """
    Most bytes of each stream to answer.
    """
    wait_ms: Annotated[StrictInt | MISSING, Field(ge=0, json_schema_extra={"x-unit": "ms"}, le=60000)] = MISSING
    """
    How long to wait for its end or for output at the offsets.
    """


class TaskPage(BaseModel):
    """
    A part of one stream. Offsets count the bytes of the stream after secrets were replaced.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    data: Annotated[StrictStr, Field(max_length=2796204)]
    """
    The bytes, base64.
    """
    offset: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ]
    """
    Where the bytes begin: later than asked for where what was asked for is no longer kept.
    """
    size: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ]
    """
    Bytes of the stream so far.
    """
    truncated: StrictBool
    """
    Whether some of the stream is no longer kept.
    """


class TaskReport(BaseModel):
    """
    A task and a part of its output.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    task: TaskSummary
    stdout: TaskPage
    stderr: TaskPage


class TaskListRequest(BaseModel):
    """
    Nothing.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class TaskListResponse(BaseModel):
    """
    Tasks, oldest first.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    tasks: Annotated[list[TaskSummary], Field(max_length=1000)]
    """
    The tasks.
    """
