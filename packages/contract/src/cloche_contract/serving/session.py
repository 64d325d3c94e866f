"""A tool session that is opened when it is first needed, and owned by one task until its end."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any

import anyio
import anyio.to_thread

from cloche_contract.kernel import plugins
from cloche_contract.kernel.registry import warm
from cloche_contract.kernel.toolset import CallObserver, ToolCall, ToolSession, ToolSetOptions

logger = logging.getLogger(__name__)


def installed_session(set_name: str, options: ToolSetOptions) -> "LazySession":
    """Return the session of an installed tool set; opening it imports the tool set."""

    def open_session() -> AbstractAsyncContextManager[ToolSession]:
        return plugins.load(plugins.TOOLSETS, set_name)(options)

    return LazySession(open_session, partial(warm, set_name))


class LazySession:
    """Opens the session of one connection at the first call that needs it.

    A server must answer `tools/list` quickly and without side effects, and a tool set may
    import much. `run` belongs into a task of its own: a session is entered and left there,
    whichever calls come and are cancelled meanwhile.
    """

    def __init__(
        self,
        open_session: Callable[[], AbstractAsyncContextManager[ToolSession]],
        warm: Callable[[], None] | None = None,
    ) -> None:
        """Take two functions that run in a worker thread and may import.

        Args:
            open_session: opens a session.
            warm: loads what later calls need; runs only when the session is opened ahead of the first call.
        """
        self._open_session = open_session
        self._warm = warm
        self._ahead = False
        self._attempt = _Attempt()
        self._wanted = anyio.Event()
        self._closing = anyio.Event()
        self._opening: anyio.CancelScope | None = None
        self.handlers = _LazyHandlers(self.get)

    def want(self) -> None:
        """Open the session soon, without waiting for it, and load what calls need."""
        self._ahead = True
        self._wanted.set()

    async def get(self) -> ToolSession:
        """Return the open session, opening it first if need be.

        Raises:
            Exception: whatever kept it from opening. The next call tries again.
        """
        attempt = self._attempt
        if attempt.session is None:
            self._wanted.set()
            await attempt.settled.wait()
        return attempt.outcome()

    async def observer(self) -> CallObserver | None:
        """Who records the calls of the session. None where it cannot be opened: the call will say why."""
        try:
            return getattr(await self.get(), "observer", None)
        except Exception:  # noqa: BLE001 - dispatch meets it again, and tells it
            return None

    def begin_close(self) -> None:
        """Start to destroy what the session owns; `run` returns when that is done."""
        self._closing.set()
        self._wanted.set()
        if self._opening is not None:
            self._opening.cancel()

    async def run(self) -> None:
        """Own the session until `begin_close`."""
        while not self._closing.is_set():
            await self._wanted.wait()
            attempt = self._attempt
            if not self._closing.is_set():
                with anyio.CancelScope() as self._opening, attempt:
                    await self._live(attempt)
                self._opening = None
            attempt.settled.set()
            self._attempt, self._wanted = _Attempt(), anyio.Event()

    async def _live(self, attempt: "_Attempt") -> None:
        manager = await anyio.to_thread.run_sync(self._open_session)
        async with manager as session:
            self._opening = None
            attempt.session = session
            attempt.settled.set()
            if self._ahead and self._warm is not None:
                await anyio.to_thread.run_sync(self._warm)
            await self._closing.wait()


class _Attempt:
    """One opening of the session; its failure belongs to the calls that wait for it."""

    def __init__(self) -> None:
        self.session: ToolSession | None = None
        self.settled = anyio.Event()
        self._error: Exception | None = None

    def outcome(self) -> ToolSession:
        if self.session is None:
            raise self._error or RuntimeError("the session was closed while it was being opened")
        return self.session

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        if self.session is None:
            self._error = error
        else:
            logger.error("a session ended with an error", exc_info=error)
        self.session = None
        return True


Handler = Callable[[Any, ToolCall], Awaitable[Any]]


class _LazyHandlers:
    """Has every handler by name; calling one opens the session first."""

    def __init__(self, get: Callable[[], Awaitable[ToolSession]]) -> None:
        self._get = get

    def __getattr__(self, name: str) -> Handler:
        async def call(request: Any, tool_call: ToolCall) -> Any:
            handler: Handler = getattr((await self._get()).handlers, name)
            return await handler(request, tool_call)

        return call
