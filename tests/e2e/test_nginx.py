"""Two servers behind a real nginx, with the configuration that the documentation shows.

Source: decision D28; the issue, item 6; faults M14.
"""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import httpx
import mcp.server._streamable_http_modern as modern_transport
import pytest
from sse_starlette import EventSourceResponse

from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.script import Gate
from tests.architecture.workspace import ROOT
from tests.e2e.http_servers import http_server
from tests.packages.mcp_http.served import HEADERS, Modern, Raw, Served, modern, raw, served

pytestmark = pytest.mark.anyio

PATIENCE_S = 3

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
ALONE = """
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{shown}
}}
"""


def shown_configuration(port: int, first: str, second: str, read_timeout: str) -> str:
    """What the documentation shows, with the ports and the patience of this test."""
    page = (ROOT / "docs/how-to/serve-over-http.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```nginx\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    replaced = {
        "8080": f"127.0.0.1:{port}",
        "127.0.0.1:8081": first,
        "127.0.0.1:8082": second,
        "proxy_read_timeout 3700s": f"proxy_read_timeout {read_timeout}",
    }
    for written, real in replaced.items():
        assert written in shown
        shown = shown.replace(written, real)
    return shown


@asynccontextmanager
async def nginx(folder: Path, first: str, second: str, read_timeout: str = "3700s") -> AsyncGenerator[Served]:
    """nginx on a port of its own, gone afterwards."""
    assert NGINX is not None
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = int(chosen.getsockname()[1])
    configuration = folder / "nginx.conf"
    configuration.write_text(ALONE.format(folder=folder, shown=shown_configuration(port, first, second, read_timeout)))
    argv = [NGINX, "-e", "stderr", "-p", str(folder), "-c", str(configuration)]
    process = await anyio.open_process(argv, stdin=subprocess.DEVNULL, stdout=None, stderr=None)
    try:
        with anyio.fail_after(20):
            while not await answers(port):
                assert process.returncode is None, "nginx did not start"
                await anyio.sleep(0.05)
        yield Served(port, None)
    finally:
        if process.returncode is None:
            process.terminate()
        with anyio.CancelScope(shield=True):
            await process.wait()
            await process.aclose()


async def answers(port: int) -> bool:
    try:
        async with await anyio.connect_tcp("127.0.0.1", port):
            return True
    except OSError:
        return False


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
async def test_sessions_stay_with_their_server_behind_nginx(environ: dict[str, str], tmp_path: Path) -> None:
    """Every id leads back to the server that gave it, and both get clients."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    async with (
        http_server(environ, "--server-id", "a") as first,
        http_server(environ, "--server-id", "b") as second,
        nginx(folder, first.origin.removeprefix("http://"), second.origin.removeprefix("http://")) as proxy,
    ):
        seen: set[str] = set()
        for _ in range(4):
            async with raw(proxy) as client:
                assert client.session_id is not None
                seen.add(client.session_id[0])
                for _ in range(3):
                    await client.value("list_sandboxes")
                assert (await client.bye()).status_code == 200
                assert (await client.post(client.calling("list_sandboxes"))).status_code == 404
        assert seen == {"a", "b"}
        async with raw(proxy) as maker, modern(proxy) as without:
            made = await maker.value("create_sandbox")
            for _ in range(2):  # nginx takes turns: once each server is asked
                shown = await without.call("get_sandbox", {"sandbox_id": made["sandbox_id"]})
                assert shown["isError"] is False or environ["ABX_PROVIDER"] != "local"


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
async def test_m14_a_call_outlasts_the_patience_of_a_proxy(
    scripted_plane: ScriptedPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """neotoma PR#1486, java-sdk PR#848: nginx gives up a stream after 60 s without a byte, and we send one every 15.

    Here the proxy waits 3 s, and a stream that sends nothing is cut; one with comments outlasts it, in both eras.
    """
    folder = tmp_path / "nginx"
    folder.mkdir()
    async with served() as server:
        address = server.origin.removeprefix("http://")
        async with nginx(folder, address, address, f"{PATIENCE_S}s") as proxy:
            holds: list[Gate] = []
            for connect in (raw, modern):
                async with connect(proxy) as client, anyio.create_task_group() as calls:
                    send_comments_every(3600, monkeypatch)
                    holds.append(scripted_plane.script.hold_next("create"))
                    calls.start_soon(be_cut, client)
                    await holds[-1].reached.wait()
                    send_comments_every(0.2, monkeypatch)
                    async with connect(proxy) as patient:
                        holds.append(scripted_plane.script.hold_next("create"))
                        await outlast(patient, holds[-1])
            for hold in holds:
                hold.release()


async def be_cut(client: Raw) -> None:
    """A call whose stream stays silent."""
    with pytest.raises(httpx.RemoteProtocolError):
        await read(client)


async def read(client: Raw) -> None:
    async with stream_of(client, "create_sandbox") as answer:
        await answer.aread()
        if answer.status_code == 504:  # it was cut before the first byte
            raise httpx.RemoteProtocolError("cut")


async def outlast(client: Raw, create: Gate) -> None:
    """A call that is answered after more than the proxy's patience."""
    began = anyio.current_time()
    async with stream_of(client, "create_sandbox") as answer:
        async for line in answer.aiter_lines():
            if line.startswith(":") and anyio.current_time() - began > PATIENCE_S + 1:
                create.release()
            if line.startswith("data: "):
                assert json.loads(line[6:])["result"]["isError"] is False
    assert anyio.current_time() - began > PATIENCE_S


def send_comments_every(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """For streams that begin from now on."""
    monkeypatch.setattr(EventSourceResponse, "DEFAULT_PING_INTERVAL", seconds)
    monkeypatch.setattr(modern_transport, "_SSE_PING_INTERVAL", seconds)


def stream_of(client: Raw, tool: str) -> AbstractAsyncContextManager[httpx.Response]:
    headers = {**HEADERS, "Mcp-Session-Id": str(client.session_id)}
    if isinstance(client, Modern):
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return client.http.stream("POST", client.url, json=client.calling(tool), headers=headers)
