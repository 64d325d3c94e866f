"""The workspace as file operations see it: every layer at once, and each change a layer of its own.

The keeper mounts the layers that are in force over the workspace, in a mount namespace of its own. What a file
operation writes there is published before it is answered; when somebody else has published, the next operation sees
that. Without layers everything is simply where it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from . import overlay
from .config import WorkspacePlace
from .failures import AgentError
from .layers.door import names, open_folder
from .layers.store import LAYERS, SESSIONS

if TYPE_CHECKING:
    from .workspaces import Workspaces

logger = logging.getLogger(__name__)

T = TypeVar("T")
_ATTEMPTS: Final = 4
_UPLOADS: Final = "uploads"


class FilesView(Protocol):
    """What file operations need to know of a workspace."""

    staging: str
    """Where a file waits until it is whole; empty: beside its place."""

    def covers(self, path: str) -> bool:
        """Whether a resolved path is in a workspace of layers."""
        ...

    def reading(self) -> AbstractAsyncContextManager[None]:
        """Look at files: inside, they are as they were last published."""
        ...

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something to files, and return when everybody sees it. It may be done again; its failure undoes it."""
        ...


class PlainView:
    """A sandbox whose files are where they are."""

    staging = ""

    def covers(self, path: str) -> bool:
        del path
        return False

    def reading(self) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        return await work()


class LayeredView:
    """The keeper's own mount of the layers. One operation after the other."""

    def __init__(self, place: WorkspacePlace, workspaces: Workspaces) -> None:
        self._place = place
        self._workspaces = workspaces
        self._lock = asyncio.Lock()
        self._session = ""
        self._version = -1
        self._own_fds = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.staging = os.path.join(place.store, _UPLOADS)
        os.makedirs(self.staging, mode=0o700, exist_ok=True)

    def covers(self, path: str) -> bool:
        return path == self._place.target or path.startswith(self._place.target.rstrip("/") + "/")

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncGenerator[None]:
        async with self._lock:
            await self._refresh()
            yield

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            for _ in range(_ATTEMPTS):
                await self._refresh()
                try:
                    result = await work()
                    if not self._written() or await self._publish():
                        return result
                except BaseException:
                    if self._written():
                        await asyncio.shield(self._drop())
                    raise
        text = "somebody else changes the same files of the workspace all the time"
        raise AgentError("aborted", text, "workspace_conflict")

    async def let_go(self) -> None:
        """Hold no layers, until the next operation."""
        async with self._lock:
            await self._drop()

    # -- the mount ----------------------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        """Have the layers that are in force mounted."""
        if self._session and self._version == self._workspaces.version:
            return
        await self._drop()
        session_id = f"files_{uuid.uuid4().hex[:16]}"
        facts = await self._workspaces.call({"op": "view", "session_id": session_id})
        try:
            self._mount(session_id, cast("list[str]", facts["layer_ids"]))
        except OSError as error:
            await self._workspaces.call({"op": "discard", "session_id": session_id})
            logger.warning("the workspace cannot be mounted", extra={"error": error.errno})
            raise AgentError("internal", "the layers could not be mounted", "overlay_failed") from error
        self._session, self._version = session_id, self._workspaces.version

    def _mount(self, session_id: str, layer_ids: list[str]) -> None:
        opened: list[int] = []
        try:
            root = _opened(opened, os.open(self._place.store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            layers = _opened(opened, open_folder(root, LAYERS))
            lower = [_opened(opened, open_folder(layers, each)) for each in layer_ids]
            lower.append(_opened(opened, os.open(self._place.base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)))
            sessions = _opened(opened, open_folder(root, SESSIONS))
            session = _opened(opened, open_folder(sessions, session_id))
            upper, work = (_opened(opened, open_folder(session, name)) for name in ("upper", "work"))
            overlay.mount_overlay(self._own_fds, lower, upper, work, self._place.target)
        finally:
            for fd in opened:
                os.close(fd)

    def _written(self) -> bool:
        if not self._session:
            return False
        root = os.open(f"{self._place.store}/{SESSIONS}/{self._session}/upper", os.O_RDONLY | os.O_DIRECTORY)
        try:
            return bool(names(root))
        finally:
            os.close(root)

    async def _publish(self) -> bool:
        """Publish what was written; False where somebody else was first, and nothing of it is left."""
        overlay.detach(self._place.target)
        session, self._session = self._session, ""
        try:
            result = await self._workspaces.publish(session)
        except BaseException:
            await asyncio.shield(self._discard(session))
            raise
        if result["outcome"] != "rejected":
            return True
        await self._discard(session)
        if result.get("reject_class") != "source_conflict":
            logger.warning("a change was refused", extra={"why": result.get("reject_class")})
            raise AgentError("failed_precondition", "the layers cannot take this change", "internal_error")
        return False

    async def _drop(self) -> None:
        session, self._session = self._session, ""
        if session:
            overlay.detach(self._place.target)
            await self._discard(session)

    async def _discard(self, session: str) -> None:
        await self._workspaces.call({"op": "discard", "session_id": session})


def _opened(fds: list[int], fd: int) -> int:
    fds.append(fd)
    return fd
