"""Generated from schemas/tools/sandbox/run_command.json; do not edit."""

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


class RunCommandInput(BaseModel):
    """
    Arguments of run_command.
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
    timeout: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "s"}, le=3600)] = 60
    """
    Seconds until it is killed, 1 to 3600, default 60.
    """
    clean: StrictBool = False
    """
    Show output as a terminal would in the end: without colours, and of a progress bar its last state; default false, as it was written.
    """


class RunCommandOutput(BaseModel):
    """
    Result of run_command.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    stdout: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Standard output of the command, at most 30000 characters: head and tail.
    """
    stderr: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Standard error of the command, at most 30000 characters: head and tail.
    """
    exit_code: Annotated[
        StrictInt,
        Field(
            ge=-1,
            json_schema_extra={"x-unit": "count", "x-disclosure": "model"},
            le=255,
        ),
    ]
    """
    Exit code; 128 plus the signal when it was killed, -1 when it is not known. Not 0 is data, not a tool error.
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
        ],
        Field(json_schema_extra={"x-disclosure": "model"}),
    ]
    """
    Why it stopped: exit is the normal end, whatever the exit code; every other value means that it was ended from outside. output_limit: it printed more than it may in all; policy: the kernel ended it for a system call that no sandbox may make.
    """
    timed_out: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether the timeout ended it; the output so far is kept.
    """
    truncated: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether output was cut; stdout_bytes and stderr_bytes hold the totals.
    """
    stdout_bytes: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Bytes that were written to standard output in all.
    """
    stderr_bytes: Annotated[
        StrictInt,
        Field(
            ge=0,
            json_schema_extra={"x-unit": "bytes", "x-disclosure": "model"},
            le=9007199254740991,
        ),
    ]
    """
    Bytes that were written to standard error in all.
    """
    replaced: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether bytes that are not UTF-8 were replaced.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    Id of the sandbox that ran it.
    """
    note: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    What to do next, for example how to get output that was cut.
    """
