"""Requests to one platform: credentials, deadlines, repeats where they are safe, and errors of the catalogue.

Source: systems facts 2.3, 2.4; agent-protocol 1.2.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import urlencode

import anyio

from cloche_contract.errors import (
    AuthenticationFailed,
    ClocheError,
    ProviderFailed,
    ProviderTimeout,
    ProviderUnavailable,
    SandboxNotFound,
    from_code,
)
from cloche_contract.http import HEADER_IDEMPOTENCY_KEY, HEADER_NEXT_TOKEN, Answer, Route

from ._http import PlatformHttp, PlatformReply
from .silence import PlatformUnreachable

__all__ = ["Platform"]

ATTEMPTS = 4
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
# All attempts of one request together, in multiples of what one may take.
PATIENCE = 3
_NONE: Mapping[str, str] = {}
_REFUSED = frozenset({429, 503})  # the platform did nothing
_PERHAPS_DONE = frozenset({500, 502, 504})

Sleep = Callable[[float], Awaitable[None]]


class Platform:
    """The `PlatformTransport` to one address with one account's key."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        http: PlatformHttp,
        key_headers: Sequence[str],
        timeout_s: float,
        sleep: Sleep = anyio.sleep,
        without_key: type[ClocheError] = AuthenticationFailed,
    ) -> None:
        """Take where the platform is and who asks.

        Args:
            key_headers: headers that carry the key: `authorization`, as a bearer token, or another, as it is.
            timeout_s: how long one attempt may take.
            without_key: what a request fails with where there is no key.
        """
        self.base_url = base_url.rstrip("/")
        fixed = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "cloche"}
        self._headers = {**fixed, **_credentials(api_key, key_headers)}
        self._has_key = api_key is not None
        self._without_key = without_key
        self._http = http
        self._timeout_s = timeout_s
        self._sleep = sleep

    async def send(
        self,
        route: Route,
        *,
        values: Mapping[str, str] = _NONE,
        query: Mapping[str, str] = _NONE,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] = _NONE,
    ) -> Answer:
        """Send one request; again where that cannot do anything twice.

        Raises:
            AuthenticationFailed, AccessKeyRefused: there is no key, or the platform refused it.
            ProviderUnavailable, ProviderTimeout: the platform does not answer.
            ProviderFailed: its answer makes no sense.
            ClocheError: what the status means on this route.
        """
        if not self._has_key:
            raise self._without_key
        url = f"{self.base_url}{route.url_path(values)}" + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body).encode()
        sent = {**self._headers, **headers}
        if content is not None:
            sent["content-type"] = "application/json"
        repeatable = route.name not in _MAKES or HEADER_IDEMPOTENCY_KEY in headers
        with anyio.move_on_after(self._timeout_s * PATIENCE):
            return await self._attempts(route, url, sent, content, repeatable)
        raise ProviderTimeout

    async def _attempts(
        self,
        route: Route,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None,
        repeatable: bool,
    ) -> Answer:
        pause_s, perhaps_done = FIRST_PAUSE_S, False
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS
            try:
                reply = await self._http.send(route.method, url, headers=headers, content=content)
            except PlatformUnreachable as silence:
                if last or (silence.sent and not repeatable):
                    raise ProviderTimeout() if silence.slow else ProviderUnavailable() from silence
                perhaps_done |= silence.sent
            else:
                if last or not _again(reply, repeatable):
                    return _answer(route, reply, gone_is_done=perhaps_done)
                perhaps_done |= reply.status in _PERHAPS_DONE
                pause_s = max(pause_s, _asked_pause(reply))
            await self._sleep(min(pause_s, LONGEST_PAUSE_S))
            pause_s *= 2
        raise ProviderUnavailable


# What must not be done twice.
_MAKES = frozenset({"create_sandbox", "create_sandbox_v1"})


def _credentials(api_key: str | None, names: Sequence[str]) -> dict[str, str]:
    if api_key is None:
        return {}
    return {name: f"Bearer {api_key}" if name == "authorization" else api_key for name in names}


def _again(reply: PlatformReply, repeatable: bool) -> bool:
    told = reply.header("should-retry").lower()
    if told in ("true", "false") and reply.status >= 400:
        return told == "true" and (repeatable or reply.status not in _PERHAPS_DONE)
    return reply.status in _REFUSED or (repeatable and reply.status in (_PERHAPS_DONE - {500}))


def _asked_pause(reply: PlatformReply) -> float:
    """What the platform asks to wait; dates are not understood, and cost nothing but an early try."""
    told = reply.header("retry-after")
    return float(told) if told.isascii() and told.isdigit() else 0.0


def _answer(route: Route, reply: PlatformReply, *, gone_is_done: bool) -> Answer:
    if reply.status not in route.success:
        error = _refusal(route, reply.status)
        if gone_is_done and route.method == "DELETE" and isinstance(error, SandboxNotFound):
            return Answer(None)  # an attempt whose answer was lost has done it
        raise error
    try:
        value: object = json.loads(reply.body) if reply.body.strip() else None
    except ValueError as error:
        raise ProviderFailed(http_status=reply.status) from error
    return Answer(value, reply.header(HEADER_NEXT_TOKEN.lower()) or None)


def _refusal(route: Route, status: int) -> ClocheError:
    error = from_code(route.statuses.get(status, "provider_failed"), {"http_status": status})
    return error or ProviderFailed(http_status=status)
