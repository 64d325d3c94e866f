"""Real clients read what `abx mcp install` wrote for them, and their own command writes the same.

Each is asked by its own list of servers; Claude Code, Gemini CLI and opencode start or reach the server for it. Codex
only reads its file. Part of `nox -s clients`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from tests.clients.environment import NotInstalled, install, place
from tests.clients.table import CLIENTS, Client, CommandLine
from tests.e2e.http_servers import http_server
from tests.inspector import node
from tests.packages.mcp_stdio.raw_client import clean_environ

WITHIN_S = 120
TOKEN = "correct-horse-battery"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
CODEX = Client(
    "codex mcp list",
    "0.169.0",
    CommandLine(
        program=".bin/codex",
        arguments=("mcp", "list"),
        file=".codex/config.toml",
        configure=lambda _target: {},
        good="enabled",
        with_node=True,
    ),
    npm=("@openai/codex@0.169.0",),
)


@dataclass(frozen=True)
class Asked:
    """A client of the matrix by the name that `abx mcp install` knows it by."""

    target: str
    client: Client
    good: str
    own_name: str = ""
    """How its own command line is called; empty where it cannot add a server without questions."""


def _row(name: str) -> Client:
    return next(client for client in CLIENTS if client.name == name)


ASKED = (
    Asked("claude-code", _row("claude mcp list"), r"agent-sandbox: .*Connected", "claude"),
    Asked("gemini", _row("gemini mcp list"), r"agent-sandbox: .*Connected", "gemini"),
    Asked("opencode", _row("opencode mcp list"), r"agent-sandbox connected"),
    Asked("codex", CODEX, r"agent-sandbox .*enabled", "codex"),
)


class Wrong(Exception):
    """A client did not take what we wrote; the text says what it said."""


def check(asked: Asked, home: Path, environ: Mapping[str, str], url: str) -> None:
    """Install for one client over both transports, let it list its servers, and compare with its own command.

    Args:
        environ: settings of the server, its token included.
        url: a server that runs, and wants that token.

    Raises:
        NotInstalled: the client cannot be had here.
        Wrong: it does not read what we wrote, or its own command writes something else.
    """
    install(asked.client)
    person = _Person(asked, home, environ)
    for words in (("--read-only", "--provider", "local"), ("--transport", "http", "--url", url)):
        person.abx("--target", asked.target, *words)
        _is_listed(person, asked.good)
        person.abx("--target", asked.target, "--remove")
        if not asked.own_name:
            continue
        told = person.abx("--json", "--target", asked.target, *words, "--print")
        name, *own = shlex.split(json.loads(told)["add_command"])
        assert name == asked.own_name
        person.own(*own)
        plan = json.loads(person.abx("--json", "--target", asked.target, *words, "--dry-run"))
        if plan["changed"]:
            raise Wrong(f"its own command writes something else: {plan['diff']}")
        person.abx("--target", asked.target, "--remove")


def _is_listed(person: _Person, good: str) -> None:
    """Some wait five seconds for a server and no longer, which a busy machine may need to start one: ask again."""
    shown = ""
    for _time in range(4):
        shown = _COLOURS.sub("", person.own("mcp", "list"))
        if re.search(good, shown):
            return
    raise Wrong(shown[-400:])


class _Person:
    """Somebody with a home and a project of their own, who has one client."""

    def __init__(self, asked: Asked, home: Path, environ: Mapping[str, str]) -> None:
        program = node()
        how = asked.client.how
        assert program is not None
        assert isinstance(how, CommandLine)
        self._own = str(place(asked.client) / "node_modules" / how.program)
        path = os.pathsep.join((str(program.parent), "/usr/bin", "/bin"))
        self._environ = {"HOME": str(home), "PATH": path, "TERM": "dumb", **environ, **how.environ}
        self._folder = home / "project"
        self._folder.mkdir(exist_ok=True)

    def abx(self, *words: str) -> str:
        done = self._run([str(Path(sys.executable).with_name("abx")), "mcp", "install", *words])
        if done.returncode:
            raise Wrong(done.stderr[-400:])
        return done.stdout

    def own(self, *words: str) -> str:
        done = self._run([self._own, *words])
        return done.stdout + done.stderr

    def _run(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            env=self._environ,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )


def line(asked: Asked, home: Path, environ: Mapping[str, str], url: str) -> tuple[str, bool]:
    """What a report says of one client, and whether it is good."""
    try:
        check(asked, home, environ, url)
    except NotInstalled as reason:
        return f"{asked.target}: not installed here: {reason}", True
    except (Wrong, subprocess.TimeoutExpired) as reason:
        return f"{asked.target}: FAILED: {reason}", False
    return f"{asked.target}: reads what abx mcp install writes, over stdio and HTTP", True


async def report() -> bool:
    """Ask every client and print a line of each; whether all are good."""
    good = True
    with tempfile.TemporaryDirectory(prefix="cloche-clients-") as folder:
        environ = clean_environ(HOME=folder, ABX_AUDIT_FILE="off", ABX_MCP_AUTH_TOKEN=TOKEN)
        async with http_server(environ, within_s=3600) as server:
            for asked in ASKED:
                with tempfile.TemporaryDirectory(prefix="cloche-client-") as home:
                    settings = {"ABX_MCP_AUTH_TOKEN": TOKEN}
                    text, fine = await anyio.to_thread.run_sync(line, asked, Path(home), settings, server.url)
                sys.stdout.write(f"{text}\n")
                sys.stdout.flush()
                good = good and fine
    return good


if __name__ == "__main__":
    raise SystemExit(0 if anyio.run(report) else 1)
