"""Generated from schemas/agent/interpreter.json; do not edit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    MISSING,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)

from ..common.network import Denial
from .layers import PublishResult


class ExecuteRequest(BaseModel):
    """
    Code, and where to run it.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    code: Annotated[StrictStr, Field(max_length=1048576)]
    """
    Code to run.
    """
    context_id: Annotated[StrictStr | None | MISSING, Field(max_length=256)] = MISSING
    """
    Interpreter to run it in; not together with language.
    """
    language: Annotated[StrictStr | None | MISSING, Field(max_length=64)] = MISSING
    """
    Language of the code; its default interpreter runs it.
    """
    env_vars: dict[str, Any] | None | MISSING = MISSING
    """
    Environment for this call alone.
    """
    timeout_ms: Annotated[
        StrictInt | None | MISSING,
        Field(ge=1, json_schema_extra={"x-unit": "ms"}, le=86400000),
    ] = MISSING
    """
    Milliseconds until it is interrupted.
    """
    output_limit: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=1125899906842624),
    ] = MISSING
    """
    Bytes that it may print and display in all; beyond them it is interrupted and ends with stop_reason output_limit. 0 or left out: no limit.
    """
    max_result_bytes: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=8388608),
    ] = MISSING
    """
    Largest representation of a result to send; a larger one becomes an output file.
    """
    max_results: Annotated[StrictInt | MISSING, Field(ge=0, json_schema_extra={"x-unit": "count"}, le=64)] = MISSING
    """
    How many results to send with more than their text; the rest become output files.
    """


class WrittenFile(BaseModel):
    """
    A file that the code made or changed.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    name: Annotated[StrictStr, Field(max_length=255)]
    """
    Name of the file.
    """
    path: Annotated[StrictStr, Field(max_length=4096)]
    """
    Absolute path.
    """
    size: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ]
    """
    Size in bytes.
    """


class CreateContextRequest(BaseModel):
    """
    What interpreter to make.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    language: Annotated[StrictStr | MISSING, Field(max_length=64)] = MISSING
    """
    Language; left out it is python. It must be one that keeps its state (see stateful_languages).
    """
    cwd: Annotated[StrictStr | MISSING, Field(max_length=4096)] = MISSING
    """
    Working directory; left out it is that of the template.
    """


class Interruption(BaseModel):
    """
    Whether something was interrupted.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    interrupted: StrictBool
    """
    Whether an execution was running; it ends with stop_reason cancelled.
    """


class Context(BaseModel):
    """
    One interpreter.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    id: Annotated[StrictStr, Field(max_length=256)]
    """
    Id of the interpreter.
    """
    language: Annotated[StrictStr, Field(max_length=64)]
    """
    Its language.
    """
    cwd: Annotated[StrictStr, Field(max_length=4096)]
    """
    Its working directory.
    """


class ExecuteLine(BaseModel):
    """
    One line of an execution; type says which of the other keys are there.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    type: Literal[
        "number_of_executions",
        "stdout",
        "stderr",
        "result",
        "error",
        "keepalive",
        "context_restarted",
        "end_of_execution",
    ]
    """
    What the line tells.
    """
    execution_count: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ] = MISSING
    """
    How many executions this interpreter has run.
    """
    text: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    Output, or a result as plain text.
    """
    timestamp: Annotated[StrictStr | MISSING, Field(max_length=64)] = MISSING
    """
    When it was written, RFC 3339.
    """
    html: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    The result as HTML.
    """
    markdown: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    The result as Markdown.
    """
    svg: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    The result as SVG.
    """
    png: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    The result as PNG, in base64.
    """
    jpeg: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    The result as JPEG, in base64.
    """
    pdf: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    The result as PDF, in base64.
    """
    latex: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    The result as LaTeX.
    """
    json_: Annotated[Any | MISSING, Field(alias="json")] = MISSING
    """
    The result as JSON: any value.
    """
    data: Any | MISSING = MISSING
    """
    The result as a table: columns by name.
    """
    chart: Any | MISSING = MISSING
    """
    The result as the description of a chart.
    """
    extra: Annotated[dict[str, Any] | MISSING, Field(max_length=100)] = MISSING
    """
    The result in further media types, by their names.
    """
    javascript: Annotated[StrictStr | MISSING, Field(max_length=50331648)] = MISSING
    """
    The result as JavaScript.
    """
    is_main_result: StrictBool | MISSING = MISSING
    """
    Whether it is the value of the last expression.
    """
    name: Annotated[StrictStr | MISSING, Field(max_length=1024)] = MISSING
    """
    Class of the exception.
    """
    value: Annotated[StrictStr | MISSING, Field(max_length=1048576)] = MISSING
    """
    Message of the exception.
    """
    traceback: Annotated[StrictStr | MISSING, Field(max_length=1048576)] = MISSING
    """
    Traceback of the exception.
    """
    exit_code: Annotated[StrictInt | MISSING, Field(ge=-1, json_schema_extra={"x-unit": "count"}, le=255)] = MISSING
    """
    Exit code.
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
    timed_out: StrictBool | MISSING = MISSING
    """
    Whether the timeout ended it.
    """
    state_kept: StrictBool | MISSING = MISSING
    """
    Whether the variables of the interpreter are still there.
    """
    reason: Annotated[StrictStr | MISSING, Field(max_length=64)] = MISSING
    """
    Why the interpreter is a new one: timeout, cancelled, output_limit, oom or died; text then says how the former one ended, exit_code with what.
    """
    context_restarted: Annotated[StrictStr | MISSING, Field(max_length=64)] = MISSING
    """
    Same as reason, on the last line.
    """
    stdout_bytes: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    Bytes printed to standard output.
    """
    stderr_bytes: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    Bytes printed to standard error.
    """
    replaced: StrictBool | MISSING = MISSING
    """
    Whether bytes that are not UTF-8 were replaced in the output.
    """
    output_files: Annotated[list[WrittenFile] | MISSING, Field(max_length=1000)] = MISSING
    """
    Files that the code made or changed.
    """
    denied: Annotated[list[Denial] | MISSING, Field(max_length=16)] = MISSING
    """
    What the network allowlist denied while it ran, each destination once.
    """
    published: PublishResult | MISSING = MISSING
