"""Interpreters of a sandbox, each with variables of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from cloche_contract import agent
from cloche_contract.agent import (
    HEADER_SANDBOX_PORT,
    ROUTE_CONTEXTS,
    ROUTE_INTERRUPT_CONTEXT,
    ROUTE_REMOVE_CONTEXT,
    ROUTE_RESTART_CONTEXT,
)
from cloche_contract.errors import ProviderFailed

from .data_plane import AgentChannel, agent_client, answered
from .link import SandboxLink
from .requests import build
from .results import CodeContext

__all__ = ["AsyncContexts"]

INTERPRETER_PORT = "49999"

_TO_INTERPRETER: Mapping[str, str] = {HEADER_SANDBOX_PORT: INTERPRETER_PORT}


class AsyncContexts:
    """Makes and manages the interpreters of one sandbox.

    Each has a process, a working directory and variables of its own, and runs one piece of code at a time. Those that
    `run_code` uses without a context are there too; their ids are the names of their languages.
    """

    def __init__(self, link: SandboxLink) -> None:
        self._channel = AgentChannel(link)

    async def create(self, language: str = "python", *, cwd: str | None = None) -> CodeContext:
        """Make an interpreter, for `run_code(…, context=…)`.

        Args:
            language: one that keeps its variables: python, and javascript or typescript where the template has them.
            cwd: its working directory; the template's when left out.

        Raises:
            UnsupportedLanguage: the template has none for it that keeps its variables.
            CwdNotFound: there is no such directory.
            ContextLimit: the sandbox has as many as it may have.
        """
        request = build(agent.CreateContextRequest, language=language, cwd=cwd)
        made = await answered(agent_client(self._channel).interpreter_create_context(request, headers=_TO_INTERPRETER))
        return CodeContext(made.id, made.language, made.cwd)

    async def list(self) -> tuple[CodeContext, ...]:
        """Every interpreter of the sandbox."""
        found = await self._channel.plain("GET", ROUTE_CONTEXTS, headers=_TO_INTERPRETER)
        if not isinstance(found, list):
            raise ProviderFailed
        return tuple(map(_context, cast("list[object]", found)))

    async def restart(self, context: CodeContext | str) -> None:
        """End an interpreter and what it runs; the next code in it finds a fresh one.

        Raises:
            ContextNotFound: there is no such interpreter.
        """
        await self._channel.plain("POST", _path(ROUTE_RESTART_CONTEXT, context), headers=_TO_INTERPRETER)

    async def remove(self, context: CodeContext | str) -> None:
        """End an interpreter and what it runs. Those of the languages come back when they are used.

        Raises:
            ContextNotFound: there is no such interpreter.
        """
        await self._channel.plain("DELETE", _path(ROUTE_REMOVE_CONTEXT, context), headers=_TO_INTERPRETER)

    async def interrupt(self, context: CodeContext | str) -> bool:
        """Interrupt what an interpreter runs, as Ctrl+C would; its variables are kept where it takes that.

        Returns:
            Whether something ran. That call of `run_code` ends with stop reason `cancelled`.

        Raises:
            ContextNotFound: there is no such interpreter.
        """
        told = await self._channel.plain("POST", _path(ROUTE_INTERRUPT_CONTEXT, context), headers=_TO_INTERPRETER)
        return isinstance(told, dict) and cast("dict[str, object]", told).get("interrupted") is True


def _path(route: str, context: CodeContext | str) -> str:
    identity = context.id if isinstance(context, CodeContext) else context
    return route.format(context_id=quote(identity, safe=""))


def _context(value: object) -> CodeContext:
    try:
        found = cast("Mapping[str, Any]", value)
        return CodeContext(str(found["id"]), str(found["language"]), str(found["cwd"]))
    except (KeyError, TypeError):
        raise ProviderFailed from None
