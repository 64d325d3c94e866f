"""Ask one client about one server, and say in a few words what came of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio

from cloche_contract.kernel.registry import published_set
from tests.clients.environment import interpreter, place
from tests.clients.table import Client, CommandLine, Inspector, Program, Target, TypeScript
from tests.inspector import command, node, typescript

PROGRAMS = Path(__file__).parent / "programs"
WITHIN_S = 120
# An agent's own command gives a server a few seconds, which a busy machine may not have.
ATTEMPTS = 3
# Colours and cursor movements.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Failed(Exception):
    """A client did not get what it must get; the text says what came instead."""


async def ask(client: Client, target: Target, home: Path) -> str:
    """Let a client list the tools and, where it can, run code.

    Raises:
        Failed: it did not get there.
    """
    how = client.how
    if isinstance(how, Program):
        return (await ask_program(client, how, {"it": target}, home))["it"]
    if isinstance(how, TypeScript):
        place_of = ["--", *target.command] if target.command else [target.url, target.token]
        argv = typescript(how.sdk, how.mode, *place_of)
        return judge(_parsed(await _run(_installed(argv), home, target.environ)))
    if isinstance(how, Inspector):
        return await _inspect(target, home)
    return await _list_servers(how, client, target, home)


async def ask_program(client: Client, how: Program, targets: Mapping[str, Target], home: Path) -> dict[str, str]:
    """Ask about several servers in one process, which imports its library once.

    Raises:
        Failed: one of them did not get there.
    """
    argument = json.dumps({name: asdict(target) for name, target in targets.items()})
    said = await _run([str(interpreter(client)), str(PROGRAMS / how.file), argument], home)
    return {name: judge(told) for name, told in _parsed(said).items()}


def judge(told: Any) -> str:
    """What a client was told, in a few words.

    Raises:
        Failed: the tools, the output of the code, or the code of the error are not ours.
    """
    wanted = {"tools": [*published_set("sandbox").tool_names], "stdout": "42\n", "error": "file_not_found"}
    for name, value in wanted.items():
        if told.get(name) != value:
            raise Failed(f"{name}: {json.dumps(told.get(name))[:100]}")
    return f"lists {len(wanted['tools'])} tools, runs code"


async def _inspect(target: Target, home: Path) -> str:
    if target.command:
        server = [f"-e{name}={value}" for name, value in target.environ.items()] + list(target.command)
    else:
        header = ["--header", f"Authorization: Bearer {target.token}", "--stored-auth-only"]
        server = ["--server-url", target.url, "--transport", "http", *header]
    told: dict[str, Any] = {}
    listed = await _question(server, home, "--method", "tools/list")
    told["tools"] = [tool["name"] for tool in listed["tools"]]
    ran = await _question(server, home, *_calling("run_code", code="print(6 * 7)"))
    told["stdout"] = ran["structuredContent"]["stdout"]
    failed = await _question(server, home, *_calling("read_file", path="/no/such/file"), expected=5)
    told["error"] = json.loads(failed["content"][0]["text"])["code"]
    return judge(told)


def _calling(tool: str, **arguments: str) -> list[str]:
    return ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]


async def _question(server: Sequence[str], home: Path, *arguments: str, expected: int = 0) -> Any:
    argv = _installed(command(*server, "--format", "json", "-q", *arguments))
    said = await _run(argv, home, {"MCP_INSPECTOR_SECRET_STORE": "memory"}, expected=expected)
    return _parsed(said)["result"]


async def _list_servers(how: CommandLine, client: Client, target: Target, home: Path) -> str:
    configuration = home / how.file
    configuration.parent.mkdir(parents=True, exist_ok=True)
    configuration.write_text(json.dumps(how.configure(target)), encoding="utf-8")
    program = place(client) / "node_modules" / how.program
    argv = ([str(node())] if how.with_node else []) + [str(program), *how.arguments]
    said = ""
    for _ in range(ATTEMPTS):
        said = await _run(argv, home, how.environ, both=True)  # some print for people on standard error
        if re.search(how.good, said) is not None:
            return "connects"
    raise Failed(" ".join(said.split())[:200] or "it said nothing")


def _installed(argv: list[str] | None) -> list[str]:
    if argv is None:
        raise Failed("python -m tests.inspector has not been run")
    return argv


def _parsed(said: str) -> Any:
    try:
        return json.loads(said)
    except ValueError as error:
        raise Failed(said[:200]) from error


async def _run(
    argv: Sequence[str],
    home: Path,
    environ: Mapping[str, str] | None = None,
    *,
    expected: int = 0,
    both: bool = False,
) -> str:
    """What a program printed that sees nothing of the person who runs this; with `both` also on standard error."""
    program = node()
    path = "/usr/bin:/bin" if program is None else f"{program.parent}:/usr/bin:/bin"
    own = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    own |= {name: value for name, value in os.environ.items() if name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")}
    try:
        with anyio.fail_after(WITHIN_S):
            done = await anyio.run_process(
                argv, env={**own, **(environ or {})}, cwd=home, stdin=subprocess.DEVNULL, check=False
            )
    except (OSError, TimeoutError) as error:
        raise Failed(type(error).__name__) from error
    said = _CONTROL.sub("", (done.stdout + (done.stderr if both else b"")).decode(errors="replace"))
    if done.returncode != expected:
        told = done.stderr.decode(errors="replace").strip().splitlines() or [said]
        raise Failed(f"status {done.returncode}: {told[-1][:200]}")
    return said
