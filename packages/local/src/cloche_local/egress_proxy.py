"""The egress proxy of one sandbox: HTTP and CONNECT to the destinations of an allowlist, and to nothing else.

It runs on the host, in a process of its own, and serves a socket that listens inside the sandbox. Everything that it
reads there is hostile. Standard library only.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from cloche_local.egress_http import HEAD_BYTES, BadRequest, Request, copy_body, copy_response, parse_request, refusal
from cloche_local.egress_rules import Address, Malformed, Policy, Target, parse_address

CONNECTIONS = 256
_ADDRESSES_TRIED = 4
_HEAD_S = 30.0
_RESOLVE_S = 10.0
_CONNECT_S = 10.0
_LINGER_S = 2.0
_PIECE_BYTES = 65536

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
Report = Callable[["Denied"], None]


class Denied(Exception):
    """The allowlist does not hold the destination. `rule` would; None where only a rule for a network helps."""

    def __init__(self, target: Target, rule: str | None) -> None:
        super().__init__(str(target))
        self.target = target
        self.rule = rule


class Unreachable(Exception):
    """The destination is allowed and does not answer."""


@dataclass(eq=False, slots=True)
class _Passage:
    """A connection through the proxy, to be cut when its rule goes."""

    task: "asyncio.Task[None]"
    target: Target
    address: Address


async def resolve(name: str, port: int) -> list[Address]:
    """Ask the host's resolver.

    Raises:
        Unreachable: it knows no address, or does not answer in time.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVE_S):
            found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise Unreachable from error
    return list(dict.fromkeys(parse_address(str(entry[4][0])) for entry in found))


class EgressProxy:
    """Serves one listening socket by one policy."""

    def __init__(self, policy: Policy, report: Report, *, lookup: Resolve = resolve, enforce: bool = True) -> None:
        """Make a proxy.

        Args:
            policy: what it allows.
            report: called with each denial, before the client hears of it.
            lookup: how names become addresses; for tests.
            enforce: False in tests only, which show what the policy holds back.
        """
        self._policy = policy
        self._report = report
        self._lookup = lookup
        self._enforce = enforce
        self._passages: set[_Passage] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def update(self, policy: Policy) -> None:
        """Decide by another policy from now on; what it does not allow is cut."""
        self._policy = policy
        for passage in self._passages:
            if self._enforce and not policy.permits(passage.target, passage.address):
                passage.task.cancel()

    async def serve(self, listener: socket.socket) -> None:
        """Answer until cancelled."""
        server = await asyncio.start_server(self._accept, sock=listener, limit=HEAD_BYTES, backlog=CONNECTIONS)
        try:
            async with server:
                await server.serve_forever()
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= CONNECTIONS:
            await _answer(reader, writer, 503, "Cloche: too many connections at once.\n")
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._serve_client(reader, writer, task)
        except asyncio.CancelledError:
            # Only an update cuts one connection; the end of the process takes all of them.
            writer.transport.abort()
        except (OSError, EOFError, asyncio.LimitOverrunError, BadRequest):
            # Whoever asked went away, or stopped making sense after the head.
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: "asyncio.Task[None]"
    ) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                raw = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            return
        try:
            request = parse_request(raw)
        except (BadRequest, Malformed):
            await _answer(reader, writer, 400, "Cloche: the proxy takes http:// requests and CONNECT host:port.\n")
            return
        try:
            upstream, address = await self._open(request.target)
        except Denied as denied:
            self._report(denied)
            await _answer(reader, writer, 403, denial_text(denied))
            return
        except Unreachable:
            await _answer(reader, writer, 502, f"Cloche: {request.target} is allowed, and does not answer.\n")
            return
        passage = _Passage(task, request.target, address)
        self._passages.add(passage)
        try:
            await _pass(request, reader, writer, upstream)
        finally:
            self._passages.discard(passage)

    async def _open(self, target: Target) -> tuple[socket.socket, Address]:
        """Connect to the target.

        Raises:
            Denied, Unreachable.
        """
        for address in (await self._addresses(target))[:_ADDRESSES_TRIED]:
            family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
            upstream = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            try:
                async with asyncio.timeout(_CONNECT_S):
                    # The address that was checked, as a literal: nothing is resolved here.
                    await asyncio.get_running_loop().sock_connect(upstream, (str(address), target.port))
                return upstream, address
            except (OSError, TimeoutError):
                upstream.close()
            except BaseException:
                upstream.close()
                raise
        raise Unreachable

    async def _addresses(self, target: Target) -> list[Address]:
        policy = self._policy
        if self._enforce and not policy.lists(target):
            raise Denied(target, target.rule())
        host = target.host
        if not isinstance(host, str):
            return [host]
        found = await self._lookup(host, target.port)
        # Read again: it may have been narrowed while the resolver answered.
        policy = self._policy
        kept = [address for address in found if not self._enforce or policy.permits(target, address)]
        if found and not kept:
            raise Denied(target, None)
        return kept


async def _pass(
    request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: socket.socket
) -> None:
    """Carry bytes both ways until both sides have ended."""
    there, there_writer = await asyncio.open_connection(sock=upstream, limit=HEAD_BYTES)
    try:
        if request.tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_copy(reader, there_writer), _copy(there, writer))
            return
        there_writer.write(request.head)
        sending = asyncio.ensure_future(copy_body(request, reader, there_writer))
        try:
            # The answer may come, and end the exchange, before the body has been sent.
            await copy_response(there, writer)
            await _copy(there, writer)
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError, OSError, EOFError, BadRequest):
                await sending
        await _linger(reader)
    finally:
        there_writer.transport.abort()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(_PIECE_BYTES):
        sink.write(piece)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int, text: str) -> None:
    with suppress(OSError):
        writer.write(refusal(status, text))
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        await _linger(reader)


async def _linger(reader: asyncio.StreamReader) -> None:
    """Read on until the client closes: a socket that is closed with something unread resets the connection, and the
    client may lose the answer."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while await reader.read(_PIECE_BYTES):
                pass


def denial_text(denied: Denied) -> str:
    """What the client is told: what happened, the rule to add, and how."""
    said = f"Cloche: the network allowlist of this sandbox does not hold {denied.target}.\n"
    if denied.rule is None:
        return (
            f"Cloche: {denied.target} is allowed by name, and its address is a private or reserved one.\n"
            "Rule to add: the address or its network, for example 10.1.2.3 or 10.1.2.0/24.\n"
            "How: abx sandbox network ID --allow RULE on the host, or ABX_LOCAL_EGRESS before the sandbox is made.\n"
        )
    return (
        f"{said}Rule to add: {denied.rule}\n"
        f"How: abx sandbox network ID --allow '{denied.rule}' on the host, "
        "or ABX_LOCAL_EGRESS before the sandbox is made.\n"
    )
