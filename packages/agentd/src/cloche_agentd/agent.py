"""The keeper: composes the agent, routes requests, checks tokens and users, and ends with its sandbox."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import inspect
import json
import os
import resource
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Final

from . import connect, fields, limits
from .calls import CallRecord
from .config import AgentConfig, KeeperHooks, User
from .exchange import Exchange
from .execute import Interpreters
from .failures import AgentError, invalid_argument
from .filesystem import FilesystemService
from .metrics import Metrics
from .process_rpc import ProcessService
from .processes import Processes
from .rehearsal import rehearse
from .server import Server, is_rpc
from .spawner import Spawner
from .tasks import TaskService
from .transfers import FileTransfers
from .upload_parts import PartialUploads
from .workspace_view import LayeredView
from .workspaces import Workspaces

UnaryMethod = Callable[[Mapping[str, object], User], Awaitable[Mapping[str, object]]]
Answer = Coroutine[None, None, None]

_UNAUTHORIZED: Final = "unauthorized access, please provide a valid access token or method signing if supported"
_PLAIN_PATHS: Final = (
    *("/execute", "/files", "/metrics", "/envs", "/contexts"),
    *("/cloche/info", "/cloche/kill", "/cloche/network", "/cloche/changes", "/cloche/layers/export"),
)
_INTERPRETER_PORT: Final = "49999"


def run_keeper(
    config: AgentConfig, link_socket: socket.socket, listener_sockets: Sequence[socket.socket], hooks: KeeperHooks
) -> int:
    """Serve the sandbox until it is killed or SIGTERM comes (0), or its init is gone (1).

    Runs an asyncio loop in this thread, and starts neither threads nor processes.
    """
    agent = Agent(config, hooks)

    async def serve() -> int:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, agent.end)
        return await agent.run(link_socket, listener_sockets)

    return asyncio.run(serve())


def _raise_descriptor_limit() -> None:
    """Each running command holds two or three pipes open here, and so does each program that one left behind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, limits.DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Ended(Exception):
    """Leaves the task group when the sandbox is over."""


