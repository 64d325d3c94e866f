"""HTTP to a sandbox's agent. The only module that imports httpx.

It works on httpx's transport, below its client: no redirects (a token must never
follow one), no cookies, no proxies from the environment, and half the time per call.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from .silence import AgentRefusal, AgentUnreachable

__all__ = ["AgentHttp", "Reply"]

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0
ERROR_BODY_LIMIT = 65_536


@dataclass(frozen=True)
class Reply:
    """The answer to a request, its body not read yet."""

    headers: Mapping[str, str]
    _response: httpx.Response = field(repr=False)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, undecoded.

        Raises:
            AgentUnreachable: the connection ended before the body did.
        """
        try:
            async for chunk in cast("httpx.AsyncByteStream", self._response.stream):
                yield chunk
        except httpx.TimeoutException as error:
            raise AgentUnreachable(slow=True) from error
        except httpx.TransportError as error:
            raise AgentUnreachable from error

    async def read(self, limit: int) -> bytes | None:
        """The whole body, or None as soon as it grows over `limit` bytes."""
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
            if len(body) > limit:
                return None
        return bytes(body)


class AgentHttp:
    """Keeps connections to one agent open and sends requests over them."""

    def __init__(self, *, socket_path: str | None, base_url: str, headers: Mapping[str, str]) -> None:
        self._base_url = httpx.URL(base_url)
        self._base_path = self._base_url.raw_path.rstrip(b"/")
        self._headers = dict(headers)
        self._transport = httpx.AsyncHTTPTransport(
            uds=socket_path,
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=60.0),
        )

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        *,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> AsyncGenerator[Reply, None]:
        """Send a request and hand out its reply; leaving the block gives the connection back or cuts it.

        Args:
            path: path and query, percent-encoded.
            read_timeout_s: how long the agent may stay silent.

        Raises:
            AgentUnreachable: no connection, or none within the deadline.
            AgentRefusal: the agent answered with a status of 400 or more.
        """
        request = httpx.Request(
            method,
            self._base_url.copy_with(raw_path=self._base_path + path.encode("ascii")),
            headers={**self._headers, **headers} if headers else self._headers,
            content=content,
            extensions={
                "timeout": {
                    "connect": CONNECT_TIMEOUT_S,
                    "read": read_timeout_s,
                    "write": READ_TIMEOUT_S,
                    "pool": CONNECT_TIMEOUT_S,
                }
            },
        )
        try:
            response = await self._transport.handle_async_request(request)
        except httpx.TimeoutException as error:
            raise AgentUnreachable(slow=True) from error
        except (httpx.TransportError, OSError) as error:
            raise AgentUnreachable from error
        reply = Reply(response.headers, response)
        try:
            if response.status_code >= 400:
                raise AgentRefusal(response.status_code, await _error_body(reply))
            yield reply
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()


async def _error_body(reply: Reply) -> Mapping[str, Any]:
    raw = await reply.read(ERROR_BODY_LIMIT)
    try:
        body: object = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", body) if isinstance(body, dict) else {}
