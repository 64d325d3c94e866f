"""What the sessions of one server share: opened providers, never anything that a client made."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
# Sandboxes are gone by then; this is about connections and helper processes.
_CLOSE_WITHIN_S = 1.0


class ServerCommons:
    """The `Commons` of one server."""

    ending = False

    def __init__(self) -> None:
        self._opened: dict[str, Any] = {}
        self._opening = anyio.Lock()
        self._stack = AsyncExitStack()

    async def get(self, key: str, open_it: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Return what is kept under the key, opened by the first who asks."""
        async with self._opening:
            if key not in self._opened:
                self._opened[key] = await self._stack.enter_async_context(open_it())
            return self._opened[key]

    async def aclose(self) -> None:
        """Close everything, after the last session has ended."""
        with anyio.move_on_after(_CLOSE_WITHIN_S, shield=True):
            await self._stack.aclose()
