"""What each program does with its library: list the tools, run code, read a file that is not there.

The programs run in environments of their own, where nothing of ours is installed: standard library only.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Target:
    """A server to start, or one to reach by its URL."""

    command: list[str]
    environ: dict[str, str]
    url: str
    token: str


class Session(Protocol):
    """A library that is connected."""

    async def tools(self) -> list[str]:
        """The names of the tools."""
        ...

    async def call(self, tool: str, arguments: dict[str, str]) -> str:
        """The text of a result, also where it is an error."""
        ...


def run(connect: Callable[[Target], AbstractAsyncContextManager[Session]]) -> None:
    """Ask each target of the command line, and print what came as JSON, by its name."""
    targets = {name: Target(**target) for name, target in json.loads(sys.argv[1]).items()}

    async def ask_all() -> dict[str, object]:
        return {name: await ask(connect, target) for name, target in targets.items()}

    print(json.dumps(asyncio.run(ask_all())))


async def ask(connect: Callable[[Target], AbstractAsyncContextManager[Session]], target: Target) -> dict[str, object]:
    async with connect(target) as session:
        tools = await session.tools()
        ran = json.loads(await session.call("run_code", {"code": "print(6 * 7)"}))
        failed = json.loads(await session.call("read_file", {"path": "/no/such/file"}))
        return {"tools": tools, "stdout": ran["stdout"], "error": failed["code"]}
