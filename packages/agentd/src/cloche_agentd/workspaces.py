"""Workspace sessions and layers, as clients see them: the keeper's side of the workspace host."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import logging
import os
import signal
import socket
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import cast

from . import connect, fields, limits
from ._gen.errors import ERRORS
from .config import AgentConfig, User, WorkspacePlace
from .exchange import Exchange
from .failures import AgentError
from .link import InitLink, LinkLost, open_link
from .processes import Process, Processes
from .server import run_in_background
from .spawner import Launch, Spawner
from .workspace_view import LayeredView

logger = logging.getLogger(__name__)

Json = Mapping[str, object]
_UNKNOWN = "there is no such workspace session"


class Session:
    """A place to run commands: a workspace session, or none."""

    def __init__(self, session_id: str = "", *, implicit: bool = False) -> None:
        self.session_id = session_id
        self.implicit = implicit
        self.facts: Json = {}
        self.created_at = ""
        self.processes: set[Process] = set()
        self.gone = False
        self.settled = False
        """Whether everything that it wrote is published, although it lives on."""
        self.conclude: Callable[[], Awaitable[bytes]] | None = None
        self.abandon: Callable[[], Awaitable[None]] | None = None
        self.lock = asyncio.Lock()
        """Held while a command starts in it, and while it is published, moved or destroyed."""

    def place(self, launch: Launch) -> Launch:
        """Return the launch, in here."""
        return replace(launch, session=self.session_id) if self.session_id else launch

    def admission(self) -> AbstractAsyncContextManager[None]:
        """Start a command in here; one that cannot be started leaves no implicit session behind."""
        return self._admit() if self.session_id else contextlib.nullcontext()

    def began(self, process: Process) -> None:
        """A command runs in it now."""
        if self.session_id:
            self.processes.add(process)
            process.ended.add_done_callback(lambda _: self.processes.discard(process))

    @contextlib.asynccontextmanager
    async def _admit(self) -> AsyncGenerator[None]:
        try:
            async with self.lock:
                if self.gone:
                    raise AgentError("not_found", _UNKNOWN, "workspace_session_not_found")
                yield
        except BaseException:
            if self.abandon is not None and not self.processes:
                await self.abandon()
            raise

    def value(self) -> Json:
        """Return the message that describes it."""
        return {
            "session_id": self.session_id,
            **self.facts,
            "implicit": self.implicit,
            "created_at": self.created_at,
            "processes": len(self.processes),
        }


def no_session(request: Json) -> Session:
    """Return the place of commands in a sandbox without layers.

    Raises:
        AgentError: the request names a session.
    """
    if fields.text(request, "workspaceSession", ""):
        raise AgentError("unimplemented", "this sandbox has no layers", "unsupported_operation")
    return Session()


class Workspaces:
    """Answers the Layers RPCs, and gives commands their session."""

    def __init__(
        self,
        link: socket.socket,
        config: AgentConfig,
        spawner: Spawner,
        processes: Processes,
        tasks: asyncio.TaskGroup,
        workspace_place: WorkspacePlace | None = None,
    ) -> None:
        self._config = config
        self._spawner = spawner
        self._processes = processes
        self._tasks = tasks
        self._host = InitLink(link, lambda: None)
        self._sessions: dict[str, Session] = {}
        self._squashing = False
        self.version = 0
        """The manifest that was in force when the host was last heard of."""
        place = workspace_place
        self.view = None if place is None else LayeredView(place, self)
        self.unary = {
            "CreateSession": self._create_session,
            "ListSessions": self._list_sessions,
            "PublishSession": self._publish_session,
            "DestroySession": self._destroy_session,
            "Squash": self._squash,
            "Status": self._status,
        }

    def close(self) -> None:
        """End the host, and every session with it."""
        self._host.close()

    async def enter(self, request: Json) -> Session:
        """Return the session that a command shall run in: the one that it names, or one for it alone.

        Raises:
            AgentError: there is no such session, or none could be made.
        """
        session_id = fields.text(request, "workspaceSession", "")
        return self._known(session_id) if session_id else await self.enter_alone("command")

    async def enter_alone(self, what: str) -> Session:
        """Return a session for one command, task or context, which `settle` publishes and destroys.

        Raises:
            AgentError: none could be made.
        """
        return await self._create(f"{what}_{uuid.uuid4().hex[:16]}", implicit=True)

    def _known(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None or session.gone:
            raise AgentError("not_found", _UNKNOWN, "workspace_session_not_found")
        return session

    # -- the host -----------------------------------------------------------------------------------------------

    async def call(self, request: Json, fds: Sequence[int] = ()) -> Json:
        """Ask the host.

        Raises:
            AgentError: it refused, or is gone.
        """
        try:
            reply = await self._host.call(request, fds, patience_s=limits.WORKSPACE_PATIENCE_S)
        except LinkLost:
            raise AgentError("unavailable", "the workspace host is gone", "sandbox_lost") from None
        code = reply.get("error")
        if isinstance(code, str):
            spec = ERRORS[code]
            logger.warning("the workspace host refused", extra={"code": code, "detail": reply.get("detail", "")})
            raise AgentError(spec.connect, spec.message, code, status=spec.http)
        self._note(reply)
        return reply

    def _note(self, told: Json) -> None:
        version = told.get("manifest_version")
        # An answer that was sent before another may be read after it.
        self.version = max(self.version, version) if isinstance(version, int) else self.version

    async def _ask(self, request: Json) -> dict[str, object]:
        """Call, with an answer of any size: it comes in a file, not in the message."""
        beside = os.memfd_create("answer", os.MFD_CLOEXEC)
        try:
            await self.call(request, (beside,))
            with os.fdopen(os.dup(beside), "rb") as stream:
                stream.seek(0)
                told = cast("dict[str, object]", json.load(stream))
            self._note(told)
            return told
        finally:
            os.close(beside)

    # -- sessions -----------------------------------------------------------------------------------------------

    async def _create(self, session_id: str, *, implicit: bool) -> Session:
        if len(self._sessions) >= limits.WORKSPACE_SESSIONS:
            text = f"there are {limits.WORKSPACE_SESSIONS} sessions; publish or destroy one first"
            raise AgentError("resource_exhausted", text, "workspace_session_limit")
        session = self._sessions[session_id] = Session(session_id, implicit=implicit)
        if implicit:
            session.conclude = lambda: self._conclude(session)
            session.abandon = lambda: self._abandon(session)
        async with session.lock:
            try:
                await self._open(session)
            except BaseException:
                self._forget(session)
                run_in_background(self._tasks, self.call({"op": "discard", "session_id": session_id}))
                raise
        now = datetime.datetime.fromtimestamp(self._config.clock(), datetime.UTC)
        session.created_at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return session

    async def _open(self, session: Session) -> None:
        keeper_end, init_end = open_link()
        try:
            reply = await self.call({"op": "open", "session_id": session.session_id}, (init_end.fileno(),))
        except BaseException:
            keeper_end.close()
            raise
        finally:
            init_end.close()
        session.facts = {key: reply[key] for key in ("manifest_version", "layer_ids")}
        self._spawner.open_session(session.session_id, keeper_end, lambda: self._lost(session))

    def _lost(self, session: Session) -> None:
        """A session's init is gone, and nobody asked for it."""
        if not session.gone and not session.lock.locked():
            self._forget(session)
            run_in_background(self._tasks, self.call({"op": "discard", "session_id": session.session_id}))

    def _forget(self, session: Session) -> None:
        session.gone = True
        self._spawner.close_session(session.session_id)
        if self._sessions.get(session.session_id) is session:
            del self._sessions[session.session_id]

    async def _create_session(self, request: Json, _user: User) -> Json:
        fields.declared("CreateSessionRequest", request)
        session_id = fields.text(request, "session_id", "") or f"workspace_{uuid.uuid4().hex[:16]}"
        session = self._sessions.get(session_id)
        if session is None:
            return (await self._create(session_id, implicit=False)).value()
        async with session.lock:
            return self._known(session_id).value()

    async def _list_sessions(self, _request: Json, _user: User) -> Json:
        return {"sessions": self._listed()}

    def _listed(self) -> list[Json]:
        return [session.value() for session in self._sessions.values() if session.created_at]

    async def _destroy_session(self, request: Json, _user: User) -> Json:
        fields.declared("SessionRequest", request)
        session_id = fields.text(request, "session_id")
        session = self._sessions.get(session_id)
        if session is None:
            return {"session_id": session_id, "existed": False}
        async with session.lock:
            existed = not session.gone
            if existed:
                await self._quiet(session, 0.0)
                await self._discard(session)
        return {"session_id": session_id, "existed": existed}

    async def _discard(self, session: Session) -> None:
        self._forget(session)
        await self.call({"op": "discard", "session_id": session.session_id})

    async def _abandon(self, session: Session) -> None:
        async with session.lock:
            if not session.gone:
                await self._discard(session)

    async def _quiet(self, session: Session, grace_s: float) -> None:
        """End everything that runs in a session: a hangup, then, after the grace, the end."""
        running = list(session.processes)
        if running and grace_s:
            for process in running:
                with contextlib.suppress(AgentError):
                    await self._processes.signal(process, signal.SIGHUP)
            await asyncio.wait([process.ended for process in running], timeout=grace_s)
        await self._spawner.kill_session(session.session_id)
        ending = [process.ended for process in running if not process.ended.done()]
        if ending:
            await asyncio.wait(ending, timeout=limits.WORKSPACE_END_S)

    # -- publishing ---------------------------------------------------------------------------------------------

    async def _publish_session(self, request: Json, _user: User) -> Json:
        fields.declared("PublishSessionRequest", request)
        session = self._known(fields.text(request, "session_id"))
        async with session.lock:
            self._known(session.session_id)
            await self._quiet(session, fields.whole(request, "grace_ms", 0) / 1000)
            return await self._publish(session)

    async def _publish(self, session: Session) -> Json:
        """Publish a session in which nothing runs; one that was refused lives on."""
        try:
            result = await self.publish(session.session_id)
        except AgentError:
            # Its tree is whole; its processes may be gone.
            self._spawner.close_session(session.session_id)
            with contextlib.suppress(AgentError):
                await self._open(session)
            raise
        if result["outcome"] != "rejected":
            self._forget(session)
        return result

    async def publish(self, session_id: str) -> Json:
        """Publish a session in which nothing runs.

        Raises:
            AgentError: the host refused; the session's tree is whole.
        """
        result = await self._ask({"op": "publish", "session_id": session_id})
        self._make_room(result)
        return result

    def _make_room(self, result: dict[str, object]) -> None:
        """Squash before there are too many layers: who publishes with every command knows of none."""
        count = result.pop("layers", 0)
        if self.view is not None and cast("int", count) >= limits.WORKSPACE_LAYERS and not self._squashing:
            run_in_background(self._tasks, self._squash({}, None))

    async def advance(self, session: Session, *, written: bool) -> Json:
        """Publish what a session wrote, and show it what others have published; its processes live on.

        Args:
            written: something may have been written since the last time.

        Raises:
            AgentError: the session is gone.
        """
        async with session.lock:
            self._known(session.session_id)
            if not written and session.facts["manifest_version"] == self.version:
                return {}
            result = await self._ask({"op": "advance", "session_id": session.session_id})
            self._make_room(result)
            layer_ids = result.pop("layer_ids", session.facts["layer_ids"])
            session.facts = {"manifest_version": result["manifest_version"], "layer_ids": layer_ids}
            session.settled = result["outcome"] != "pending"
            return result

    async def _conclude(self, session: Session) -> bytes:
        return connect.message({"event": {"published": await self.settle(session)}})

    async def settle(self, session: Session) -> Json:
        """What an implicit session was for has ended: publish what it did, and leave nothing of it."""
        session.processes.clear()
        async with session.lock:
            try:
                await self._quiet(session, 0.0)
                result = await self._publish(session)
            except AgentError:
                version = session.facts["manifest_version"]
                result = {"session_id": session.session_id, "outcome": "rejected", "manifest_version": version}
            if not session.gone:
                with contextlib.suppress(AgentError):
                    await self._discard(session)
        return result

    # -- the stack ----------------------------------------------------------------------------------------------

    async def _squash(self, _request: Json, _user: User | None) -> Json:
        if self._squashing:
            spec = ERRORS["squash_in_flight"]
            raise AgentError(spec.connect, spec.message, "squash_in_flight", status=spec.http)
        self._squashing = True
        try:
            if self.view is not None:
                await self.view.let_go()
            done = await self._ask({"op": "squash"})
            swept = [await self._sweep(session) for session in list(self._sessions.values())]
            kept = set(cast("list[str]", (await self._ask({"op": "reclaim"}))["kept"]))
        finally:
            self._squashing = False
        result: dict[str, object] = {
            "manifest_version": done["manifest_version"],
            "squashed_blocks": [
                _block(block, kept, swept) for block in cast("list[dict[str, object]]", done["blocks"])
            ],
            "swept_sessions": swept,
        }
        faulty = [each for each in swept if each["disposition"] == "faulty"]
        if faulty:
            result["faulty_sessions"] = [
                {"session_id": each["session_id"], "class_detail": each.get("reason", "")} for each in faulty
            ]
        return result

    async def _sweep(self, session: Session) -> dict[str, object]:
        """Move one session onto the new layers, unless it is in use."""
        named: dict[str, object] = {"session_id": session.session_id}
        async with session.lock:
            if session.gone:
                return {**named, "disposition": "session_gone"}
            request = {"op": "migrate", "session_id": session.session_id, "busy": bool(session.processes)}
            said = await self.call(request)
            if said["disposition"] in ("faulty", "session_gone"):
                self._forget(session)
            elif said["disposition"] == "migrated":
                session.facts = {key: said[key] for key in ("manifest_version", "layer_ids")}
            return {**named, **{key: said[key] for key in ("disposition", "reason") if key in said}}

    async def _status(self, _request: Json, _user: User) -> Json:
        return {**await self._ask({"op": "status"}), "sessions": self._listed()}

    # -- export -------------------------------------------------------------------------------------------------

    async def export(self, exchange: Exchange) -> None:
        """Stream every layer above the base as one list of changes."""
        body = await exchange.read_body(limits.JSON_BODY_BYTES)
        request = fields.declared("ExportRequest", connect.parse_object(body) if body else {})
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            try:
                names_only = fields.flag(request, "names_only")
                live = [session.session_id for session in self._sessions.values() if not session.settled]
                asked = {"op": "export", "session_ids": live, "names_only": names_only}
                await self.call(asked, (write_end,))
            finally:
                os.close(write_end)
            os.set_blocking(read_end, False)
            exchange.begin(200, "application/octet-stream")
            while data := await _read(read_end):
                exchange.write(data)
                await exchange.drain()
            exchange.finish()
        finally:
            os.close(read_end)


async def _read(pipe: int) -> bytes:
    """Return the next bytes of a pipe; nothing at its end."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(pipe, limits.EXPORT_PIECE_BYTES)
        except BlockingIOError:
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_reader(pipe, _tell, ready)
            try:
                await ready
            finally:
                loop.remove_reader(pipe)


def _tell(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _block(block: dict[str, object], kept: set[str], swept: Sequence[Mapping[str, object]]) -> Json:
    replaced = cast("list[str]", block["replaced_layer_ids"])
    if not kept.intersection(replaced):
        return {**block, "replaced_layers": "reclaimed"}
    reasons = {f"{each['session_id']}: {each['reason']}" for each in swept if each["disposition"] == "leased"}
    return {**block, "replaced_layers": "leased", "blocked_reasons": sorted(reasons) or ["somebody reads them"]}
