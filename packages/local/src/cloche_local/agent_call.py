"""The two requests that the provider itself makes of an agent: renew and kill. Everything else is the data plane's."""

from contextlib import suppress

import anyio


class AgentSilent(Exception):
    """The agent did not answer in time, or answered something else."""


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


async def _call(socket_path: str, method: str, path: str, token: str, headers: str, timeout_s: float) -> None:
    request = (
        f"{method} {path} HTTP/1.1\r\nHost: local\r\nConnection: close\r\nX-Access-Token: {token}\r\n{headers}\r\n"
    )
    answer = b""
    with anyio.move_on_after(timeout_s):
        with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError):
            async with await anyio.connect_unix(socket_path) as stream:
                await stream.send(request.encode())
                while b"\r\n" not in answer:
                    answer += await stream.receive(4096)
    if not answer.startswith(b"HTTP/1.1 2"):
        raise AgentSilent
