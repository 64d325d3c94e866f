"""What changes below a directory of a sandbox, as it happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import Any

import anyio

from cloche_contract.agent import FILESYSTEM_WATCH_DIR
from cloche_contract.errors import ProviderFailed, ProviderTimeout, ProviderUnavailable

from .data_plane import AgentChannel
from .following import PAUSES_S
from .results import FileChange

__all__ = ["AsyncWatch", "ChangeCallback", "open_watch"]

ChangeCallback = Callable[[FileChange], object]

OVERFLOW = FileChange("", "overflow")
_TYPES: Mapping[str, Any] = {
    "EVENT_TYPE_CREATE": "create",
    "EVENT_TYPE_WRITE": "write",
    "EVENT_TYPE_REMOVE": "remove",
    "EVENT_TYPE_RENAME": "rename",
    "EVENT_TYPE_CHMOD": "chmod",
}


class AsyncWatch:
    """A directory that is watched from the moment that this is there. As a context manager it ends with its block.

    Changes wait until they are asked for. Where they were more than is kept, or a connection was lost, a change
    of type `overflow` says so: look at the directory then.
    """

    def __init__(
        self, channel: AgentChannel, request: Mapping[str, Any], messages: AsyncGenerator[Mapping[str, Any], None]
    ) -> None:
        self._channel = channel
        self._request = request
        self._messages = messages

    async def next(self) -> FileChange:
        """Wait for the next change. Cancelled while it waits, the watch is over.

        Raises:
            SandboxLost, SandboxExpired: the sandbox is gone.
            FileNotFound: the connection was lost, and the directory is gone since.
        """
        while True:
            try:
                found = await anext(self._messages, None)
            except (ProviderUnavailable, ProviderTimeout):
                await self._again()
                return OVERFLOW
            if found is None:
                raise ProviderFailed
            if "filesystem" in found:
                change = found["filesystem"]
                return FileChange(str(change["name"]), _TYPES.get(str(change["type"]), "write"))
            if "overflow" in found:
                return OVERFLOW

    async def follow(self, on_change: ChangeCallback, *, timeout: float | None = None) -> bool:
        """Call `on_change` with each change until it returns False; the watch is over then.

        Args:
            timeout: seconds after which it ends anyway; left out, none.

        Returns:
            Whether the callback ended it, and not the time.

        Raises:
            SandboxLost, SandboxExpired: the sandbox is gone.
        """
        try:
            with anyio.move_on_after(timeout):
                while on_change(await self.next()) is not False:
                    pass
                return True
            return False
        finally:
            await self.close()

    async def close(self) -> None:
        """Watch no more."""
        await self._messages.aclose()

    async def __aenter__(self) -> AsyncWatch:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _again(self) -> None:
        """Watch again after a lost connection. What happened in between is missed."""
        await self._messages.aclose()
        for pause_s in PAUSES_S:
            await anyio.sleep(pause_s)
            try:
                self._messages = await _begin(self._channel, self._request)
            except (ProviderUnavailable, ProviderTimeout):
                continue
            return
        raise ProviderUnavailable


async def open_watch(channel: AgentChannel, path: str, *, recursive: bool) -> AsyncWatch:
    """Watch a directory; returns when it is watched."""
    request = {"path": path, "recursive": recursive}
    return AsyncWatch(channel, request, await _begin(channel, request))


async def _begin(channel: AgentChannel, request: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any], None]:
    messages = channel.follow(FILESYSTEM_WATCH_DIR, request)
    try:
        if (found := await anext(messages, None)) is None or "start" not in found:
            raise ProviderFailed
    except BaseException:
        await messages.aclose()
        raise
    return messages