class Agent:
    """One sandbox's agent."""

    def __init__(self, config: AgentConfig, hooks: KeeperHooks) -> None:
        self._config = config
        self._hooks = hooks
        self._status = 1
        self._ended = asyncio.Event()

    async def run(self, link_socket: socket.socket, listeners: Sequence[socket.socket]) -> int:
        """Serve until the end; return the exit status. Cancelling it ends it too."""
        os.umask(0o022)
        _raise_descriptor_limit()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._compose(link_socket, tasks)
                calls = CallRecord(self._hooks.record, frozenset({*self._unary, *self._streams, *_PLAIN_PATHS}))
                server = self.server = Server(self._handle, tasks, calls.done)
                try:
                    begun = tasks.create_task(self._begin())
                    tasks.create_task(self._open(server, listeners, begun))
                    await self._ended.wait()
                    await self._tasks.lose()
                finally:
                    server.close()
                    self._spawner.close()
                    self._interpreters.close()
                    if self._workspaces is not None:
                        self._workspaces.close()
                # What still runs is cancelled: its connections are closed and its processes are dying.
                raise _Ended
        except* _Ended:
            pass
        return self._status

    async def _begin(self) -> None:
        """Do what can be done before the first request."""
        if self._config.begin_interpreter:
            await self._interpreters.begin()
        if self._config.rehearse and not self._config.sandbox_id:
            # Whoever asks for the sandbox brings another; nobody can reach us before that.
            self._config.access_token = secrets.token_hex()
            await rehearse(self.server, self._config.access_token)

    async def _open(self, server: Server, listeners: Sequence[socket.socket], begun: asyncio.Task[None]) -> None:
        """Take requests, once it is known whose."""
        if self._hooks.orders is not None:
            orders = await self._hooks.orders()
            self._config.adopt(orders)
            if self._config.rehearse:
                # What it counts and leaves is undone next.
                await begun
            if self._config.begin_interpreter and (orders.envs or self._config.rehearse):
                await self._interpreters.adopt_environment()
            listeners = [*listeners, *orders.listeners]
        await server.listen(listeners)

    def _compose(self, link_socket: socket.socket, tasks: asyncio.TaskGroup) -> None:
        self._spawner = Spawner(self._config, self._hooks, link_socket, self._ended.set)
        processes = Processes(self._spawner, self._hooks, tasks)
        self._workspaces = self._open_workspaces(processes, tasks)
        self._process_service = ProcessService(self._config, processes, self._workspaces)
        layered, view = self._layered()
        self._filesystem = FilesystemService(self._config, self._hooks, view)
        self._interpreters = Interpreters(self._config, self._hooks, self._spawner, tasks, layered, view)
        self._transfers = FileTransfers(self._config, self._hooks, self._interpreters.outputs.uploaded, view)
        self._parts = PartialUploads(self._transfers)
        self._tasks = TaskService(self._config, self._hooks, self._spawner, tasks, layered)
        self._metrics = Metrics(self._config)
        self._unary: dict[str, UnaryMethod] = {
            **{f"/process.Process/{name}": method for name, method in self._process_service.unary.items()},
            **{f"/filesystem.Filesystem/{name}": method for name, method in self._filesystem.unary.items()},
            **{f"/cloche.Tasks/{name}": method for name, method in self._tasks.unary.items()},
            **{f"/cloche.Layers/{name}": method for name, method in self._layer_methods().items()},
        }
        self._streams = {
            "/filesystem.Filesystem/WatchDir": self._filesystem.watchers.watch_dir,
            "/process.Process/Start": self._process_service.start,
            "/process.Process/Connect": self._process_service.connect,
            "/process.Process/StreamInput": self._process_service.stream_input,
        }

    def _open_workspaces(self, processes: Processes, tasks: asyncio.TaskGroup) -> Workspaces | None:
        link = self._hooks.workspace
        place = self._hooks.workspace_place
        return None if link is None else Workspaces(link, self._config, self._spawner, processes, tasks, place)

    def _layered(self) -> tuple[Workspaces | None, LayeredView | None]:
        """What code, tasks and files have of the layers: all of them, or none."""
        view = None if self._workspaces is None else self._workspaces.view
        return (None, None) if view is None else (self._workspaces, view)

    def _layer_methods(self) -> Mapping[str, UnaryMethod]:
        return {} if self._workspaces is None else self._workspaces.unary

    def end(self) -> None:
        """Make `run` return 0: the sandbox's time is over. Init kills everything when its link closes."""
        self._status = 0
        self._ended.set()

    # -- routing ------------------------------------------------------------------------------------------------

    def _handle(self, exchange: Exchange) -> Answer | None:
        """Start answering a request; raise AgentError to refuse it."""
        head = exchange.head
        if head.method == "GET" and head.path == "/health":
            self._health(exchange)
            return None
        self._authorize(exchange)
        self._renew(exchange)
        unary = self._unary.get(head.path)
        stream = self._streams.get(head.path)
        if unary is None and stream is None:
            return self._plain(exchange)
        if head.method != "POST":
            raise AgentError("unimplemented", "RPCs are called with POST", "unsupported_operation", status=405)
        user = self._rpc_user(exchange)
        if unary is not None:
            return self._call(exchange, unary, user)
        return stream(exchange, user) if stream is not None else None

    def _plain(self, exchange: Exchange) -> Answer | None:
        """Answer an endpoint that is not an RPC."""
        match (exchange.head.method, exchange.head.path):
            case ("POST", "/execute"):
                return self._interpreters.execute(exchange)
            case ("GET", "/files"):
                return self._transfers.download(exchange, self._query_user(exchange))
            case ("POST", "/files"):
                return self._transfers.upload(exchange, self._query_user(exchange))
            case ("POST", "/cloche/upload"):
                return self._parts.take(exchange, self._query_user(exchange))
            case ("GET", "/metrics"):
                exchange.reply(200, json.dumps(self._metrics.read()).encode())
                return None
            case ("GET", "/envs"):
                exchange.reply(200, json.dumps(dict(self._config.envs)).encode())
                return None
            case ("GET", "/cloche/info"):
                return self._info(exchange)
            case ("POST", "/cloche/kill"):
                return self._kill(exchange)
            case ("POST", "/cloche/network"):
                return self._network(exchange)
            case ("POST", "/cloche/changes"):
                return self._changes(exchange)
            case ("POST", "/cloche/layers/export") if self._workspaces is not None:
                return self._workspaces.export(exchange)
            case (_, path) if path == "/contexts" or path.startswith("/contexts/"):
                return self._interpreters.contexts(exchange)
            case (_, path) if is_rpc(path):
                raise AgentError("unimplemented", "this agent has no such method", "unsupported_operation")
            case _:
                raise AgentError("not_found", "no such endpoint", "unsupported_operation")

    async def _call(self, exchange: Exchange, method: UnaryMethod, user: User) -> None:
        request = connect.parse_object(await exchange.read_body(limits.JSON_BODY_BYTES))
        reply = await method(request, user)
        exchange.reply(200, json.dumps(reply, separators=(",", ":")).encode())

    # -- own endpoints ------------------------------------------------------------------------------------------

    def _health(self, exchange: Exchange) -> None:
        if self._has_token(exchange):
            self._renew(exchange)
        if exchange.head.headers.get("e2b-sandbox-port") == _INTERPRETER_PORT:
            exchange.reply(200, b'"OK"')
        else:
            exchange.reply(204)

    async def _info(self, exchange: Exchange) -> None:
        default = self._config.user(self._config.default_user)
        languages = self._interpreters.languages
        info: dict[str, object] = {
            "version": limits.AGENT_VERSION,
            "protocol": limits.PROTOCOL_VERSION,
            "envd_version": limits.ENVD_VERSION,
            "sandbox_id": self._config.sandbox_id,
            "default_user": self._config.default_user,
            "users": [user.name for user in self._config.users],
            "languages": await languages.available(default) if default is not None else [],
            "stateful_languages": await languages.stateful(default) if default is not None else [],
            **self._hooks.facts(),
        }
        exchange.reply(200, json.dumps(info).encode())

    async def _kill(self, exchange: Exchange) -> None:
        """End the sandbox. The answer leaves when everything inside is dead."""
        await self._spawner.kill_everything()
        pending = self._hooks.on_kill()
        if inspect.isawaitable(pending):
            await pending
        exchange.reply(204)
        self.end()

    async def _network(self, exchange: Exchange) -> None:
        """Change the network allowlist; an empty request tells it."""
        request = connect.parse_object(await exchange.read_body(limits.JSON_BODY_BYTES))
        try:
            rules = await self._hooks.update_network(fields.texts(request, "add"), fields.texts(request, "remove"))
        except ValueError:
            text = "a rule is a host, *.host, an address or a network, with or without :port"
            raise invalid_argument(text, "allow") from None
        except LookupError:
            text = "a rule to remove is not in force; nothing changed"
            raise AgentError("not_found", text, "invalid_argument", field="remove") from None
        except OSError:
            raise AgentError("unavailable", "the egress process does not answer", "provider_unavailable") from None
        if rules is None:
            raise AgentError("unimplemented", "this sandbox has no network allowlist", "unsupported_operation")
        exchange.reply(200, json.dumps({"rules": list(rules)}).encode())

    async def _changes(self, exchange: Exchange) -> None:
        """Tell what programs changed in the file system."""
        changes = self._hooks.changes
        if changes is None:
            raise AgentError("unimplemented", "this sandbox cannot tell its changes", "unsupported_operation")
        request = connect.parse_object(await exchange.read_body(limits.JSON_BODY_BYTES))
        limit = min(max(fields.whole(request, "limit", limits.CHANGES), 1), limits.CHANGES)
        try:
            page = await changes(limit, fields.text(request, "after", ""))
        except ValueError:
            raise invalid_argument("after must come from the page before", "after") from None
        exchange.reply(200, json.dumps(page, separators=(",", ":")).encode())

    # -- who asks -----------------------------------------------------------------------------------------------

    def _has_token(self, exchange: Exchange) -> bool:
        headers = exchange.head.headers
        given = headers.get("x-access-token", "")
        if not given and exchange.head.path.startswith("/contexts"):
            # Released E2B interpreter clients send only this one with their requests about contexts.
            given = headers.get("e2b-traffic-access-token", "")
        token = self._config.access_token.encode()
        return bool(token) and hmac.compare_digest(given.encode("latin-1", "replace"), token)

    def _authorize(self, exchange: Exchange) -> None:
        if self._has_token(exchange):
            return
        path = exchange.head.path
        if path == "/files" and "signature=" in exchange.head.query:
            self._check_signature(exchange)
            return
        if self._config.open_contexts and (path == "/contexts" or path.startswith("/contexts/")):
            return
        raise AgentError("unauthenticated", _UNAUTHORIZED, "authentication_failed")

    def _check_signature(self, exchange: Exchange) -> None:
        """Check a signed file URL: path, operation, user, token and expiration, hashed together."""
        token, given = self._config.access_token, exchange.head.parameters()
        operation = "read" if exchange.head.method == "GET" else "write"
        parts = [given.get("path", ""), operation, given.get("username", ""), token]
        expiration = given.get("signature_expiration")
        if expiration is not None:
            parts.append(expiration)
        digest = hashlib.sha256(":".join(parts).encode("utf-8", "replace")).digest()
        expected = "v1_" + base64.b64encode(digest).decode().rstrip("=")
        if not token or not hmac.compare_digest(expected.encode(), given.get("signature", "").encode()):
            raise AgentError("unauthenticated", _UNAUTHORIZED, "authentication_failed")
        if expiration is not None:
            known = expiration.isascii() and expiration.isdigit() and len(expiration) < 16
            if not known or int(expiration) < self._config.clock():
                raise AgentError("unauthenticated", "signature is already expired", "authentication_failed")

    def _renew(self, exchange: Exchange) -> None:
        value = exchange.head.headers.get("cloche-renew")
        if value is None:
            return
        known = value.isascii() and value.isdigit() and len(value) < 7
        if not known or not 1 <= int(value) <= limits.LIFETIME_MAX_S:
            raise invalid_argument("Cloche-Renew must be 1 to 86400 seconds", "cloche-renew")
        self._hooks.on_renew(int(value))

    def _rpc_user(self, exchange: Exchange) -> User:
        value = exchange.head.headers.get("authorization")
        if value is None:
            return self._user("")
        scheme, _, encoded = value.partition(" ")
        try:
            decoded = base64.b64decode(encoded.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            scheme, decoded = "", ""
        if scheme.lower() != "basic":
            raise AgentError("unauthenticated", "the user is not given as Basic", "unsupported_user")
        return self._user(decoded.partition(":")[0])

    def _query_user(self, exchange: Exchange) -> User:
        return self._user(exchange.head.parameters().get("username", ""))

    def _user(self, name: str) -> User:
        user = self._config.user(name or self._config.default_user)
        if user is None:
            raise AgentError("unauthenticated", "this sandbox has no such user", "unsupported_user")
        return user
