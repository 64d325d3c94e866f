"""The way to the agent of one sandbox: HTTP to a port of this machine, with the sandbox's token.

Nothing that it answers is believed further than its type.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import httpx

from cloche_contract.errors import (
    ClocheError,
    ProviderFailed,
    ProviderTimeout,
    ProviderUnavailable,
    SandboxLost,
    from_code,
)
from cloche_contract.wire.connect import STREAM_CONTENT_TYPE, FramingError, StreamDecoder, encode_message

from .container import LOOPBACK

_CONNECT_S = 5.0
_ANSWER_S = 60.0
_MAX_ANSWER_BYTES = 8 * 1024 * 1024


class AgentLink:
    """Calls to one agent."""

    def __init__(self, port: int, token: str, *, timeout_s: float = _ANSWER_S) -> None:
        self._client = httpx.AsyncClient(
            base_url=f"http://{LOOPBACK}:{port}",
            headers={"X-Access-Token": token},
            timeout=httpx.Timeout(timeout_s, connect=_CONNECT_S),
            # A proxy of the environment would get the token.
            trust_env=False,
            follow_redirects=False,
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def answers_as(self, sandbox_id: str) -> bool:
        """Whether the agent of that sandbox answers, and takes our token."""
        try:
            found = await self._client.get("/cloche/info")
            return found.status_code == 200 and found.json().get("sandbox_id") == sandbox_id
        except (httpx.HTTPError, ValueError, AttributeError):
            return False

    async def renew(self, lifetime_s: int) -> None:
        """Let the sandbox live so many seconds from now.

        Raises:
            ProviderUnavailable, ProviderTimeout, ProviderFailed: nothing changed, as far as is known.
        """
        with _told():
            answer = await self._client.get("/health", headers={"Cloche-Renew": str(lifetime_s)})
        if answer.status_code != 204:
            raise ProviderFailed(http_status=answer.status_code)

    async def deadline(self) -> str | None:
        """When the sandbox ends, as its agent says.

        Raises:
            ProviderUnavailable, ProviderTimeout, ProviderFailed: it does not tell.
        """
        with _told():
            answer = await self._client.get("/cloche/info")
        data = _object(answer.content)
        if answer.status_code != 200:
            raise _failure(answer.status_code, data)
        said = data.get("deadline")
        return said if isinstance(said, str) else None

    async def end(self) -> None:
        """Ask the agent to end everything inside. Whether it did is seen elsewhere."""
        with _told():
            await self._client.post("/cloche/kill")

    async def unary(self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """Send one message and return the one that answers it (`AgentTransport`)."""
        with _told():
            async with self._client.stream("POST", path, json=dict(message), headers=dict(headers)) as answer:
                body = await _bounded(answer)
        data = _object(body)
        if answer.status_code != 200:
            raise _failure(answer.status_code, data)
        return data

    async def stream(
        self, path: str, message: Mapping[str, Any], *, headers: Mapping[str, str]
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Send one message and yield the frames of the answer (`AgentTransport`)."""
        decoder = StreamDecoder()
        sent = {**headers, "Content-Type": STREAM_CONTENT_TYPE}
        with _told():
            async with self._client.stream("POST", path, content=encode_message(message), headers=sent) as answer:
                async for chunk in answer.aiter_bytes():
                    for frame in decoder.feed(chunk):
                        yield frame
        if not decoder.finished:
            raise SandboxLost

    async def export(self, *, names_only: bool = False) -> AsyncIterator[bytes]:
        """The changes above the base as the agent streams them, in pieces of any size; or all but what is in files.

        Raises:
            UnsupportedOperation: this agent knows no layers; the sandbox has to be made anew.
        """
        with _told():
            async with self._client.stream("POST", "/cloche/layers/export", json={"names_only": names_only}) as answer:
                if answer.status_code != 200:
                    raise _failure(answer.status_code, _object(await _bounded(answer)))
                async for chunk in answer.aiter_raw():
                    yield chunk


async def _bounded(answer: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > _MAX_ANSWER_BYTES:
            raise ProviderFailed
    return bytes(body)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        data: object = json.loads(body or b"{}")
    except ValueError as exc:
        raise ProviderFailed from exc
    if not isinstance(data, dict):
        raise ProviderFailed
    return cast("Mapping[str, Any]", data)


def _failure(status: int, data: Mapping[str, Any]) -> ClocheError:
    """The catalogue error that the agent named; its text is not ours to pass on."""
    details = [*cast("list[Any]", data.get("details") or []), {"value": data.get("cloche")}]
    for value in [cast("dict[str, Any]", one).get("value") for one in details if isinstance(one, dict)]:
        if isinstance(value, dict):
            named = cast("Mapping[str, Any]", value)
            error = from_code(str(named.get("code")), {key: one for key, one in named.items() if key != "code"})
            if error is not None:
                return error
    return ProviderFailed(http_status=status)


@contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except httpx.TimeoutException as exc:
        raise ProviderTimeout from exc
    except (httpx.HTTPError, FramingError) as exc:
        raise ProviderUnavailable from exc
