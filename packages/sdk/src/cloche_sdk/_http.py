"""HTTP to agents and platforms. The only module that imports httpx and its engine, httpcore.

It works on the engine, below the client: no redirects (a token must never follow one), no
cookies, no address in a log, and a third of the time per call. httpx itself is imported only for the
certificates of an https address. What leaves this machine goes through the proxy of the environment.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import httpcore

from cloche_contract.agent import HEADER_SANDBOX_PORT

from .silence import AgentRefusal, AgentUnreachable, PlatformUnreachable

__all__ = ["AgentHttp", "PlatformHttp", "PlatformReply", "Reply"]

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0
KEEPALIVE_S = 60.0
IDLE_CONNECTIONS = 20
ERROR_BODY_LIMIT = 65_536
PIECE_BYTES = 1_048_576
PLATFORM_BODY_LIMIT = 16_777_216
INTERPRETER_PORT = "49999"

_THIS_MACHINE = frozenset({"localhost", "::1", "[::1]"})
_BROKEN = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ConnectionNotAvailable, OSError)


@dataclass(frozen=True)
class Reply:
    """The answer to a request, its body not read yet."""

    _response: httpcore.Response = field(repr=False)

    def header(self, name: str) -> str:
        """The value of a header, by its name in lower case; empty where there is none."""
        wanted = name.encode("ascii")
        found = (value for key, value in self._response.headers if key.lower() == wanted)
        return next(found, b"").decode("latin-1")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, undecoded.

        Raises:
            AgentUnreachable: the connection ended before the body did.
        """
        try:
            async for chunk in cast("AsyncIterable[bytes]", self._response.stream):
                yield chunk
        except httpcore.TimeoutException as error:
            raise AgentUnreachable(slow=True) from error
        except _BROKEN as error:
            raise AgentUnreachable from error

    async def read(self, limit: int) -> bytes | None:
        """The whole body, or None as soon as it grows over `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > limit:
                return None
        return b"".join(parts)


class AgentHttp:
    """Keeps connections to one agent open and sends requests over them."""

    def __init__(
        self,
        *,
        socket_path: str | None,
        base_url: str,
        headers: Mapping[str, str],
        interpreter_url: str | None = None,
    ) -> None:
        """Take where the agent answers.

        Args:
            interpreter_url: where requests for the interpreter go, if elsewhere.
        """
        self._url = httpcore.URL(base_url)
        self._interpreter = self._url if interpreter_url is None else httpcore.URL(interpreter_url)
        self._headers = list(_raw(headers))
        self._pool = _pool(self._url, socket_path)

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> AsyncGenerator[Reply, None]:
        """Send a request and hand out its reply; leaving the block gives the connection back or cuts it.

        Args:
            path: path and query, percent-encoded.
            read_timeout_s: how long the agent may stay silent.

        Raises:
            AgentUnreachable: no connection, or none within the deadline.
            AgentRefusal: the agent answered with a status of 300 or more.
        """
        request = self._request(method, path, content, headers, read_timeout_s)
        try:
            response = await self._pool.handle_async_request(request)
        except httpcore.TimeoutException as error:
            raise AgentUnreachable(slow=True) from error
        except _BROKEN as error:
            raise AgentUnreachable from error
        reply = Reply(response)
        try:
            if response.status >= 300:  # a redirect is not followed: the token would go along
                raise AgentRefusal(response.status, await _error_body(reply))
            yield reply
        finally:
            await response.aclose()

    def _request(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str] | None, read_timeout_s: float
    ) -> httpcore.Request:
        own = self._interpreter if (headers or {}).get(HEADER_SANDBOX_PORT) == INTERPRETER_PORT else self._url
        sent = [(b"host", _host(own)), *self._headers, *(_raw(headers) if headers else ())]
        if content is not None:
            sent.append((b"content-length", str(len(content)).encode("ascii")))
        timeouts = {
            "connect": CONNECT_TIMEOUT_S,
            "read": read_timeout_s,
            "write": READ_TIMEOUT_S,
            "pool": CONNECT_TIMEOUT_S,
        }
        target = own.target.rstrip(b"/") + path.encode("ascii")
        url = httpcore.URL(scheme=own.scheme, host=own.host, port=own.port, target=target)
        large = content is not None and len(content) > PIECE_BYTES
        body = _pieces(content) if large and content is not None else content
        return httpcore.Request(method, url, headers=sent, content=body, extensions={"timeout": timeouts})

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


async def _pieces(content: bytes) -> AsyncGenerator[bytes, None]:
    """A large body in parts: httpcore copies what it is given to send."""
    for start in range(0, len(content), PIECE_BYTES):
        yield content[start : start + PIECE_BYTES]


def _pool(url: httpcore.URL, socket_path: str | None) -> httpcore.AsyncConnectionPool:
    proxy = None if socket_path is not None else _proxy_of_environment(url)
    kept: dict[str, Any] = {
        "ssl_context": _ssl_context() if url.scheme == b"https" else None,
        "max_connections": None,
        "max_keepalive_connections": IDLE_CONNECTIONS,
        "keepalive_expiry": KEEPALIVE_S,
    }
    if proxy is not None:
        return httpcore.AsyncHTTPProxy(proxy_url=proxy, **kept)
    return httpcore.AsyncConnectionPool(uds=socket_path, network_backend=_backend(socket_path), **kept)


def _proxy_of_environment(url: httpcore.URL) -> str | None:
    """The proxy for an address; none for this machine's own, which nothing outside could reach."""
    import urllib.request  # takes long to import; a socket of this machine needs no proxy

    host = url.host.decode("ascii")
    if host in _THIS_MACHINE or host.startswith("127.") or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(url.scheme.decode("ascii"))


