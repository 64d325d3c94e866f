"""The TCP port of a sandbox: there only when asked for, only with the token, not for web pages, gone with its sandbox.

Source: decisions D3, D28; local-runtime, "Reach".
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from cloche_contract.provider import ConnectRequest, GetRequest, KillRequest
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened, until_gone

REFUSED = (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError)


@pytest.fixture(scope="module")
async def listening(usable: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Sandbox]:
    folder = tmp_path_factory.mktemp("l")
    async with opened(make_provider(folder)) as provider, made(provider, listen=True) as sandbox:
        yield sandbox


def url_of(sandbox: Sandbox) -> str:
    assert sandbox.record.url is not None
    return sandbox.record.url


def token_of(sandbox: Sandbox) -> dict[str, str]:
    assert sandbox.record.agent is not None
    return {"X-Access-Token": sandbox.record.agent.access_token.get_secret_value()}


def caller(sandbox: Sandbox) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url_of(sandbox), headers=token_of(sandbox), trust_env=False)


async def test_a_port_of_the_host_reaches_a_sandbox_without_a_network(listening: Sandbox) -> None:
    """The socket belongs to the host's network namespace; the sandbox has none but its own loopback."""
    port = url_of(listening).rpartition(":")[2]
    async with caller(listening) as client:
        assert (await client.get("/cloche/info")).json()["sandbox_id"] == listening.id
    tried = await listening.python(f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)")
    assert "ConnectionRefusedError" in tried.stderr
    interfaces = await listening.run("tail -n +3 /proc/net/dev | cut -d: -f1")
    assert interfaces.stdout.split() == ["lo"]


async def test_without_asking_there_is_no_port(sandbox: Sandbox) -> None:
    assert url_of(sandbox) == f"local:{sandbox.id}"


@pytest.mark.parametrize(
    "headers", [{}, {"X-Access-Token": "wrong"}, {"X-Access-Token": ""}, {"E2b-Traffic-Access-Token": "wrong"}]
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/cloche/info"), ("POST", "/execute"), ("GET", "/files"), ("GET", "/contexts")]
)
async def test_every_request_needs_the_token(
    listening: Sandbox, method: str, path: str, headers: dict[str, str]
) -> None:
    """A port without a token is a shell for everybody on the machine."""
    async with httpx.AsyncClient(base_url=url_of(listening), trust_env=False) as client:
        answer = await client.request(method, path, headers=headers)
    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/health", "/cloche/info"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "https://page.example"},
        {"Origin": "null"},
    ],
)
async def test_a_web_page_is_refused_even_with_the_token(
    listening: Sandbox, path: str, headers: dict[str, str]
) -> None:
    """A name that resolves to the loopback address (DNS rebinding), and a page that sends requests across origins."""
    async with caller(listening) as client:
        answer = await client.get(path, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["cloche"]["code"] == "invalid_argument"


async def test_localhost_names_it_too(listening: Sandbox) -> None:
    port = url_of(listening).rpartition(":")[2]
    async with caller(listening) as client:
        assert (await client.get("/health", headers={"Host": f"localhost:{port}"})).status_code == 204


async def test_another_process_is_told_the_address_without_the_token(folder: Path, usable: None) -> None:
    """Decision D3: the address never carries a token."""
    async with opened(make_provider(folder)) as first, made(first, listen=True) as sandbox:
        async with opened(make_provider(folder)) as second:
            shown = await second.get(GetRequest(sandbox_id=sandbox.id))
            reached = await second.connect(ConnectRequest(sandbox_id=sandbox.id))
        assert shown.url == reached.url == url_of(sandbox)
        assert url_of(sandbox).startswith("http://127.0.0.1:")


async def test_the_port_closes_with_its_sandbox(provider: LocalProvider) -> None:
    async with made(provider, listen=True) as sandbox:
        await provider.kill(KillRequest(sandbox_id=sandbox.id))
        with pytest.raises(REFUSED):
            httpx.get(url_of(sandbox) + "/health", trust_env=False)


async def test_the_port_closes_when_the_keeper_is_killed(provider: LocalProvider) -> None:
    """Nobody else holds it: neither the server, nor the zygote, nor anything inside."""
    async with made(provider, listen=True) as sandbox:
        assert (await sandbox.run("sleep 60 & echo started", user="user")).stdout == "started\n"
        keeper = await keeper_of(provider, sandbox)
        os.kill(keeper, signal.SIGKILL)
        await until_gone(keeper)
        with pytest.raises(REFUSED):
            httpx.get(url_of(sandbox) + "/health", trust_env=False)


@pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user may not look at the descriptors of his own keeper")
async def test_only_the_keeper_holds_the_port(provider: LocalProvider) -> None:
    async with made(provider, listen=True) as sandbox:
        # A root user's spawner is a fork of the keeper.
        assert (await sandbox.run("id -u", user="root")).stdout == "0\n"
        port = int(url_of(sandbox).rpartition(":")[2])
        assert holders_of(port) == [await keeper_of(provider, sandbox)]


async def keeper_of(provider: LocalProvider, sandbox: Sandbox) -> int:
    from cloche_contract.provider import InspectRequest

    return int((await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts["keeper_pid"])


def holders_of(port: int) -> list[int]:
    """Pids of the host that have the listening socket of a port open."""
    local = f"0100007F:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = [row[9] for row in rows if row[1] == local and row[3] == "0A"]
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if f"socket:[{inode}]" in opened_by(pid)]


def opened_by(pid: int) -> set[str]:
    """What the descriptors of a process lead to."""
    found: set[str] = set()
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            # The one that this list is read through is gone already.
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found
