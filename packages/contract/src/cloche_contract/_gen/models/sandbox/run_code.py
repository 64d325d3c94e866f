"""Generated from schemas/tools/sandbox/run_code.json; do not edit."""

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

from ..common.execution import CodeError, ResultItem
from ..common.files import OutputFile


class RunCodeInput(BaseModel):
    """
    Arguments of run_code.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    code: Annotated[StrictStr, Field(max_length=1048576, min_length=1)]
    """
    Code to run, at most 1 MiB.
    """
    language: Literal["python", "javascript", "shell", "typescript", "r"] = "python"
    """
    Language of the code: python, javascript, shell, typescript or r, default python.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(max_length=1024, min_length=1)] = MISSING
    """
    Sandbox id, plain or as provider:id. Leave it out to use the default sandbox of this session.
    """
    timeout: Annotated[StrictInt, Field(ge=1, json_schema_extra={"x-unit": "s"}, le=3600)] = 30
    """
    Seconds until the code is interrupted, 1 to 3600, default 30.
    """
    clean: StrictBool = False
    """
    Show printed output as a terminal would in the end: without colours, and of a progress bar its last state; default false, as it was written.
    """


class RunCodeOutput(BaseModel):
    """
    Result of run_code.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    stdout: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Standard output of the code, at most 30000 characters: head and tail.
    """
    stderr: Annotated[StrictStr, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Standard error of the code, at most 30000 characters: head and tail.
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
    output_files: Annotated[
        list[OutputFile],
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1000),
    ]
    """
    Files that the code made or changed in its working directory.
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
    results: Annotated[
        list[ResultItem],
        Field(json_schema_extra={"x-disclosure": "model"}, max_length=1000),
    ]
    """
    Values that the code displayed, each in its forms.
    """
    error: CodeError | MISSING = MISSING
    """
    Exception that ended the code.
    """
    state_kept: Annotated[StrictBool, Field(json_schema_extra={"x-disclosure": "model"})]
    """
    Whether the variables of the interpreter are still there.
    """
    sandbox_id: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    Id of the sandbox that ran it.
    """
    note: Annotated[StrictStr | MISSING, Field(json_schema_extra={"x-disclosure": "model"})] = MISSING
    """
    What to do next, for example how to get output that was cut.
    """
