"""The one data plane: messages to a sandbox's agent, for cloud, local and docker alike.

`AgentChannel` carries the generated `AgentClient`. What goes wrong comes out as catalogue
errors: the agent's own by the code that it sends, silence by asking the provider.

Source: decision D24; agent-protocol, parts 2 and 3.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
from pydantic import ValidationError

from cloche_contract.agent import HEADER_KEEPALIVE, HEADER_TIMEOUT_MS, INTERPRETER_EXECUTE, ROUTE_UPLOAD_PART
from cloche_contract.common import Capability
from cloche_contract.errors import (
    ClocheError,
    ProviderFailed,
    ProviderTimeout,
    UnsupportedOperation,
    from_code,
)
from cloche_contract.wire import connect, ndjson

from .link import SandboxLink
from .plain_errors import plain_error
from .silence import AgentRefusal, AgentUnreachable

if TYPE_CHECKING:
    from cloche_contract.client import AgentClient

    from ._http import Reply

__all__ = ["AgentChannel", "agent_client", "answered"]

_T = TypeVar("_T")

_UNARY = {"content-type": "application/json", "connect-protocol-version": "1"}
_STREAM = {"content-type": connect.STREAM_CONTENT_TYPE, "connect-protocol-version": "1"}
_NONE: Mapping[str, str] = {}
_NO_SANDBOX = 502  # what the edge of a platform answers for a sandbox that is paused or gone
_NO_SUCH_PATH = frozenset({404, 405, 501})
# What platforms that run an agent of their own do not have.
_ADDITIONS: Mapping[str, Capability] = {"/cloche.Tasks/": "tasks", ROUTE_UPLOAD_PART: "transfers"}
_LINES = {"content-type": "application/json"}
LINE_PATHS = frozenset({INTERPRETER_EXECUTE})
LAST_LINE = "end_of_execution"


class AgentChannel:
    """The transport of the generated client, over the link of one sandbox."""

    def __init__(self, link: SandboxLink) -> None:
        self._link = link

    async def unary(self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """Send one message and return the one that answers it."""
        content = json.dumps(message).encode()
        wait_s = self._link.patience_s + float(message.get("wait_ms") or 0) / 1000
        async with self.send("POST", path, content=content, headers={**_UNARY, **headers}, wait_s=wait_s) as reply:
            body = await reply.read(connect.MESSAGE_LIMIT_BYTES)
        return _object(body)

    async def plain(self, method: str, path: str, *, headers: Mapping[str, str] = _NONE) -> object:
        """Ask an endpoint that is no RPC; returns the JSON that answers, None where nothing does."""
        async with self.send(method, path, content=b"" if method == "POST" else None, headers=headers) as reply:
            body = await reply.read(connect.MESSAGE_LIMIT_BYTES)
        try:
            value: object = json.loads(body or b"null")
        except ValueError as error:
            raise ProviderFailed from error
        return value

    def follow(
        self, path: str, message: Mapping[str, Any], headers: Mapping[str, str] = _NONE
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """As `stream`, for as long as it lasts: an agent that has nothing to say says that it lives."""
        interval_s = max(1, int(self.patience_s / 3))
        headers = {HEADER_KEEPALIVE: str(interval_s), **headers}
        return self.stream(path, message, headers=headers, silence_s=max(self.patience_s, 3.0 * interval_s))

    @property
    def patience_s(self) -> float:
        """How long an agent may stay silent where nothing else is said."""
        return self._link.patience_s

    async def stream(
        self,
        path: str,
        message: Mapping[str, Any],
        *,
        headers: Mapping[str, str],
        silence_s: float | None = None,
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Send one message and yield those that answer it, as they come.

        Args:
            silence_s: how long the agent may stay silent; left out, as long as the work may take.
        """
        wait_s = self._link.patience_s + _asked_s(message, headers) if silence_s is None else silence_s
        lines = path in LINE_PATHS
        content = json.dumps(message).encode() if lines else connect.encode_message(message)
        all_headers = {**(_LINES if lines else _STREAM), **headers}
        decoder = ndjson.LineDecoder() if lines else connect.StreamDecoder()
        ended = False
        async with self.send("POST", path, content=content, headers=all_headers, wait_s=wait_s) as reply:
            async for chunk in reply.chunks():
                for found in decoder.feed(chunk):
                    if not lines and "error" in found and "event" not in found:
                        raise _translated(path, found["error"], None)
                    ended = found.get("type") == LAST_LINE
                    yield found
            if not (ended if isinstance(decoder, ndjson.LineDecoder) else decoder.finished):
                raise AgentUnreachable

    async def feed(self, path: str, messages: Iterable[Mapping[str, Any]], *, wait_s: float) -> None:
        """Send a stream of messages, and wait until the agent has taken all of them.

        Args:
            wait_s: how long it may take.
        """
        content = b"".join(map(connect.encode_message, messages))
        decoder = connect.StreamDecoder()
        async with self.send("POST", path, content=content, headers=_STREAM, wait_s=wait_s) as reply:
            async for chunk in reply.chunks():
                for found in decoder.feed(chunk):
                    if "error" in found:
                        raise _translated(path, found["error"], None)
            if not decoder.finished:
                raise AgentUnreachable

    @contextmanager
    def overdue_after(self, timeout_s: float) -> Generator[None]:
        """Give up on an agent that lets work run on far beyond its timeout, however busy its stream is.

        Raises:
            ProviderTimeout: the agent did not end it.
        """
        with anyio.move_on_after(timeout_s + self._link.patience_s) as scope:
            yield
        if scope.cancelled_caught:
            raise ProviderTimeout

    @asynccontextmanager
    async def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float | None = None,
    ) -> AsyncGenerator[Reply, None]:
        """Send a request; what goes wrong becomes a catalogue error."""
        try:
            http, renewal = await self._link.enter()
            sent = {**renewal, **headers} if headers else renewal
            wait_s = self._link.patience_s if wait_s is None else wait_s
            async with http.request(method, path, content=content, headers=sent, read_timeout_s=wait_s) as reply:
                yield reply
        except AgentRefusal as refusal:
            if refusal.http_status == _NO_SANDBOX and connect.catalogue_error(refusal.body) is None:
                raise await self._link.explain(AgentUnreachable()) from refusal
            raise _missing(path, refusal) or _translated(path, refusal.body, refusal.http_status) from refusal
        except AgentUnreachable as silence:
            raise await self._link.explain(silence) from silence
        except connect.FramingError as error:
            raise ProviderFailed from error


