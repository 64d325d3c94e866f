"""Follows a process to its end, over as many connections as that takes.

The agent keeps what a process prints and knows each byte by its position. When a connection is lost
while the sandbox lives, the next one asks for what came after the last byte that arrived: nothing is
lost and nothing comes twice.

Source: issue 3, item 4; faults T16, T21, T29.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any

import anyio

from cloche_contract.agent import PROCESS_CONNECT
from cloche_contract.errors import (
    ClocheError,
    CommandTimeout,
    ProviderFailed,
    ProviderTimeout,
    ProviderUnavailable,
    SandboxExpired,
    SandboxLost,
)

from .data_plane import AgentChannel
from .endings import raise_for_end
from .process_reader import ProcessReader
from .results import CommandResult

__all__ = ["Following", "Messages", "read_to_end"]

Messages = AsyncGenerator[Mapping[str, Any], None]

# How long the rest of an answer is waited for once the end of the process was told.
END_GRACE_S = 1.0
PAUSES_S = (0.05, 0.2, 0.5, 1.0, 2.0)


async def read_to_end(messages: Messages, reader: ProcessReader) -> None:
    """Take messages until the process has ended.

    Raises:
        ClocheError: the stream was cut before the end.
    """
    async for found in messages:
        reader.take(found)
        if reader.ended:
            await leave(messages)
            return


async def leave(messages: Messages) -> None:
    """Read what is left of a stream that told its end: the connection can be used again then.

    Whoever holds it open is not waited for, and how it is cut says nothing any more.
    """
    with anyio.move_on_after(END_GRACE_S), suppress(ClocheError):
        async for _ in messages:
            pass


class Following:
    """One process, its reader, and the stream that is open now."""

    def __init__(
        self, channel: AgentChannel, reader: ProcessReader, messages: Messages, selector: Mapping[str, Any]
    ) -> None:
        self.reader = reader
        self._channel = channel
        self._messages = messages
        self._selector = selector
        self._lost = 0

    @classmethod
    async def begin(
        cls,
        channel: AgentChannel,
        reader: ProcessReader,
        path: str,
        message: Mapping[str, Any],
        headers: Mapping[str, str],
        selector: Mapping[str, Any] | None = None,
    ) -> Following:
        """Send the request that starts or finds the process; returns when its pid is known.

        Args:
            selector: how the agent finds it again; by its pid where left out.
        """
        messages = channel.follow(path, message, headers)
        try:
            async for found in messages:
                reader.take(found)
                if reader.pid is not None:
                    return cls(channel, reader, messages, selector or {"pid": reader.pid})
        except BaseException:
            await messages.aclose()
            raise
        raise ProviderFailed

    @property
    def selector(self) -> Mapping[str, Any]:
        """How the agent finds the process."""
        return self._selector

    async def step(self) -> bool:
        """Take the next message; False when the process has ended.

        Raises:
            CommandTimeout, SandboxLost, SandboxExpired: it was stopped, or its sandbox ended.
            ProcessNotFound: the connection was lost, and its end is no longer known.
            ProviderUnavailable, ProviderTimeout: the connection was lost, again and again.
        """
        while not self.reader.ended:
            try:
                found = await anext(self._messages, None)
            except (ProviderUnavailable, ProviderTimeout):
                await self._again()
                continue
            if found is None:
                # Every stream tells the end first, or fails.
                raise ProviderFailed
            self._lost = self._lost if "start" in found.get("event", {}) else 0
            self.reader.take(found)
            return True
        return False

    async def next_output(self) -> bytes:
        """Wait for output; empty when the process has ended.

        Raises:
            As `step`.
        """
        while await self.step():
            if piece := self.reader.take_fresh():
                return piece
        await leave(self._messages)
        return b""

    async def to_end(self) -> CommandResult:
        """Wait for the end.

        Raises:
            CommandTimeout: it took too long; `result` holds the output so far.
            CommandInterrupted: the sandbox ended while it ran.
            As `step`, but for these.
        """
        try:
            while await self.step():
                pass
            await leave(self._messages)
            result = self.reader.result()
        except CommandTimeout:
            result = self.reader.result("timeout")
        except (SandboxLost, SandboxExpired):
            result = self.reader.result("sandbox_lost")
        finally:
            await self.aclose()
        raise_for_end(result)
        return result

    async def aclose(self) -> None:
        """Close the stream. The process goes on."""
        await self._messages.aclose()

    async def _again(self) -> None:
        """Connect again, where the last connection ended."""
        if self._lost >= len(PAUSES_S):
            raise ProviderUnavailable
        await self._messages.aclose()
        await anyio.sleep(PAUSES_S[self._lost])
        self._lost += 1
        message = {"process": self._selector, "offset": self.reader.offset}
        self._messages = self._channel.follow(PROCESS_CONNECT, message)
