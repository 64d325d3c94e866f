"""The two requests that the provider itself makes of an agent: renew and kill. Everything else is the data plane's."""

from contextlib import suppress

import anyio

_ANSWER_BYTES = 1 << 20


class AgentSilent(Exception):
    """The agent did not answer in time, or answered something else."""


class AgentRefused(Exception):
    """The agent answered with an HTTP error."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


async def renew(socket_path: str, token: str, lifetime_s: int, *, timeout_s: float) -> None:
    """Let the sandbox live `lifetime_s` seconds from now.

    Raises:
        AgentSilent: no good answer.
    """
    # The cheapest request that carries the header.
    await _call(socket_path, "GET", "/health", token, f"Cloche-Renew: {lifetime_s}\r\n", timeout_s)


async def kill(socket_path: str, token: str, *, timeout_s: float) -> None:
    """End the sandbox; returns when everything inside is dead.

    Raises:
        AgentSilent: no good answer.
    """
    await _call(socket_path, "POST", "/cloche/kill", token, "Content-Length: 0\r\n", timeout_s)


async def ask(socket_path: str, token: str, path: str, body: bytes, *, timeout_s: float) -> bytes:
    """Post a JSON document; returns the one that answers it.

    Raises:
        AgentSilent: no answer.
        AgentRefused: an error.
    """
    headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    answer = await _exchange(socket_path, "POST", path, token, headers, body, timeout_s, whole=True)
    head, separator, content = answer.partition(b"\r\n\r\n")
    if not separator:
        raise AgentSilent
    status = int(head[9:12])
    if status != 200:
        raise AgentRefused(status)
    return content


async def _call(socket_path: str, method: str, path: str, token: str, headers: str, timeout_s: float) -> None:
    answer = await _exchange(socket_path, method, path, token, headers, b"", timeout_s, whole=False)
    if not answer.startswith(b"HTTP/1.1 2"):
        raise AgentSilent


async def _exchange(
    socket_path: str, method: str, path: str, token: str, headers: str, body: bytes, timeout_s: float, *, whole: bool
) -> bytes:
    """Send a request; returns its answer's first line, or all of it. Empty, or the end missing: it did not come."""
    request = (
        f"{method} {path} HTTP/1.1\r\nHost: local\r\nConnection: close\r\nX-Access-Token: {token}\r\n{headers}\r\n"
    )
    answer = b""
    with anyio.move_on_after(timeout_s):
        with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError):
            async with await anyio.connect_unix(socket_path) as stream:
                await stream.send(request.encode() + body)
                while (whole or b"\r\n" not in answer) and len(answer) < _ANSWER_BYTES:
                    answer += await stream.receive(4096)
    return answer