def agent_client(channel: AgentChannel) -> AgentClient:
    """The generated client over a channel. Its models are imported at the first call that needs them."""
    from cloche_contract.client import AgentClient

    return AgentClient(channel)


async def answered(call: Awaitable[_T]) -> _T:
    """The answer of the generated client; one that is not of its kind is the platform's failure."""
    try:
        return await call
    except ValidationError as error:
        raise ProviderFailed from error


def _asked_s(message: Mapping[str, Any], headers: Mapping[str, str]) -> float:
    """How long the caller lets the work take: the connection must not give up before."""
    asked = headers.get(HEADER_TIMEOUT_MS) or message.get("timeout_ms") or 0
    return float(asked) / 1000


def _object(body: bytes | None) -> Mapping[str, Any]:
    try:
        value: object = json.loads(body or b"null")
    except ValueError as error:
        raise ProviderFailed from error
    if not isinstance(value, dict):
        raise ProviderFailed
    return cast("Mapping[str, Any]", value)


def _missing(path: str, refusal: AgentRefusal) -> ClocheError | None:
    """The ability that an agent lacks, where it does not know a path that only this project's agent has."""
    if refusal.http_status not in _NO_SUCH_PATH or connect.catalogue_error(refusal.body) is not None:
        return None
    for prefix, capability in _ADDITIONS.items():
        if path.startswith(prefix):
            return UnsupportedOperation(capability=capability)
    return None


def _translated(path: str, body: Mapping[str, Any], http_status: int | None) -> ClocheError:
    """The catalogue error for what an agent answered; its text is never taken over."""
    cloche = connect.catalogue_error(body)
    error = None if cloche is None else from_code(str(cloche.get("code")), cloche)
    return error or plain_error(path, body, http_status)
