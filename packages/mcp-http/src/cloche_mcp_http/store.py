"""The sessions of a server, found by their `Mcp-Session-Id`.

Source: checklist 154, 155, 302, 320; decision D21; faults M5, M15.
"""

import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from cloche_contract.errors import ConfigurationInvalid
from cloche_contract.kernel.doors import IdSource
from cloche_contract.serving import ToolServer
from cloche_mcp_http.session import HttpSession

logger = logging.getLogger(__name__)

OpenTools = Callable[[str | None], ToolServer]


_SERVER_ID = re.compile(r"[A-Za-z0-9]{1,32}")


class ServerIds:
    """Session ids that start with the name of their server, so that a proxy can route by them."""

    def __init__(self, server_id: str, ids: IdSource) -> None:
        """Take the name.

        Raises:
            ConfigurationInvalid: it is not 1 to 32 letters and digits.
        """
        if not _SERVER_ID.fullmatch(server_id):
            raise ConfigurationInvalid(setting="server_id")
        self._server_id = server_id
        self._ids = ids

    def new_id(self) -> str:
        """A fresh id."""
        return f"{self._server_id}-{self._ids.new_id()}"


class SessionLimit(Exception):
    """As many sessions as are allowed are open."""


class SessionStore:
    """Opens, finds and ends sessions. Between two of them nothing is shared."""

    def __init__(self, open_tools: OpenTools, *, idle_ttl_s: float, max_sessions: int, ids: IdSource) -> None:
        self._open_tools = open_tools
        self._idle_ttl_s = idle_ttl_s
        self.max_sessions = max_sessions
        self._ids = ids
        self._sessions: dict[str, HttpSession] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._closing = False

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def accepting(self) -> bool:
        """Whether clients may come: the server has started and does not end."""
        return self._tasks is not None and not self._closing

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["SessionStore", None]:
        """Own the sessions; leaving ends all of them and waits until they are destroyed."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield self
            finally:
                self.begin_close()

    def begin_close(self) -> None:
        """Start to end every session. New ones are refused from now on."""
        self._closing = True
        for session in list(self._sessions.values()):
            session.end()

    async def open(self, principal: str | None) -> HttpSession:
        """Make a session for a client that says hello.

        Raises:
            SessionLimit: the limit is reached, or the server is ending.
        """
        if self._tasks is None or self._closing or len(self._sessions) >= self.max_sessions:
            raise SessionLimit
        session = HttpSession(self._ids.new_id(), principal, self._open_tools(principal), self._idle_ttl_s)
        self._sessions[session.id] = session
        await self._tasks.start(self._own, session)
        return session

    def find(self, session_id: str, principal: str | None) -> HttpSession | None:
        """The session of that id, if this principal opened it and it is not ending."""
        session = self._sessions.get(session_id)
        if session is None or session.ending or session.principal != principal:
            return None
        return session

    async def _own(
        self, session: HttpSession, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        try:
            await session.run(task_status=task_status)
        except Exception:
            # One client's session must not take the others down with it.
            logger.exception("a session failed")
        finally:
            del self._sessions[session.id]
