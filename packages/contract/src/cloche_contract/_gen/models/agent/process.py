"""Generated from schemas/agent/process.json; do not edit."""

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


class Empty(BaseModel):
    """
    Nothing.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


Arg = TypeAliasType("Arg", Annotated[StrictStr, Field(max_length=131071)])


EnvsAdditionalProperty = TypeAliasType("EnvsAdditionalProperty", Annotated[StrictStr, Field(max_length=131072)])


class ProcessConfig(BaseModel):
    """
    What to run.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    cmd: Annotated[StrictStr, Field(max_length=4096, min_length=1)]
    """
    Program to run.
    """
    args: Annotated[list[Arg] | MISSING, Field(max_length=4096)] = MISSING
    """
    Arguments after the program.
    """
    envs: Annotated[dict[str, EnvsAdditionalProperty] | MISSING, Field(max_length=1000)] = MISSING
    """
    Environment on top of that of the sandbox.
    """
    cwd: Annotated[StrictStr | MISSING, Field(max_length=4096)] = MISSING
    """
    Working directory; empty or left out is that of the template.
    """


class ProcessSelector(BaseModel):
    """
    Which process, by its number or its tag.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    pid: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ] = MISSING
    """
    Number of the process in the sandbox.
    """
    tag: Annotated[StrictStr | MISSING, Field(max_length=256)] = MISSING
    """
    Tag that it was started with.
    """


class TerminalSize(BaseModel):
    """
    Size of a terminal.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    cols: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=65535),
    ] = MISSING
    """
    Columns; 0 or left out is 80.
    """
    rows: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=65535),
    ] = MISSING
    """
    Rows; 0 or left out is 24.
    """


class Terminal(BaseModel):
    """
    A pseudo-terminal for a process.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    size: TerminalSize | MISSING = MISSING


class UpdateRequest(BaseModel):
    """
    Which process, and what changes.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    process: ProcessSelector
    pty: Terminal | MISSING = MISSING


class StartRequest(BaseModel):
    """
    A process to start.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    process: ProcessConfig
    stdin: StrictBool | MISSING = MISSING
    """
    Whether standard input stays open; left out it is empty.
    """
    pty: Terminal | MISSING = MISSING
    tag: Annotated[StrictStr | MISSING, Field(max_length=256)] = MISSING
    """
    Name to find it by.
    """
    workspaceSession: Annotated[StrictStr | MISSING, Field(max_length=64)] = MISSING
    """
    Workspace session to run in. Left out where the sandbox has layers, it gets one of its own, which is published and destroyed when it has ended.
    """


class StartEvent(BaseModel):
    """
    It runs. Always the first event.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    pid: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ]
    """
    Number of the process in the sandbox.
    """
    offset: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    Where the output that follows begins, counted over all streams; left out at the beginning.
    """


class DataEvent(BaseModel):
    """
    Output, in base64.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    stdout: Annotated[StrictStr | MISSING, Field(max_length=16777216)] = MISSING
    """
    Bytes of standard output.
    """
    stderr: Annotated[StrictStr | MISSING, Field(max_length=16777216)] = MISSING
    """
    Bytes of standard error.
    """
    pty: Annotated[StrictStr | MISSING, Field(max_length=16777216)] = MISSING
    """
    Bytes of the terminal.
    """


class KeepaliveEvent(BaseModel):
    """
    Nothing happened for a while.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class SkippedEvent(BaseModel):
    """
    Output in the middle that is no longer kept: a replay goes on behind it.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    bytes: Annotated[
        StrictInt,
        Field(ge=1, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ]
    """
    How much is missing, of all streams together.
    """


class DeniedEvent(BaseModel):
    """
    What the network allowlist denied while it ran; just before the end, and only where there is something to tell.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    targets: Annotated[list[Denial], Field(max_length=16)]
    """
    The first destinations, each once.
    """


class EndEvent(BaseModel):
    """
    It ended. Always the last event.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    exitCode: Annotated[StrictInt | MISSING, Field(ge=-1, json_schema_extra={"x-unit": "count"}, le=255)] = MISSING
    """
    Exit code, 128 plus the signal when it was killed; left out when it is 0.
    """
    exited: StrictBool | MISSING = MISSING
    """
    Whether it ended by itself.
    """
    status: Annotated[StrictStr | MISSING, Field(max_length=256)] = MISSING
    """
    How it ended, in words.
    """
    error: Annotated[StrictStr | MISSING, Field(max_length=4096)] = MISSING
    """
    What went wrong, in words; set when the exit code is not 0.
    """
    stopReason: (
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
    signal: Annotated[StrictInt | MISSING, Field(ge=0, json_schema_extra={"x-unit": "count"}, le=255)] = MISSING
    """
    Signal that killed it.
    """


class ProcessEvent(BaseModel):
    """
    Exactly one of these.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    start: StartEvent | MISSING = MISSING
    data: DataEvent | MISSING = MISSING
    keepalive: KeepaliveEvent | MISSING = MISSING
    skipped: SkippedEvent | MISSING = MISSING
    denied: DeniedEvent | MISSING = MISSING
    published: PublishResult | MISSING = MISSING
    end: EndEvent | MISSING = MISSING


class ProcessMessage(BaseModel):
    """
    One frame of a process stream.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    event: ProcessEvent


class ProcessConnectRequest(BaseModel):
    """
    Which process to follow.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    process: ProcessSelector
    offset: Annotated[
        StrictInt | MISSING,
        Field(ge=0, json_schema_extra={"x-unit": "bytes"}, le=9007199254740991),
    ] = MISSING
    """
    Replay output from this byte on, counted over all streams; left out, only what comes is sent.
    """


class ProcessListRequest(BaseModel):
    """
    All of them.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )


class ProcessInfo(BaseModel):
    """
    One process that runs.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    config: ProcessConfig
    pid: Annotated[
        StrictInt,
        Field(ge=0, json_schema_extra={"x-unit": "count"}, le=9007199254740991),
    ]
    """
    Number of the process in the sandbox.
    """
    tag: Annotated[StrictStr | MISSING, Field(max_length=256)] = MISSING
    """
    Tag that it was started with.
    """


class ProcessListResponse(BaseModel):
    """
    The processes that run.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    processes: Annotated[list[ProcessInfo] | MISSING, Field(max_length=1024)] = MISSING
    """
    The processes; left out when there are none.
    """


class ProcessInput(BaseModel):
    """
    What to write, in base64.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    stdin: Annotated[StrictStr | MISSING, Field(max_length=16777216)] = MISSING
    """
    Bytes for standard input.
    """
    pty: Annotated[StrictStr | MISSING, Field(max_length=16777216)] = MISSING
    """
    Bytes for the terminal.
    """


class SendInputRequest(BaseModel):
    """
    Which process, and what to write.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    process: ProcessSelector
    input: ProcessInput


class InputStart(BaseModel):
    """
    Which process the stream writes to.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    process: ProcessSelector


class InputData(BaseModel):
    """
    What to write next.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    input: ProcessInput


class StreamInputMessage(BaseModel):
    """
    One message of a stream of input; exactly one of these, and start is the first.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    start: InputStart | MISSING = MISSING
    data: InputData | MISSING = MISSING
    keepalive: KeepaliveEvent | MISSING = MISSING


class SendSignalRequest(BaseModel):
    """
    Which process, and which signal.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    process: ProcessSelector
    signal: Literal["SIGNAL_SIGKILL", "SIGNAL_SIGTERM", "SIGNAL_SIGINT"]
    """
    Signal to send.
    """


class CloseStdinRequest(BaseModel):
    """
    Which process.
    """

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
    )
    process: ProcessSelector
