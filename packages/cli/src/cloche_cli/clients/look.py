"""What is installed where: for each client and scope the entry, and whether its command is there and starts."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import anyio
from anyio.abc import Process

from cloche_cli.clients.change import installed
from cloche_cli.clients.places import Surroundings, config_path
from cloche_cli.clients.table import Client, Scope, clients
from cloche_cli.usage import Refused

STARTS_WITHIN_S: Final = 30
_ANSWER_LIMIT: Final = 1024 * 1024
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "abx mcp status", "version": "1"},
    },
}

State = Literal["absent", "broken", "remote", "missing", "starts", "fails", "untried"]


@dataclass(frozen=True)
class Found:
    """One client's file.

    Args:
        installed: whether our entry is in it; None where the file cannot be read.
        state: `missing`: its command is not there; `fails`: it does not answer as a server; `untried`: the file came
            with a project, and the command is not this program.
    """

    client: Client
    scope: Scope
    file: str
    path: str
    installed: bool | None
    state: State
    command: str | None = None
    url: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class _Start:
    words: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


async def look(around: Surroundings, own: Sequence[str]) -> list[Found]:
    """Look at every file of every client. Each command is started once, however many have it.

    Args:
        own: the command of this program, the only one that a project's file may make us start.
    """
    outcomes: dict[_Start, State] = {}
    places: list[tuple[Client, Scope]] = [(client, scope) for client in clients().values() for scope in client.files]
    return [await _look_at(client, scope, around, own, outcomes) for client, scope in places]


async def _look_at(
    client: Client, scope: Scope, around: Surroundings, own: Sequence[str], outcomes: dict[_Start, State]
) -> Found:
    path = config_path(client, scope, around)
    shown, full = around.shown(path), str(path)
    try:
        entry = installed(client, scope, around)
    except Refused as error:
        return Found(client, scope, shown, full, None, "broken", problem=error.message)
    if entry is None:
        return Found(client, scope, shown, full, False, "absent")
    start, url = _start_of(client, entry), _url_of(client, entry)
    if start is None:
        return Found(client, scope, shown, full, True, "remote" if url else "broken", url=url)
    if shutil.which(start.words[0]) is None:
        state: State = "missing"
    elif scope == "project" and start.words[: len(own)] != tuple(own):
        state = "untried"
    elif start in outcomes:
        state = outcomes[start]
    else:
        state = outcomes[start] = await _try(start)
    return Found(client, scope, shown, full, True, state, command=start.words[0])


def _start_of(client: Client, entry: Any) -> _Start | None:
    """The command of an entry, read by the shape that the table gives it."""
    if not isinstance(entry, dict):
        return None
    named = {
        word: cast("dict[str, Any]", entry).get(key) for key, word in client.stdio.items() if isinstance(word, str)
    }
    words: Any = named.get("$command_line") or [named.get("$command"), *(named.get("$args") or [])]
    env: Any = named.get("$env") or {}
    if not isinstance(env, dict) or not all(isinstance(word, str) for word in words):
        return None
    pairs = cast("dict[str, Any]", env).items()
    return _Start(tuple(words), tuple((name, str(value)) for name, value in pairs))


def _url_of(client: Client, entry: Any) -> str | None:
    key = next((key for key, word in (client.http or {}).items() if word == "$url"), None)
    url: Any = cast("dict[str, Any]", entry).get(key) if key and isinstance(entry, dict) else None
    return url if isinstance(url, str) else None


async def _try(start: _Start) -> State:
    """Start the command as a client does, and see whether it answers as an MCP server."""
    environ: Mapping[str, str] = {**os.environ, **dict(start.env)}
    try:
        process = await anyio.open_process(
            list(start.words), stderr=subprocess.DEVNULL, env=environ, start_new_session=True
        )
    except OSError:
        return "fails"
    async with process:
        try:
            with anyio.move_on_after(STARTS_WITHIN_S):
                return "starts" if await _answers(process) else "fails"
            return "fails"
        finally:
            _end(process)


def _end(process: Process) -> None:
    """End the command and what it started, if it has not ended by itself."""
    if process.returncode is None and hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def _answers(process: Process) -> bool:
    assert process.stdin is not None
    assert process.stdout is not None
    answer = b""
    try:
        await process.stdin.send(json.dumps(_HELLO).encode() + b"\n")
        while b"\n" not in answer and len(answer) < _ANSWER_LIMIT:
            answer += await process.stdout.receive()
        await process.stdin.aclose()
        await process.wait()
        return "serverInfo" in json.loads(answer.partition(b"\n")[0])["result"]
    except (anyio.BrokenResourceError, anyio.EndOfStream, ValueError, KeyError, TypeError):
        return False
