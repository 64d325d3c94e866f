"""Generated from schemas/tools/sandbox/cancel_task.json; do not edit."""

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


class CancelTaskInput(BaseModel):
    """
    Arguments of cancel_task.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    sandbox_id: Annotated[StrictStr, Field(max_length=1024, min_length=1)]
    """
    Sandbox id, plain or as provider:id, as the start of the task returned it.
    """
    task_id: Annotated[StrictStr, Field(max_length=32, min_length=32, pattern="^[0-9a-f]{32}$")]
    """
    Id of a task: 32 lowercase hex digits, as its start returned it. Never a process id.
    """
    stdout_offset: Annotated[StrictInt, Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=1099511627776)] = 0
    """
    First byte of standard output to read, 0 to 1099511627776, default 0; pass the stdout_offset of the call before.
    """
    stderr_offset: Annotated[StrictInt, Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=1099511627776)] = 0
    """
    First byte of standard error to read, 0 to 1099511627776, default 0; pass the stderr_offset of the call before.
    """
    limit: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "bytes"}, le=30000)] = 16384
    """
    Most bytes of each stream, 1 to 30000, default 16384.
    """
    clean: StrictBool = False
    """
    Show output as a terminal would: without colours, and of a progress bar its last state; default false, as it was written. limit then counts what is shown.
    """


class CancelTaskOutput(BaseModel):
    """
    Result of cancel_task.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    task_id: Annotated[
        StrictStr,
        Field(
            json_schema_extra={"x-disclosure": "model"},
            max_length=32,
            min_length=32,
            pattern="^[0-9a-f]{32}$",
        ),
    ]
    """
    Id of a task: 32 lowercase hex digits, as its start returned it. Never a process id.
    """
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the sandbox that holds the task.
    """
    state: Annotated[
        Literal["running", "succeeded", "failed", "cancelled", "timed_out", "unknown"],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    Where a task is: running, succeeded (exit code 0), failed (any other end of its own, or a limit), cancelled, timed_out, or unknown when it cannot be told.
    """
    exit_code: Annotated[
        StrictInt | None,
        Field(
            ge=-1,
            json_schema_extra={"x-unit": "count", "x-disclosure": "model"},
            le=255,
        ),
    ]
    """
    Exit code, 128 plus the signal when it was killed; null while it is not known. Not 0 is data, not a tool error.
    """
    stop_reason: Annotated[
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
        | MISSING,
        Field(json_schema_extra={"x-disclosure": "model"}),
    ] = MISSING
    """
    Why it stopped: exit is the normal end, whatever the exit code; left out while it runs.
    """
    started_at: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    When it started, ISO 8601, or null.
    """
    finished_at: Annotated[StrictStr | None, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    When it ended, ISO 8601, or null.
    """
    stdout: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Standard output from stdout_offset on, at most limit bytes of it; what is not UTF-8 is replaced, secrets are replaced by [REDACTED].
    """
    stderr: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Standard error from stderr_offset on, at most limit bytes of it; what is not UTF-8 is replaced, secrets are replaced by [REDACTED].
    """
    stdout_offset: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Where standard output goes on: pass it in the next call.
    """
    stderr_offset: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Where standard error goes on: pass it in the next call.
    """
    stdout_size: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Bytes of standard output so far.
    """
    stderr_size: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Bytes of standard error so far.
    """
    stdout_truncated: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether some of standard output is no longer kept: of a long stream the first 768 KiB and the last 256 KiB are.
    """
    stderr_truncated: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether some of standard error is no longer kept: of a long stream the first 768 KiB and the last 256 KiB are.
    """
    replaced: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether bytes that are not UTF-8 were replaced.
    """
    note: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    What to know about this part, for example how many bytes before it are no longer kept.
    """
