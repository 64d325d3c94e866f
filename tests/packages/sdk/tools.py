"""The sandbox tools as a server calls them: through the contract's dispatch, with a call that records."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from cloche_contract.kernel.dispatch import Outcome, dispatch
from cloche_contract.kernel.toolset import ToolSession
from cloche_sdk import Doors, SandboxSession
from cloche_sdk.toolset import SandboxToolSet


@dataclass
class RecordedCall:
    """Keeps the images that a handler attaches, as long as they are not over the limits of a result."""

    images: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])

    async def report(self, progress: float, message: str) -> None:
        return None

    def attach_image(self, media_type: str, data: bytes) -> bool:
        if len(self.images) >= 4 or len(data) > 1_048_576:
            return False
        self.images.append((media_type, data))
        return True


async def dispatched(session: ToolSession, tool: str, arguments: Mapping[str, Any], call: RecordedCall) -> Outcome:
    """What a server answers to one call."""
    return await dispatch("sandbox", session, tool, arguments, call)


class Tools:
    """Calls tools of one session."""

    def __init__(self, session: ToolSession) -> None:
        self._session = session
        self.last_call = RecordedCall()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call that must not fail."""
        outcome = await self._dispatch(tool, arguments)
        assert not outcome[1], outcome[0]
        return outcome[0]

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The envelope of a call that must fail."""
        outcome = await self._dispatch(tool, arguments)
        assert outcome[1], outcome[0]
        return outcome[0]

    async def _dispatch(self, tool: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        self.last_call = RecordedCall()
        outcome = await dispatched(self._session, tool, arguments, self.last_call)
        return outcome.structured, outcome.is_error


@asynccontextmanager
async def open_tools(doors: Doors, template: str = "base") -> AsyncGenerator[Tools]:
    """The tools of one session."""
    async with SandboxSession(doors, template=template) as session:
        yield Tools(SandboxToolSet(session))
