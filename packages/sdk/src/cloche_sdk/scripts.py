"""Shell scripts of our own, run in a sandbox through the commands that every agent has."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from cloche_contract.agent import HEADER_TIMEOUT_MS, PROCESS_START
from cloche_contract.errors import ProviderFailed

from .data_plane import AgentChannel

__all__ = ["ScriptOutput", "first_line", "run_script", "script_message"]


@dataclass(frozen=True)
class ScriptOutput:
    """What a script printed, and how it ended."""

    stdout: bytes = field(repr=False)
    exit_code: int


def script_message(
    script: str,
    arguments: Sequence[str],
    *,
    cwd: str | None = None,
    tag: str | None = None,
    envs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The request that starts a script; its name in a list of processes is `cloche`."""
    process: dict[str, Any] = {"cmd": "/bin/sh", "args": ["-c", script, "cloche", *arguments]}
    if cwd:
        process["cwd"] = cwd
    if envs:
        process["envs"] = dict(envs)
    return {"process": process} if tag is None else {"process": process, "tag": tag}


async def run_script(
    channel: AgentChannel, script: str, arguments: Sequence[str], *, within_s: float, limit_bytes: int
) -> ScriptOutput:
    """Run a script to its end.

    Raises:
        ProviderFailed: it printed more than `limit_bytes`.
        CommandTimeout: it took too long.
    """
    headers = {HEADER_TIMEOUT_MS: str(int(within_s * 1000))}
    output, size = list[bytes](), 0
    stream = channel.stream(PROCESS_START, script_message(script, arguments), headers=headers)
    with channel.overdue_after(within_s):
        async with aclosing(stream) as messages:
            async for event in _events(messages):
                piece = printed(event)
                output.append(piece)
                size += len(piece)
                if size > limit_bytes:
                    break
                if "end" in event:
                    return ScriptOutput(b"".join(output), int(event["end"].get("exitCode", 0)))
    raise ProviderFailed


async def first_line(channel: AgentChannel, message: Mapping[str, Any]) -> str:
    """Start a script that goes on, and wait for the first line that it prints; its connection is then cut.

    Raises:
        ProviderFailed: it ended without one.
    """
    output = b""
    async with aclosing(channel.follow(PROCESS_START, message)) as messages:
        async for event in _events(messages):
            output += printed(event)
            if b"\n" in output or "end" in event:
                break
    line, end, _ = output.partition(b"\n")
    if not end:
        raise ProviderFailed
    return line.decode("ascii", "replace")


def printed(event: Mapping[str, Any]) -> bytes:
    """What a message of a process has of its standard output."""
    try:
        return base64.b64decode(event.get("data", {}).get("stdout", ""), validate=True)
    except binascii.Error as error:
        raise ProviderFailed from error


async def _events(messages: AsyncGenerator[Mapping[str, Any], None]) -> AsyncGenerator[Mapping[str, Any], None]:
    async for message in messages:
        yield message.get("event", {})
