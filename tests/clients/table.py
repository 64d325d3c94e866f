"""Which clients there are, where each comes from, and how it is asked: the one table that CI and the matrix read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TRANSPORTS = ("stdio", "http")


@dataclass(frozen=True)
class Target:
    """A server to start by its command, or one to reach by its URL."""

    command: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    token: str = ""


@dataclass(frozen=True)
class Program:
    """A program of ours on somebody's Python library, in tests/clients/programs; it prints what it was told."""

    file: str


@dataclass(frozen=True)
class TypeScript:
    """Our program on a TypeScript SDK; tests.inspector installs it."""

    sdk: str
    mode: str


@dataclass(frozen=True)
class Inspector:
    """The Inspector's command line; tests.inspector installs it."""


@dataclass(frozen=True)
class CommandLine:
    """An agent's own command that looks after each server of its configuration, and tells how that went."""

    program: str
    """Below the environment's node_modules."""
    arguments: Sequence[str]
    file: str
    """Its configuration, below the home."""
    configure: Callable[[Target], Mapping[str, Any]]
    good: str
    """What it prints of a server that answers; a regular expression."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    with_node: bool = False


@dataclass(frozen=True)
class Client:
    """One row of the matrix."""

    name: str
    version: str
    how: Program | TypeScript | Inspector | CommandLine
    pip: Sequence[str] = ()
    """What an environment of its own is made of; without pip and npm it is in the environment of the tests."""
    npm: Sequence[str] = ()
    after_npm: Sequence[str] = ()
    """The packages' own installation, where they need one: node, in which folder, which file."""

    @property
    def folder(self) -> str:
        """Name of its environment."""
        return self.name.lower().replace(" ", "-")


def _servers(http_type: str | None, local_type: str | None) -> Callable[[Target], Mapping[str, Any]]:
    """The configuration that most clients share: `mcpServers`, some with the type of each."""

    def configure(target: Target) -> Mapping[str, Any]:
        if target.command:
            entry = {"command": target.command[0], "args": list(target.command[1:]), "env": dict(target.environ)}
            kind = local_type
        else:
            entry = {"url": target.url, "headers": {"Authorization": f"Bearer {target.token}"}}
            kind = http_type
        return {"mcpServers": {"cloche": entry if kind is None else {"type": kind, **entry}}}

    return configure


def _opencode(target: Target) -> Mapping[str, Any]:
    if target.command:
        entry = {"type": "local", "command": list(target.command), "environment": dict(target.environ)}
    else:
        headers = {"Authorization": f"Bearer {target.token}"}
        entry = {"type": "remote", "url": target.url, "headers": headers, "oauth": False}
    return {"mcp": {"cloche": {**entry, "enabled": True}}}


CLIENTS = (
    Client("mcp", "2.3.0", Program("mcp_client.py")),
    Client("openai-agents", "0.24.0", Program("openai_agents.py")),
    Client("TypeScript SDK 1", "1.32.2", TypeScript("v1", "legacy")),
    Client("TypeScript SDK 2", "2.4.0", TypeScript("v2", "auto")),
    Client("Inspector CLI", "2.12.0", Inspector()),
    Client("fastmcp", "4.2.3", Program("fastmcp_client.py"), pip=("fastmcp==4.2.3",)),
    Client("pydantic-ai", "2.68.0", Program("pydantic_ai_toolset.py"), pip=("pydantic-ai-slim[mcp]==2.68.0",)),
    Client(
        "langchain-mcp-adapters",
        "0.3.2",
        Program("langchain_adapters.py"),
        pip=("langchain-mcp-adapters==0.3.2",),
    ),
    Client(
        "claude mcp list",
        "2.1.332",
        CommandLine(
            program="@anthropic-ai/claude-code/bin/claude.exe",
            arguments=("mcp", "list"),
            file=".claude.json",
            configure=_servers("http", "stdio"),
            good=r"cloche: .*Connected",
        ),
        npm=("@anthropic-ai/claude-code@2.1.332",),
        after_npm=("@anthropic-ai/claude-code", "install.cjs"),
    ),
    Client(
        "gemini mcp list",
        "0.61.0",
        CommandLine(
            program=".bin/gemini",
            arguments=("mcp", "list"),
            file=".gemini/settings.json",
            configure=_servers("http", None),
            good=r"cloche: .*Connected",
            environ={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
            with_node=True,
        ),
        npm=("@google/gemini-cli@0.61.0",),
    ),
    Client(
        "opencode mcp list",
        "1.18.33",
        CommandLine(
            program="opencode-ai/bin/opencode.exe",
            arguments=("mcp", "list"),
            file=".config/opencode/opencode.json",
            configure=_opencode,
            good=r"cloche .*connected",
        ),
        npm=("opencode-ai@1.18.33",),
        after_npm=("opencode-ai", "postinstall.mjs"),
    ),
)