def _raw(headers: Mapping[str, str]) -> Iterator[tuple[bytes, bytes]]:
    return ((name.encode("ascii"), value.encode("ascii")) for name, value in headers.items())


def _host(url: httpcore.URL) -> bytes:
    return url.host if url.port is None else b"%b:%d" % (url.host, url.port)


def _backend(socket_path: str | None) -> httpcore.AsyncNetworkBackend | None:
    """Our own for a unix socket on asyncio, else the one that httpcore chooses."""
    if socket_path is None:
        return None
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return None
    from ._unix_stream import UnixBackend

    return UnixBackend()


@cache
def _ssl_context() -> Any:
    """The certificates that are trusted. Reading them takes longer than a request."""
    import httpx

    return httpx.create_ssl_context()


async def _error_body(reply: Reply) -> Mapping[str, Any]:
    raw = await reply.read(ERROR_BODY_LIMIT)
    try:
        body: object = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", body) if isinstance(body, dict) else {}


@dataclass(frozen=True)
class PlatformReply:
    """What a platform answered, whole."""

    status: int
    _reply: Reply = field(repr=False)
    body: bytes = field(repr=False)

    def header(self, name: str) -> str:
        """The value of a header, by its name in lower case; empty where there is none."""
        return self._reply.header(name)


class PlatformHttp:
    """Connections to one platform. No redirects are followed, or the key would go along."""

    def __init__(self, timeout_s: float) -> None:
        """Take how long a platform may stay silent."""
        self._timeouts = {
            "connect": min(CONNECT_TIMEOUT_S, timeout_s),
            "read": timeout_s,
            "write": timeout_s,
            "pool": timeout_s,
        }
        self._pools: dict[bytes, httpcore.AsyncConnectionPool] = {}

    async def send(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None = None
    ) -> PlatformReply:
        """Send a request and read its answer.

        Raises:
            PlatformUnreachable: there is no whole answer.
        """
        where = httpcore.URL(url)
        length = [] if content is None else [(b"content-length", str(len(content)).encode("ascii"))]
        request = httpcore.Request(
            method,
            where,
            headers=[(b"host", _host(where)), *_raw(headers), *length],
            content=content,
            extensions={"timeout": self._timeouts},
        )
        try:
            response = await self._pool_to(where).handle_async_request(request)
        except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout) as error:
            raise PlatformUnreachable(slow=isinstance(error, httpcore.TimeoutException), sent=False) from error
        except (httpcore.TimeoutException, *_BROKEN) as error:
            raise PlatformUnreachable(slow=isinstance(error, httpcore.TimeoutException), sent=True) from error
        reply = Reply(response)
        try:
            body = await reply.read(PLATFORM_BODY_LIMIT)
        except AgentUnreachable as error:
            raise PlatformUnreachable(slow=error.slow, sent=True) from error
        finally:
            await response.aclose()
        if body is None:
            raise PlatformUnreachable(sent=True)
        return PlatformReply(response.status, reply, body)

    def _pool_to(self, url: httpcore.URL) -> httpcore.AsyncConnectionPool:
        origin = url.scheme + b"://" + _host(url)
        if origin not in self._pools:
            self._pools[origin] = _pool(url, None)
        return self._pools[origin]

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in self._pools.values():
            await pool.aclose()
