"""Generated from schemas/tools/sandbox/start_task.json; do not edit."""

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


class StartTaskInput(BaseModel):
    """
    Arguments of start_task.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    command: Annotated[StrictStr, Field(max_length=65536, min_length=1, pattern="^[^\\x00]*$")]
    """
    Shell command, at most 65536 bytes.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """
    cwd: Annotated[
        StrictStr | MISSING,
        Field(max_length=4096, min_length=1, pattern="^/[^\\x00]*$"),
    ] = MISSING
    """
    Absolute working directory, at most 4096 bytes. Left out: the working directory of the template.
    """
    timeout: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "s"}, le=3600)] = 300
    """
    Seconds until it is ended, 1 to 3600, default 300.
    """


class StartTaskOutput(BaseModel):
    """
    Result of start_task.
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
    state: Annotated[
        Literal["running", "succeeded", "failed", "cancelled", "timed_out", "unknown"],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    Where a task is: running, succeeded (exit code 0), failed (any other end of its own, or a limit), cancelled, timed_out, or unknown when it cannot be told.
    """
    sandbox_id: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Id of the sandbox that holds the task: pass it on with the task_id.
    """
    retained_until_sandbox_ttl: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether the sandbox, and the task with it, outlives this session until the timeout of the sandbox.
    """
    note: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    What to know about this task, for example that its state is not known.
    """
