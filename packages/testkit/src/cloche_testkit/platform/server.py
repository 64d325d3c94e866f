"""The server of the reference platform: one port for the control plane and for the traffic to all sandboxes."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import anyio
from anyio.abc import ByteReceiveStream, ByteStream, SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import ValidationError

from cloche_contract.errors import ClocheError, NotFound
from cloche_contract.http import (
    HEADER_API_KEY,
    HEADER_IDEMPOTENCY_KEY,
    HEADER_NEXT_TOKEN,
    HEADER_SANDBOX_ID,
    ROUTES,
    NewSandbox,
    Pause,
    Route,
    Timeout,
)
from cloche_contract.lifecycle import AgentEndpoint, SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    GetRequest,
    KillRequest,
    SandboxProvider,
    SetTimeoutRequest,
)
from cloche_testkit.platform.faults import Faults, go_wrong
from cloche_testkit.platform.own_agent import answer_as_their_agent
from cloche_testkit.platform.wire import FILE_LIMIT, Seen, answer, read_body, read_head

API_KEY = "e2b_" + "0" * 40
PAGE = 100
AGENT_VERSION = "0.6.13"

T = TypeVar("T")


@dataclass
class Held:
    """A sandbox of the platform: what was asked for, and what stands behind it."""

    sandbox_id: str
    asked: Mapping[str, Any]
    record: SandboxRecord
    number: int
    paused: bool = False


class Refused(Exception):
    """The request is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ReferencePlatform:
    """Serves the API over sandboxes of the provider behind it.

    Attributes:
        seen: every request of the control plane, in order, with the name of its route.
        data_plane: every request that went to an agent.
        versions: which versions of create, list and connect it has.
        domain: what it tells as the domain of its sandboxes, if anything.
        additions: whether its agents know what this project adds to the protocol. Without, they answer as E2B's own do.
    """

    def __init__(
        self,
        behind: SandboxProvider,
        *,
        api_key: str = API_KEY,
        versions: frozenset[int] = frozenset({1, 2}),
        domain: str | None = None,
        additions: bool = True,
    ) -> None:
        self.api_key = api_key
        self.versions = versions
        self.domain = domain
        self.additions = additions
        self.seen: list[tuple[str, Seen]] = []
        self.data_plane: list[Seen] = []
        self.faults = Faults()
        self.page_size = PAGE
        self._behind = behind
        self._held: dict[str, Held] = {}
        self._by_key: dict[str, tuple[object, Held]] = {}
        self._number = 0
        self.port = 0
        self._connections = 0
        self._closed = anyio.Event()

    @property
    def url(self) -> str:
        """Its address: of the API, and of all its sandboxes."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> list[str]:
        """Ids of the sandboxes that there are."""
        return list(self._held)

    @property
    def calls(self) -> list[str]:
        """Names of the routes that were called, in order."""
        return [name for name, _ in self.seen]

    def pause(self, sandbox_id: str) -> None:
        """Pause a sandbox: its agent does not answer until somebody connects."""
        self._held[sandbox_id].paused = True

    def is_paused(self, sandbox_id: str) -> bool:
        """Whether nobody has resumed it."""
        return self._held[sandbox_id].paused

    async def no_connection(self) -> None:
        """Wait until no client has a connection open."""
        while self._connections:
            await self._closed.wait()

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator["ReferencePlatform"]:
        """Answer on a free port of the loopback address; at the end every sandbox is destroyed."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = int(listener.extra(SocketAttribute.local_port))
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._connection)
            try:
                yield self
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await self._clear()

    async def _clear(self) -> None:
        for held in list(self._held.values()):
            await self._kill(held)

    async def _connection(self, stream: SocketStream) -> None:
        self._connections += 1
        try:
            await self._requests(stream)
        finally:
            self._connections -= 1
            closed, self._closed = self._closed, anyio.Event()
            closed.set()

    async def _requests(self, stream: SocketStream) -> None:
        async with stream:
            buffered = BufferedByteReceiveStream(stream)
            try:
                while (seen := await read_head(buffered)) is not None:
                    if HEADER_SANDBOX_ID.lower() in seen.headers:
                        await self._to_agent(seen, buffered, stream)
                        return
                    body = await read_body(buffered, seen)
                    if body is None or not await self._control(replace(seen, body=body), stream):
                        return
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                return

    # The control plane

    async def _control(self, seen: Seen, stream: SocketStream) -> bool:
        """Answer one request; False where the connection is over."""
        found = self._route(seen)
        if found is None:
            await stream.send(answer(404, _error(404, "no such route")))
            return True
        route, values = found
        self.seen.append((route.name, seen))
        fault = self.faults.next(route.name)
        if fault is not None and not fault.after:
            await go_wrong(stream, fault)
            return False
        told = await _while_connected(stream, lambda: self._answer(route, values, seen))
        if told is None:
            return False
        if fault is not None:
            await go_wrong(stream, fault)
            return False
        await stream.send(told)
        return True

    def _route(self, seen: Seen) -> tuple[Route, dict[str, str]] | None:
        for route in ROUTES:
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path)
            match = re.fullmatch(pattern, seen.path)
            version = 2 if route.path.startswith("/v2/") else 1
            both = route.name.removesuffix("_v1") in ("create_sandbox", "list_sandboxes", "connect_sandbox")
            if match and route.method == seen.method and (version in self.versions or not both):
                return route, match.groupdict()
        return None

    async def _answer(self, route: Route, values: Mapping[str, str], seen: Seen) -> bytes:
        handlers: Mapping[str, Callable[[Mapping[str, str], Seen], Awaitable[bytes]]] = {
            "create_sandbox": self._create,
            "list_sandboxes": self._list,
            "list_sandboxes_v1": self._list_v1,
            "get_sandbox": self._get,
            "delete_sandbox": self._delete,
            "set_timeout": self._set_timeout,
            "connect_sandbox": self._connect,
            "pause_sandbox": self._pause,
            "resume_sandbox": self._resume,
        }
        handler = handlers.get(route.name) or handlers[route.name.removesuffix("_v1")]
        try:
            self._authorize(seen)
            unknown = set(seen.query) - set(route.query)
            if unknown:
                raise Refused(400, "a query parameter is not known")
            return await handler(values, seen)
        except Refused as refused:
            return answer(refused.status, _error(refused.status, str(refused)))
        except ValidationError:
            return answer(400, _error(400, "the body is not valid"))
        except NotFound:
            return answer(404, _error(404, "not found"))
        except ClocheError as error:
            return answer(error.http_status, _error(error.http_status, error.code))

    def _authorize(self, seen: Seen) -> None:
        key = seen.headers.get(HEADER_API_KEY.lower())
        bearer = seen.headers.get("authorization", "")
        if key != self.api_key and bearer != f"Bearer {self.api_key}":
            raise Refused(401, "the API key is not valid")

    async def _create(self, values: Mapping[str, str], seen: Seen) -> bytes:
        asked = NewSandbox.model_validate(seen.json)
        key = seen.headers.get(HEADER_IDEMPOTENCY_KEY.lower())
        if key is not None and key in self._by_key:
            before, held = self._by_key[key]
            if before != seen.json:
                raise Refused(409, "the key was used for something else")
            return answer(201, self._created(held))
        wanted = asked.model_dump(exclude_unset=True)
        request: dict[str, Any] = {"template": wanted["templateID"], "timeout": wanted["timeout"]}
        names = {"envs": "envVars", "metadata": "metadata", "cpu": "cpuCount", "memory": "memoryMB"}
        request |= {ours: wanted[theirs] for ours, theirs in names.items() if theirs in wanted}
        record = await self._behind.create(CreateRequest.model_validate(request))
        self._number += 1
        held = Held(record.sandbox_id, wanted, record, self._number)
        self._held[held.sandbox_id] = held
        if key is not None:
            self._by_key[key] = seen.json, held
        return answer(201, self._created(held))

    def _created(self, held: Held) -> dict[str, Any]:
        agent = held.record.agent
        told = {
            "templateID": held.asked["templateID"],
            "sandboxID": held.sandbox_id,
            "clientID": "0",
            "envdVersion": AGENT_VERSION,
            "envdAccessToken": "" if agent is None else agent.access_token.get_secret_value(),
        }
        return told if self.domain is None else {**told, "domain": self.domain}

    async def _get(self, values: Mapping[str, str], seen: Seen) -> bytes:
        return answer(200, await self._detail(self._find(values)))

    async def _detail(self, held: Held) -> dict[str, Any]:
        record = await self._behind.get(GetRequest(sandbox_id=held.sandbox_id))
        told = {
            **self._created(held),
            "state": "paused" if held.paused else "running",
            "startedAt": record.started_at,
            "endAt": record.end_at,
            "cpuCount": held.asked.get("cpuCount", 2),
            "memoryMB": held.asked.get("memoryMB", 512),
            "diskSizeMB": 1024,
            "metadata": held.asked.get("metadata", {}),
        }
        if held.paused:
            del told["envdAccessToken"]
        return told

    async def _list(self, values: Mapping[str, str], seen: Seen) -> bytes:
        query = seen.query
        limit = min(int(query.get("limit", PAGE)), self.page_size)
        states = query["state"].split(",") if "state" in query else ["running", "paused"]
        wanted = dict(parse_qsl(query.get("metadata", "")))
        start = int(query.get("nextToken", "0"))
        found = [held for held in await self._alive() if ("paused" if held.paused else "running") in states]
        found = [held for held in found if wanted.items() <= dict(held.asked.get("metadata", {})).items()]
        told = [await self._listed(held) for held in found[start : start + limit]]
        more = {HEADER_NEXT_TOKEN: str(start + limit)} if len(found) > start + limit else {}
        return answer(200, told, more)

    async def _list_v1(self, values: Mapping[str, str], seen: Seen) -> bytes:
        query = seen.query
        limit, offset = int(query.get("limit", PAGE)), int(query.get("offset", "0"))
        told = [await self._listed(held) for held in await self._alive()]
        if "status" in query:
            told = [entry for entry in told if entry["state"] == query["status"]]
        return answer(200, {"data": told[offset : offset + limit]})

    async def _listed(self, held: Held) -> dict[str, Any]:
        return {key: value for key, value in (await self._detail(held)).items() if key != "envdAccessToken"}

    async def _alive(self) -> list[Held]:
        """Newest first; what has ended on its own is forgotten."""
        for held in list(self._held.values()):
            try:
                await self._behind.get(GetRequest(sandbox_id=held.sandbox_id))
            except NotFound:
                self._held.pop(held.sandbox_id, None)
        return self._newest_first()

    def _newest_first(self) -> list[Held]:
        return sorted(self._held.values(), key=lambda held: -held.number)

    async def _delete(self, values: Mapping[str, str], seen: Seen) -> bytes:
        await self._kill(self._find(values))
        return answer(204)

    async def _kill(self, held: Held) -> None:
        self._held.pop(held.sandbox_id, None)
        self._by_key = {key: value for key, value in self._by_key.items() if value[1] is not held}
        try:
            await self._behind.kill(KillRequest(sandbox_id=held.sandbox_id))
        except NotFound:
            return

    async def _set_timeout(self, values: Mapping[str, str], seen: Seen) -> bytes:
        asked = Timeout.model_validate(seen.json)
        held = self._find(values)
        await self._behind.set_timeout(SetTimeoutRequest(sandbox_id=held.sandbox_id, timeout=asked.timeout))
        return answer(204)

    async def _connect(self, values: Mapping[str, str], seen: Seen) -> bytes:
        asked = Timeout.model_validate(seen.json)
        held = self._find(values)
        was_paused, held.paused = held.paused, False
        await self._behind.set_timeout(SetTimeoutRequest(sandbox_id=held.sandbox_id, timeout=asked.timeout))
        return answer(201 if was_paused else 200, self._created(held))

    async def _pause(self, values: Mapping[str, str], seen: Seen) -> bytes:
        Pause.model_validate(seen.json)
        held = self._find(values)
        if held.paused:
            raise Refused(409, "the sandbox is paused already")
        held.paused = True
        return answer(204)

    async def _resume(self, values: Mapping[str, str], seen: Seen) -> bytes:
        if not self._find(values).paused:
            raise Refused(409, "the sandbox is not paused")
        return await self._connect(values, seen)

    def _find(self, values: Mapping[str, str]) -> Held:
        held = self._held.get(values["sandbox_id"])
        if held is None:
            raise Refused(404, "the sandbox was not found")
        return held

    # The data plane

    async def _to_agent(self, seen: Seen, buffered: BufferedByteReceiveStream, client: SocketStream) -> None:
        """Carry one request to the agent of its sandbox, and everything back; the connection ends with it."""
        self.data_plane.append(seen)
        held = self._held.get(seen.headers[HEADER_SANDBOX_ID.lower()])
        if held is None or held.paused or not await self._lives(held):
            await client.send(
                answer(502, {"code": 502, "message": "The sandbox was not found"}, {"connection": "close"})
            )
            return
        if not self.additions:
            body = await read_body(buffered, seen, FILE_LIMIT)
            if body is not None:
                whole, where = replace(seen, body=body), await self._agent_of(held)
                await _while_connected(client, lambda: answer_as_their_agent(whole, client, where))
            return
        async with await _reached(await self._agent_of(held)) as agent:
            await agent.send(_to_one_request(seen))

            async def upwards() -> None:
                await _carry(buffered, agent)
                # The client has gone away: the agent is told, and ends the connection. Nothing is cancelled that reads
                # from it: anyio's unix sockets fail where that meets the moment in which there is something to read.
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                    await agent.send_eof()

            async with anyio.create_task_group() as both:
                both.start_soon(upwards)
                await _carry(agent, client)
                both.cancel_scope.cancel()

    async def _lives(self, held: Held) -> bool:
        """Whether it has not ended; asked only once it may have."""
        end_at = held.record.end_at
        if end_at is None or datetime.now(UTC) < datetime.fromisoformat(end_at):
            return True
        try:
            await self._behind.get(GetRequest(sandbox_id=held.sandbox_id))
        except NotFound:
            return False
        return True

    async def _agent_of(self, held: Held) -> AgentEndpoint:
        if held.record.agent is None:
            held.record = await self._behind.connect(ConnectRequest(sandbox_id=held.sandbox_id))
        assert held.record.agent is not None
        return held.record.agent


async def _reached(where: AgentEndpoint) -> ByteStream:
    if where.socket_path is not None:
        return await anyio.connect_unix(where.socket_path)
    url = urlsplit(where.base_url)
    return await anyio.connect_tcp(url.hostname or "127.0.0.1", url.port or 80)


async def _while_connected(stream: SocketStream, work: Callable[[], Awaitable[T]]) -> T | None:
    """What the work answers; None where the client goes away meanwhile, which gives the work up."""
    told: T | None = None

    async def watch() -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await stream.receive(1)  # a client says nothing more before it has its answer
        working.cancel_scope.cancel()

    async with anyio.create_task_group() as working:
        working.start_soon(watch)
        told = await work()
        working.cancel_scope.cancel()
    return told


def _error(status: int, message: str) -> dict[str, Any]:
    return {"code": status, "message": message}


def _to_one_request(seen: Seen) -> bytes:
    """The head for the agent: no second request on the connection."""
    first, *rest = seen.head.split(b"\r\n")
    kept = [line for line in rest if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([first, b"Connection: close", *kept]) + b"\r\n\r\n"


async def _carry(source: ByteReceiveStream, target: ByteStream) -> None:
    """Pass on what comes, until one side has gone away or said everything."""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await target.send(await source.receive())
