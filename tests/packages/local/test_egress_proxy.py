"""The egress proxy by itself, with servers of the test behind it and names that the test resolves."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import anyio
import pytest

from cloche_local import egress_proxy
from cloche_local.egress_proxy import Denied, EgressProxy
from cloche_local.egress_rules import Address, Policy, parse_rules


class Upstream:
    """A server of the host that tells what it got."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(x[16:]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length: ")), 0)
            body = await reader.readexactly(length)
            if b"chunked" in head.lower():
                body = await reader.readuntil(b"0\r\n\r\n")
            self.requests.append(head + body)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
            await writer.drain()
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()


@asynccontextmanager
async def upstream() -> AsyncGenerator[Upstream]:
    found = Upstream()
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    async with server:
        found.port = server.sockets[0].getsockname()[1]
        yield found


class Names:
    """A resolver of the test: it counts what it is asked, and answers something else each time."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    async def __call__(self, name: str, port: int) -> list[Address]:
        self.asked.append(name)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [ip_address(text) for text in answer]


class Running:
    def __init__(self, proxy: EgressProxy, port: int, denied: list[Denied]) -> None:
        self.proxy = proxy
        self.port = port
        self.denied = denied

    async def ask(self, raw: bytes) -> bytes:
        """Send a request as it is; returns everything that comes until the proxy closes."""
        with anyio.fail_after(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(raw)
            try:
                # As clients do that send a body before they look for an answer.
                await writer.drain()
                return await reader.read()
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()


@asynccontextmanager
async def running(*rules: str, names: Names | None = None, enforce: bool = True) -> AsyncGenerator[Running]:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    denied: list[Denied] = []
    proxy = EgressProxy(
        Policy(parse_rules(rules)), denied.append, lookup=names or Names(["127.0.0.1"]), enforce=enforce
    )
    task = asyncio.ensure_future(proxy.serve(listener))
    try:
        yield Running(proxy, listener.getsockname()[1], denied)
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_e10_a_tunnel_to_a_listed_host_carries_bytes_both_ways() -> None:
    """Faults E10: every CONNECT was blocked."""
    async with upstream() as host, running(f"site.test:{host.port}", f"127.0.0.0/8:{host.port}") as proxy:
        connect = f"CONNECT site.test:{host.port} HTTP/1.1\r\n\r\n".encode()
        answer = await proxy.ask(connect + b"GET /inside HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
        assert answer.endswith(b"hello\n")
        assert host.requests == [b"GET /inside HTTP/1.1\r\nHost: x\r\n\r\n"]
        assert proxy.denied == []


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 4\r\n\r\nbody", b"Transfer-Encoding: chunked\r\n\r\n4;x=1\r\nbody\r\n0\r\nTrailer: x\r\n\r\n"],
)
async def test_a_request_with_a_body_is_passed_on_and_what_follows_it_is_not(body: bytes) -> None:
    """A second request on the connection could name another host."""
    async with upstream() as host, running(f"127.0.0.1:{host.port}") as proxy:
        first = f"POST http://127.0.0.1:{host.port}/a HTTP/1.1\r\nHost: other.site\r\n".encode() + body
        answer = await proxy.ask(first + b"GET /smuggled HTTP/1.1\r\nHost: other.site\r\n\r\n")
        assert answer.endswith(b"hello\n")
        assert len(host.requests) == 1
        assert b"smuggled" not in host.requests[0]
        assert b"other.site" not in host.requests[0]
        assert b"body" in host.requests[0]
        assert b"Trailer" not in host.requests[0]


async def test_the_client_is_told_that_the_connection_ends() -> None:
    """A second request on it would not be read: a client that keeps connections must not wait for it."""

    async def keep_alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nX: 1\r\n\r\nbody")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(keep_alive, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, running(f"127.0.0.1:{port}") as proxy:
        answer = await proxy.ask(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n".encode())
    assert answer == (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: 1\r\nConnection: close\r\n\r\nbody")


async def test_e8_a_host_that_no_rule_lists_is_denied_and_not_looked_up() -> None:
    """Faults E8: a host outside the allowlist answered 200."""
    names = Names(["127.0.0.1"])
    async with upstream() as host, running(f"127.0.0.1:{host.port}", names=names) as proxy:
        answer = await proxy.ask(f"GET http://site.test:{host.port}/ HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert names.asked == []
        assert host.requests == []


async def test_e13_a_denied_upload_gets_the_answer_and_no_reset() -> None:
    """Faults E13: what the client had sent and nobody read turned the answer into a reset, by chance."""
    async with running() as proxy:
        head = b"POST http://site.test/ HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n"
        for _ in range(5):
            answer = await proxy.ask(head + b"x" * 5_000_000)
            assert answer.startswith(b"HTTP/1.1 403 ")


async def test_without_the_policy_the_same_request_arrives() -> None:
    """The protection bites: with the policy taken out, the host is reached."""
    async with upstream() as host, running(enforce=False) as proxy:
        answer = await proxy.ask(f"GET http://site.test:{host.port}/ HTTP/1.1\r\n\r\n".encode())
        assert answer.endswith(b"hello\n")


async def test_e13_every_denial_has_one_shape_and_names_the_rule() -> None:
    """Faults E13: a reset, a hang or a 403, by chance."""
    async with upstream() as host, running("rebound.test") as proxy:
        asked = {
            "CONNECT a.test:443": "Rule to add: a.test\n",
            "CONNECT a.test:8443": "Rule to add: a.test:8443\n",
            f"GET http://127.0.0.1:{host.port}/": f"Rule to add: 127.0.0.1:{host.port}\n",
            "CONNECT [::1]:443": "Rule to add: [::1]\n",
            "CONNECT rebound.test:443": "Rule to add: the address or its network",
        }
        for request, rule in asked.items():
            answer = (await proxy.ask(f"{request} HTTP/1.1\r\n\r\n".encode())).decode()
            head, _, body = answer.partition("\r\n\r\n")
            assert head.startswith("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain")
            assert f"Content-Length: {len(body)}\r\n" in head
            assert rule in body
            assert "abx sandbox network" in body
            assert "ABX_LOCAL_EGRESS" in body
        assert [str(denied.target) for denied in proxy.denied][-1] == "rebound.test:443"
        assert host.requests == []


async def test_a_name_that_turns_private_is_denied() -> None:
    """DNS rebinding: a listed name whose address is local."""
    async with upstream() as host, running(f"site.test:{host.port}") as proxy:
        answer = await proxy.ask(f"GET http://site.test:{host.port}/ HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert proxy.denied[0].rule is None
        assert host.requests == []


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """A second look-up could answer something else: there is none, and unlisted answers are not tried."""
    async with upstream() as host:
        names = Names(["10.0.0.1", "127.0.0.1", "192.168.0.1"], ["169.254.169.254"])
        async with running(f"site.test:{host.port}", f"127.0.0.1:{host.port}", names=names) as proxy:
            answer = await proxy.ask(f"GET http://site.test:{host.port}/ HTTP/1.1\r\n\r\n".encode())
            assert answer.endswith(b"hello\n")
            assert names.asked == ["site.test"]


@pytest.mark.parametrize(
    "raw",
    [
        b"CONNECT site.test\0.evil.test:443 HTTP/1.1\r\n\r\n",
        b"CONNECT 0x7f000001:80 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"\x05\x01\x00\r\n\r\n",
        b"\xff" * 100 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_plain_proxy_request_is_refused(raw: bytes) -> None:
    """Security: SOCKS and HTTP hosts with NUL bytes and odd numerals."""
    names = Names(["127.0.0.1"])
    async with running("site.test", "*.evil.test", "127.0.0.0/8", names=names) as proxy:
        assert (await proxy.ask(raw)).startswith(b"HTTP/1.1 400 ")
        assert names.asked == []
        assert proxy.denied == []


async def test_a_head_without_end_is_cut_off() -> None:
    """A request head is bounded while it is read."""
    async with running("site.test") as proxy:
        with anyio.fail_after(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"GET http://site.test/ HTTP/1.1\r\nX: " + b"a" * 1_000_000)
            assert await _ended(reader.read)
            writer.close()


async def test_a_rule_that_goes_cuts_its_connections() -> None:
    """Live update: a tunnel of a removed rule does not live on, others do."""
    async with (
        upstream() as host,
        running(f"a.test:{host.port}", f"b.test:{host.port}", f"127.0.0.1:{host.port}") as proxy,
    ):
        tunnels: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        with anyio.fail_after(10):
            for name in ("a.test", "b.test"):
                tunnels[name] = await asyncio.open_connection("127.0.0.1", proxy.port)
                tunnels[name][1].write(f"CONNECT {name}:{host.port} HTTP/1.1\r\n\r\n".encode())
                await tunnels[name][0].readuntil(b"\r\n\r\n")
            proxy.proxy.update(Policy(parse_rules([f"b.test:{host.port}", f"127.0.0.1:{host.port}"])))
            assert await _ended(tunnels["a.test"][0].read)
            tunnels["b.test"][1].write(b"GET / HTTP/1.1\r\n\r\n")
            assert (await tunnels["b.test"][0].read()).endswith(b"hello\n")
            for _reader, writer in tunnels.values():
                writer.close()


async def _ended(read: Callable[[], object]) -> bool:
    try:
        return await read() == b""  # type: ignore[misc]  # a bound read of a stream
    except ConnectionError:
        return True


async def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sandbox cannot fill the host's descriptors; what is over the bound is told so."""
    monkeypatch.setattr(egress_proxy, "CONNECTIONS", 3)
    async with running("site.test") as proxy:
        idle = [await asyncio.open_connection("127.0.0.1", proxy.port) for _ in range(3)]
        answer = await proxy.ask(b"CONNECT other.test:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503 ")
        for _reader, writer in idle:
            writer.close()
            await writer.wait_closed()


async def test_a_listed_host_that_does_not_answer_is_no_denial() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with running(f"127.0.0.1:{port}") as proxy:
        answer = await proxy.ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert proxy.denied == []
